"""Strings in sizes stand in the quotes of their file; the author's stay."""

from __future__ import annotations

import pytest

from tests.rewrite.classes.support import converted

NET = """\
class Net(nn.Module):
    config: dict

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.config["width"])(x)
        return nn.Dense(self.config["out"])(x)
"""


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (NET, '(self.config["width"], self.config["out"], rngs'),
        (NET.replace('"', "'"), "(self.config['width'], self.config['out'], rngs"),
        (NET + "    note = 'width'\n", "(self.config['width'], self.config[\"out\"], rngs"),
    ],
    ids=["double", "single", "both"],
)
def test_a_size_has_the_quotes_of_its_file(text: str, size: str) -> None:
    assert size in converted(text)
