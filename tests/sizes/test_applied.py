"""Layers that are only given parameters of somebody else: nobody has to know their sizes."""

from __future__ import annotations

from tests.sizes.inference import sizes_of

SOURCE = """
class Tied(nn.Module):
    def setup(self):
        self.conv = nn.Conv(6, (3,))
        self.kernel = self.param("kernel", nn.initializers.ones, (3, 4, 6))

    def __call__(self, x):
        return self.conv.{use}

class Model(nn.Module):
    def setup(self):
        self.tied = Tied()

    def __call__(self, x):
        return self.tied(x)
"""
APPLIED = SOURCE.replace("{use}", 'apply({"params": {"kernel": self.kernel}}, x)')
NEVER = SOURCE.replace("{use}", "features")


def needed(source: str, cls: str) -> list[tuple[str, bool]]:
    return [(one.name, one.optional) for one in sizes_of(source, cls).new_arguments]


def test_the_size_of_a_layer_that_is_only_applied_may_be_left_out() -> None:
    assert needed(APPLIED, "Tied") == [("conv_in_features", True)]
    assert needed(APPLIED, "Model") == []


def test_a_layer_that_nothing_is_known_of_takes_its_size_in_its_first_call() -> None:
    assert needed(NEVER, "Tied") == []
    assert needed(NEVER, "Model") == []
