"""Shapes of third-party library calls, one file per library.

Each file holds ``SUMMARIES``: symbol -> function of a :class:`~nnx_migrate.sizes.library_call.LibraryCall`
that gives the abstract result. To add a library, add a file and list it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nnx_migrate.sizes.summaries import arrays, einops, jraph

if TYPE_CHECKING:
    from nnx_migrate.abstract.values import Value
    from nnx_migrate.sizes.library_call import LibraryCall

SUMMARIES: dict[str, Callable[[LibraryCall], Value]] = {
    **einops.SUMMARIES,
    **arrays.SUMMARIES,
    **jraph.SUMMARIES,
}
