"""Every public name of flax.linen and of its modules is there, whatever flax is installed."""

import importlib
import pkgutil
from typing import TypeVar

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


# Names without an underscore that are no interface: for checkers of types, and the insides of lifts,
# which take and give Linen's own placeholders.
INSIDES = {
    "Descriptor",
    "InstancePlaceholder",
    "ModuleBase",
    "VariablePlaceholder",
    "clean_clone",
    "decorator_lift_transform",
    "decorator_lift_transform_cached",
    "fork_rngs",
    "get_module_scopes",
    "module_class_lift_transform",
    "module_class_lift_transform_cached",
    "module_field",
    "set_module_scopes",
}


def public(module: str) -> set[str]:
    """Public names that a module defines, or imports from elsewhere in flax.linen."""
    found = importlib.import_module(module)
    return {
        name
        for name, value in vars(found).items()
        if not name.startswith("_")
        and name not in INSIDES
        and not isinstance(value, TypeVar)
        and not hasattr(value, "__path__")  # a package: an attribute once it is imported
        and (
            module == "flax.linen" or str(getattr(value, "__module__", "")).startswith("flax.linen")
        )
    }


@pytest.mark.parametrize("module", MODULES)
def test_no_public_name_is_missing(module):
    names = public(f"flax.linen{module}")
    ours = importlib.import_module(f"nnx_migrate.linen{module}")
    assert sorted(name for name in names if not hasattr(ours, name)) == []


@pytest.mark.parametrize("name", ["_Sentinel", "_unspecified_parent", "Callable", "RNGSequences"])
def test_names_that_packages_take_from_the_module_file_are_there(name):
    """scico takes the type of a module's field ``parent`` from it, for its own annotations."""
    assert hasattr(importlib.import_module("nnx_migrate.linen.module"), name)


@pytest.mark.parametrize(
    "name", ["CollectionFilter", "InOutAxis", "InOutScanAxis", "PRNGSequenceFilter", "Target"]
)
def test_types_that_wrappers_of_lifts_are_annotated_with_are_there(name: str) -> None:
    assert hasattr(flax.linen.transforms, name)
    assert name in vars(importlib.import_module("nnx_migrate.linen.transforms"))
