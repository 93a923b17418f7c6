import re

import pytest

from benchmarks.corpus import frozen
from benchmarks.corpus.packages import SETS, cases, packages, requirements

CASE_SETS = ("flax-examples", "transformers", "rest")


@pytest.mark.parametrize("chosen", SETS)
def test_every_requirement_is_pinned_to_one_version(chosen: str) -> None:
    listed = requirements(chosen)
    assert {"flax==0.12.8", "jax==0.10.2"} <= set(listed)
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line) for line in listed)


@pytest.mark.parametrize("chosen", CASE_SETS)
def test_the_frozen_list_is_the_list_of_cases(chosen: str) -> None:
    listed = frozen.read()["cases"][chosen]
    assert {case.name: case.package for case in cases(chosen)} == {
        name: entry["package"] for name, entry in listed.items()
    }


@pytest.mark.parametrize("chosen", CASE_SETS)
def test_every_frozen_case_runs_in_linen_and_its_classes_are_counted(chosen: str) -> None:
    lists = frozen.read()
    for name, entry in lists["cases"][chosen].items():
        assert entry["runs"], name
        assert set(entry["classes"]) <= set(lists["classes"][chosen][entry["package"]]), name


@pytest.mark.parametrize("chosen", CASE_SETS)
def test_every_package_has_a_case_and_classes(chosen: str) -> None:
    lists = frozen.read()
    for package in packages(chosen):
        assert lists["classes"][chosen][package.name], package.name
        owners = {entry["package"] for entry in lists["cases"][chosen].values()}
        assert package.name in owners
