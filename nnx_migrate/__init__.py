"""nnx-migrate: move a Flax Linen code base to Flax NNX, and prove that nothing changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nnx_migrate.rewrite.single import SourceResult

__version__ = "0.1.0"


def rewrite_source(text: str, form: str = "auto") -> SourceResult:
    """Rewrite the text of one Python file from Flax Linen to Flax NNX.

    The result has ``code`` (the new text), ``findings``, ``classes``, ``references`` and
    ``call_sites``. ``form`` is ``auto`` (explicit where proven, else lazy), ``lazy`` or ``explicit``
    (as auto). Nothing is read, written, imported or run, and jax is not loaded.

    Raises:
        ValueError: ``text`` is not Python, in one line that says where, or there is no such form.
    """
    from nnx_migrate.rewrite.single import rewrite_source as rewrite

    return rewrite(text, form)
