"""Random attributes of ``setup`` that refer to the module, or to submodules that it holds already."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.generated.writing import Piece, Written, piece

_RUNS = """\
class Runs(nn.Module):
    run: Callable

    @nn.compact
    def __call__(self, x):
        return self.run(nn.Dense(4)(x))


"""


def references(n: str, t: str, known: Sequence[Written] = ()) -> list[Piece]:
    """Second names, functions of the module, and submodules that nothing calls."""
    made = ["nn.Dense(4)", "nn.PReLU()", *(one.made for one in known)]
    kinds = (_second_names, _functions, _uncalled)
    return [one for value in made for kind in kinds for one in kind(n, value)]


def _second_names(n: str, made: str) -> list[Piece]:
    many = f"@{n} = [{made}, nn.LayerNorm()]"
    return [
        piece([many, f"@{n}_a = @{n}[-1]"], f"x = @{n}_a(@{n}[0](x))", setup=True),
        piece([many, f"@{n}_a = @{n}[:1]"], f"x = @{n}_a[0](@{n}[1](x))", setup=True),
        piece([many, f"first, last = @{n}", f"@{n}_a = last"], f"x = @{n}_a(@{n}[0](x))", setup=True),
        piece([many, f"for one in @{n}:", f"    @{n}_a = one"], f"x = @{n}_a(@{n}[0](x))", setup=True),
        piece([many, f"@{n}_a = @{n}[0] if self.flag else nn.Dense(4)"], f"x = @{n}_a(@{n}[0](@{n}[1](x)))", setup=True),
        piece([many, f"@{n}_a = list(reversed(@{n}))"], f"for one in @{n}_a:", "    x = one(x)", setup=True),
        piece([many, f"@{n}_a = {{'x': @{n}[0], 'y': @{n}[1]}}"], f"x = @{n}_a['y'](@{n}_a['x'](x))", setup=True),
        piece([many, "if self.flag:", f"    @{n}_a = @{n}[0]", "else:", f"    @{n}_a = nn.Dense(4)"], f"x = @{n}_a(@{n}[0](@{n}[1](x)))", setup=True),
    ]  # fmt: skip


def _functions(n: str, made: str) -> list[Piece]:
    plain = f"@{n} = {made}"
    method = [f"def twice_{n}(self, x):\n    return self.{n}(x) * 2"]
    call = f"x = @{n}_a(x) + @{n}(x)"
    return [
        piece([plain, f"@{n}_a = lambda x: @{n}(x) * 2"], call, setup=True),
        piece([plain, f"@{n}_a = partial(@{n})"], call, setup=True),
        piece([plain, f"@{n}_a = @{n}.__call__"], call, setup=True),
        piece([plain, f"@{n}_a = self.twice_{n}"], call, setup=True, methods=method),
        piece([plain, f"@{n}_a = {{'a': self.twice_{n}}}"], f"x = @{n}_a['a'](x)", setup=True, methods=method),
        piece([plain, f"@{n}_a = nn.Sequential([nn.Dense(4), self.twice_{n}])"], call, setup=True, methods=method),
        piece([plain, f"@{n}_a = nn.Sequential([@{n}, lambda x: @{n}(x)])"], call, setup=True),
        piece([plain, f"@{n}_a = Runs(self.twice_{n})"], call, setup=True, methods=method, top=[_RUNS]),
        piece([plain, "def scaled(x):", f"    return @{n}(x) * 2", f"@{n}_a = scaled"], call, setup=True),
        piece(plain, f"x = Runs(lambda y: @{n}(y))(x)", compact=True, top=[_RUNS]),
        piece(plain, f"x = Runs(lambda y: y + x)(@{n}(x))", compact=True, top=[_RUNS]),
        piece(plain, f"x = Runs(partial(@{n}))(x)", compact=True, top=[_RUNS]),
        piece(plain, f"x = Runs(@{n})(x)", compact=True, top=[_RUNS]),
        piece(plain, "x = Runs(nn.relu)(x)", f"x = @{n}(x)", compact=True, top=[_RUNS]),
    ]  # fmt: skip


def _uncalled(n: str, made: str) -> list[Piece]:
    both = [f"@{n} = {made}", f"@{n}_b = nn.LayerNorm()"]
    return [
        piece(both, f"x = @{n}_b(x)"),
        piece(f"@{n} = [{made}, nn.LayerNorm()]", f"x = @{n}[-1](x)"),
        piece(f"@{n} = {{'a': {made}, 'b': nn.LayerNorm()}}", f"x = @{n}['b'](x)"),
        piece([*both, f"@{n}_c = [@{n}, @{n}_b]"], f"x = @{n}_c[1](x)"),
        piece([*both, f"@{n}_c = [@{n}]", f"@{n}_c.append(@{n}_b)"], f"x = @{n}_c[-1](x)", compact=True),
        piece(f"@{n}, @{n}_b = {made}, nn.LayerNorm()", f"for one in (@{n}_b,):", "    x = one(x)"),
    ]  # fmt: skip
