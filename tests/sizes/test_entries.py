"""Entries of a dict that the call is given are not slices of one array."""

from __future__ import annotations

from nnx_migrate.sizes import analyse
from nnx_migrate.source.project import Project, parse


def test_two_entries_of_a_dict_argument_have_two_sizes() -> None:
    source = (
        "import flax.linen as nn\n\n\nclass M(nn.Module):\n  @nn.compact\n"
        "  def __call__(self, d):\n    return nn.Dense(4)(d['a']) * nn.Dense(4)(d['b'])\n"
    )
    sizes = analyse(Project({"model": parse("model", "model.py", source)}))["model.M"]
    found = [site.sizes["in_features"] for site in sizes.sites.values()]
    assert len(found) == len(set(found)) == 2
    assert {one.name for one in sizes.new_arguments} == set(found)
