"""Names in a case's settings that stand for nothing in either model: nothing is compared by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nnx_migrate.parity.files.case_file import CaseError, nearest

if TYPE_CHECKING:
    from nnx_migrate.parity.evaluation.results import SideResult


def require_known_names(
    settings: Mapping[str, Any], file: str, linen: SideResult, nnx: SideResult
) -> None:
    """Look for the collections and the NNX paths that a case names.

    Raises:
        CaseError: one is not there, although both sides ran.
    """
    if nnx.errors or nnx.problems or linen.errors:
        return  # what did not run cannot have them all
    names = tuple(dict.fromkeys((*_collections(linen), *_collections(nnx))))
    for name in settings["collections"]:
        if name not in names:
            raise CaseError(
                f"{file}: CASE: collections: expected collections of the model, found {name!r}, which "
                f"neither side has{nearest(name, names)}: correct it, or leave it out"
            )
    for old, new in nnx.unused_map_entries.items():
        if settings["path_map"].get(old) != new:
            continue  # the migration map's
        near = nearest(new, [path for path in nnx.attributes if not path.count("/")])
        raise CaseError(
            f"{file}: CASE: path_map: expected {{Linen path: NNX path}}, found {{{old!r}: {new!r}}}, "
            f"where the NNX module has nothing{near}: correct it, or leave it out"
        )


def _collections(side: SideResult) -> Iterator[str]:
    """The collections that a side has, changes or sows into."""
    runs = (side.first, *(run.first for run in side.modes))
    paths = (*side.shapes, *side.sown, *side.writes, *(p for run in runs for p in run.collections))
    return (path.split("/", 1)[0] for path in paths)
