"""Which packages the corpus is made of, at which versions, and which cases belong to them."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
SETS = ("flax-examples", "transformers", "rest", "guide")
_ALSO_NEEDS = {"rest": ("transformers",)}


@dataclass(frozen=True)
class Package:
    """One tree to rewrite. ``path`` is its place in a source distribution; None: the wheel."""

    name: str
    set: str
    distribution: str
    version: str
    path: str | None = None

    @property
    def requirement(self) -> str:
        """The pin as pip takes it."""
        return f"{self.distribution}=={self.version}"


@dataclass(frozen=True)
class Case:
    """One case file; ``name`` is unique within its set."""

    name: str
    set: str
    package: str
    file: Path

    def digest(self) -> str:
        """A hash of the file's content."""
        return hashlib.sha256(self.file.read_bytes()).hexdigest()


def packages(chosen: str) -> tuple[Package, ...]:
    """Return the packages of a set, in the order of pins.toml."""
    table = _pins()
    versions = {name: version for pins in table["pins"].values() for name, version in pins.items()}
    return tuple(
        Package(
            name=entry["name"],
            set=entry["set"],
            distribution=entry["distribution"],
            version=versions[entry["distribution"]],
            path=entry.get("path"),
        )
        for entry in table["package"]
        if entry["set"] == chosen
    )


def requirements(chosen: str) -> tuple[str, ...]:
    """Return the pins of the environment that a set runs in."""
    pins = _pins()["pins"]
    merged: dict[str, str] = {}
    for table in ("runtime", *_ALSO_NEEDS.get(chosen, ()), chosen):
        merged.update(pins.get(table, {}))
    return tuple(f"{name}=={version}" for name, version in sorted(merged.items()))


def cases(chosen: str) -> tuple[Case, ...]:
    """Return the cases of a set: ``<set>/<package>/<case>.py``, or ``<set>/<case>.py``.

    Without a folder of its own, a case belongs to the set's only package, or to the package of
    its own name.
    """
    folder = HERE / "cases" / chosen
    known = [package.name for package in packages(chosen)]
    return tuple(_case(file, folder, chosen, known) for file in sorted(folder.rglob("*.py")))


def _case(file: Path, folder: Path, chosen: str, known: list[str]) -> Case:
    name = file.relative_to(folder).with_suffix("").as_posix()
    owner = name.split("/")[0] if "/" in name else (known[0] if len(known) == 1 else name)
    if owner not in known:
        raise ValueError(f"{file}: expected a package of the set {chosen!r}, found {owner!r}")
    return Case(name=name, set=chosen, package=owner, file=file)


def _pins() -> dict[str, Any]:
    return tomllib.loads((HERE / "pins.toml").read_text(encoding="utf-8"))
