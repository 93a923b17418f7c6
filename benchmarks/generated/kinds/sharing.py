"""Classes of the program used, shared, handed on, cloned and called by other methods."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.generated.writing import Piece, Written, piece

TWICE = """\
def twice(layer, x):
    return layer(layer(x))


"""
APPLIED = """\
class Applied(nn.Module):
    @nn.compact
    def __call__(self, x, layer):
        return layer(x) + nn.Dense(4)(x)


"""


def uses(n: str, t: str, known: Sequence[Written] = ()) -> list[Piece]:
    """Instances of classes written before."""
    return [one for cls in known for one in (*_uses(n, t, cls, 2), *_shared(n, t, cls))]


def _uses(n: str, t: str, one: Written, k: int) -> list[Piece]:
    args = f"x, {t}" if one.takes_train else "x"
    named = f"x, train={t}" if one.takes_train else "x"
    made = one.made
    plain = f"@{n} = {made}"
    many = f"@{n} = [{made} for _ in range({k})]"
    return [
        piece(plain, f"x = @{n}({args})"),
        piece(plain, f"x = @{n}(x)"),
        piece(plain, f"x = @{n}({named})", f"x = x + @{n}({args})"),
        piece(many, f"for layer in @{n}:", f"    x = layer({args})"),
        piece(many, f"for i in range({k}):", f"    x = x + @{n}[i]({named})"),
        piece(plain, "for _ in range(2):", f"    x = @{n}({args})"),
        piece(plain, f"x = twice(@{n}, x)", top=[TWICE]),
        piece(plain, f"x = @{n}.turned(x)"),
        piece(plain, f"x = @{n}({args}) if self.flag else -@{n}({args})"),
        piece(
            [f"@{n} = {made}", f"@{n}_many = {{'a': {made}, 'b': @{n}}}"],
            f"x = @{n}(x) + @{n}_many['b']({args}) + @{n}_many['a'](x)",
        ),
        piece("", f"x = {made}({args})", compact=True),
        piece("", f"x = x + {one.name}(name='{n}_{one.name}')({named})", compact=True)
        if not one.required
        else piece(plain, f"x = x + @{n}({named})"),
        piece("", f"layer = {one.name}", f"x = layer({one.args})({args})", compact=True),
        piece("", "for _ in range(2):", f"    x = {made}({named})", compact=True),
    ]


def _shared(n: str, t: str, one: Written) -> list[Piece]:
    args = f"x, {t}" if one.takes_train else "x"
    plain = f"@{n} = {one.made}"
    found = [
        piece([plain, f"@{n}_by = Applied()"], f"x = @{n}_by(x, @{n})", top=[APPLIED]),
        piece([plain, f"@{n}_by = Applied()"], f"x = @{n}_by(@{n}({args}), layer=@{n})", top=[APPLIED]),
        piece([plain, f"@{n}_copy = @{n}.clone()"], f"x = @{n}_copy(x)", compact=True),
        piece(plain, f"bound = lambda z: @{n}({args.replace('x', 'z', 1)})", "x = bound(x) + bound(-x)"),
        piece([plain, f"shared = @{n}"], f"x = shared({args}) - @{n}(x)", compact=True),
    ]  # fmt: skip
    if "inner" in one.required or any(o.startswith("inner=") for o in one.options):
        found += [
            piece(
                [f"@{n}_s = nn.Dense(4)", f"@{n} = {one.name}(inner=@{n}_s)"],
                f"x = @{n}(@{n}_s(x))",
            ),
            piece(
                [
                    f"@{n}_s = nn.Dense(4)",
                    f"@{n} = [{one.name}(inner=@{n}_s) for _ in range(2)]",
                ],
                f"x = @{n}[1](@{n}[0](x))",
            ),
            piece(
                [f"@{n} = {one.name}(inner=nn.Dense(4))"],
                f"x = @{n}.inner(@{n}(x))",
            ),
            piece(
                "",
                f"x = {one.name}(nn.Dense(4))(x)" if one.required else f"x = {one.made}(x)",
                compact=True,
            ),
        ]
    return found


def holding(n: str, t: str, known: object = ()) -> list[Piece]:
    """Submodules that come in by fields."""
    inner = {"fields": ["inner: nn.Module"], "options": ["REQUIRED"]}
    maybe = {
        "fields": ["layer: Optional[nn.Module] = None"],
        "options": ["layer=nn.Dense(4)", "layer=None"],
    }
    many = {
        "fields": ["layers: Sequence[nn.Module] = ()"],
        "options": ["layers=(nn.Dense(4), nn.LayerNorm())", "layers=[nn.Dense(4)]"],
    }
    return [
        piece("", "x = self.inner(x)", **inner),
        piece(f"@{n} = nn.Dense(4)", f"x = x + self.inner(@{n}(x))", **inner),
        piece("", "x = self.inner(self.inner(x))", **inner),
        piece("", "x = self.layer(x) if self.layer is not None else x", **maybe),
        piece("", "if self.layer is not None:", "    x = x + self.layer(x)", **maybe),
        piece("", "for one in self.layers:", "    x = one(x)", **many),
        piece("", "for i, one in enumerate(self.layers[::-1]):", "    x = one(x) * (i + 1)", **many),
    ]  # fmt: skip
