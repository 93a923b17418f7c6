"""Every public name of flax.linen and of its modules is there, whatever flax is installed."""

import importlib
import pkgutil

import flax.linen
import pytest

MODULES = [
    "",
    *(
        f".{one.name}"
        for one in pkgutil.walk_packages(flax.linen.__path__)
        if not one.name.startswith("_")
    ),
    ".experimental.layers_with_named_axes",
]


def public(module: str) -> set[str]:
    """Public names that a module defines, or imports from elsewhere in flax.linen."""
    found = importlib.import_module(module)
    return {
        name
        for name, value in vars(found).items()
        if not name.startswith("_")
        and (
            module == "flax.linen" or str(getattr(value, "__module__", "")).startswith("flax.linen")
        )
    }


@pytest.mark.parametrize("module", MODULES)
def test_no_public_name_is_missing(module):
    names = public(f"flax.linen{module}")
    ours = importlib.import_module(f"nnx_migrate.linen{module}")
    assert sorted(name for name in names if not hasattr(ours, name)) == []
