"""Random modules with classes in tuples and dicts, and layers held by objects before they are called."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.generated.writing import Piece, Written, piece

_HELD = """\
@dataclasses.dataclass
class Held:
    layer: Any
    scale: float = 2.0


"""


def tables(n: str, t: str, known: Sequence[Written] = ()) -> list[Piece]:
    """Classes in containers, built by iteration and by index."""
    free = [one for one in known if not one.required]
    own = [
        found
        for one in free
        for found in (
            piece("", f"for kind in ({one.name}, nn.LayerNorm):", "    x = kind()(x)", compact=True),
            piece("", f"x = ({one.name}, nn.LayerNorm)[0]()(x)", compact=True),
            piece("", f"kinds = {{'a': {one.name}, 'b': nn.RMSNorm}}", "x = kinds['a']()(x)", compact=True),
            piece("", f"for name, kind in {{'{n}_a': {one.name}}}.items():", "    x = kind(name=name)(x)", compact=True),
            piece(f"@{n} = [kind() for kind in ({one.name}, nn.LayerNorm)]", f"for layer in @{n}:", "    x = layer(x)"),
        )
    ]  # fmt: skip
    return [
        *own,
        piece("", "for kind in (nn.Dense, partial(nn.Dense, use_bias=False)):", "    x = kind(4)(x)", compact=True),
        piece("", "for kind, width in ((nn.Dense, 5), (nn.Dense, 4)):", "    x = kind(width)(x)", compact=True),
        piece("", "x = (nn.LayerNorm, nn.RMSNorm)[int(self.flag)]()(x)", compact=True),
        piece("", "for kind in [nn.LayerNorm, nn.RMSNorm][::-1]:", "    x = kind()(x)", compact=True),
        piece(f"@{n} = {{'a': nn.LayerNorm, 'b': nn.RMSNorm}}['b']()", f"x = @{n}(x)"),
        piece(f"@{n} = [kind() for kind in (nn.LayerNorm, nn.RMSNorm)]", f"x = @{n}[1](@{n}[0](x))"),
    ]  # fmt: skip


def held(n: str, t: str, known: Sequence[Written] = ()) -> list[Piece]:
    """Layers in objects, partials, lists and dicts before they are called."""
    many = [one for cls in known[-1:] for one in _held(n, cls.made)]
    return [*many, *_held(n, "nn.Dense(4)"), *_methods(n)]


def _held(n: str, made: str) -> list[Piece]:
    plain = f"@{n} = {made}"
    both = [plain, f"@{n}_b = nn.LayerNorm()"]
    return [
        piece(plain, f"held = Held(@{n})", "x = held.layer(x) * held.scale", top=[_HELD]),
        piece(plain, f"held = Held(@{n})", "if self.flag:", "    x = held.layer(x)", top=[_HELD]),
        piece(plain, f"run = partial(@{n})", "x = run(x)"),
        piece(plain, f"run = partial(@{n})", "if self.flag:", "    x = run(x)"),
        piece(plain, f"layers = {{'a': @{n}}}", "x = layers['a'](x)"),
        piece(plain, f"layers = {{'a': @{n}}}", "if self.flag:", "    x = layers['a'](x)"),
        piece(plain, f"if (layer := @{n}) is not None:", "    x = layer(x)"),
        piece(plain, f"if self.flag and (layer := @{n}) is not None:", "    x = layer(x)"),
        piece(both, f"for layer, scale in zip([@{n}, @{n}_b], (1.0, 2.0)):", "    x = layer(x) * scale"),
        piece(both, f"for layer, scale in zip([@{n}, @{n}_b], (1.0,)):", "    x = layer(x) * scale"),
        piece(both, f"layers = [@{n}]", f"layers.append(@{n}_b)", "x = layers[-1](layers[0](x))"),
        piece(both, f"layers = [@{n}]", f"layers.append(@{n}_b)", "x = layers[-1](x)"),
        piece(both, f"first, *layers = @{n}, @{n}_b", "x = layers[0](first(x))"),
        piece(both, f"layers = (@{n}, @{n}_b)", "x = layers[self.flag](x)"),
        piece(both, f"x = (@{n} if self.flag else @{n}_b)(x)"),
        piece(both, f"for layer in (@{n}, @{n}_b):", "    if self.flag:", "        continue", "    x = layer(x)"),
    ]  # fmt: skip


def _methods(n: str) -> list[Piece]:
    """Methods beside ``__call__``, of which it calls some."""
    encode = f"def encode_{n}(self, x):\n    return self.{n}(x) * 2"
    decode = f"def decode_{n}(self, x):\n    return self.{n}_b(x)"
    built = [f"@{n} = nn.Dense(4)", f"@{n}_b = nn.Dense(4)"]
    both = [encode, decode]
    return [
        piece(built, f"x = self.decode_{n}(self.encode_{n}(x))", setup=True, methods=both),
        piece(built, f"x = self.encode_{n}(x)", setup=True, methods=both),
        piece(built, "if self.flag:", f"    x = self.decode_{n}(x)", setup=True, methods=both),
    ]
