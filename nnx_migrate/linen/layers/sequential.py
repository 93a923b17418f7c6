"""A chain of layers (flax 0.12.8, linen/combinators.py)."""

from collections.abc import Callable, Sequence
from typing import Any

from nnx_migrate.linen.module import Module, compact


class Sequential(Module):
    """Call ``layers`` one after the other; modules among them are named ``layers_<index>``.

    A tuple is passed on as positional arguments, a dict as keyword arguments. The chain is called in
    a compact method, so that a function among the layers may build modules.

    Raises:
      ValueError: ``layers`` is not a sequence, or is empty when called.
    """

    layers: Sequence[Callable[..., Any]]

    def __post_init__(self) -> None:
        """Check the type of ``layers``."""
        if not isinstance(self.layers, Sequence):
            raise ValueError(  # noqa: TRY004 - as Linen
                f"'layers' must be a sequence, got '{type(self.layers).__name__}'."
            )
        super().__post_init__()

    @compact
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Pass the arguments through all layers."""
        if not self.layers:
            raise ValueError(f"Empty Sequential module {self.name}: expected one layer at least")
        first, *others = self.layers
        outputs = first(*args, **kwargs)
        for layer in others:
            if isinstance(outputs, tuple):
                outputs = layer(*outputs)
            elif isinstance(outputs, dict):
                outputs = layer(**outputs)
            else:
                outputs = layer(outputs)
        return outputs
