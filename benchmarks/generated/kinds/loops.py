"""Random loops over layers: of no round, left early, filtered, over parts of lists."""

from __future__ import annotations

from benchmarks.generated.writing import Piece, piece


def loops(n: str, t: str, known: object = ()) -> list[Piece]:
    """Loops over a field's number; ``n`` is new, ``t`` the text of a truth."""
    rounds = {"fields": ["rounds: int = 2"], "options": ["rounds=0", "rounds=1", "rounds=3"]}
    one = f"@{n} = nn.Dense(4)"
    two = f"@{n} = [nn.Dense(4), nn.LayerNorm()]"
    many = f"@{n} = [nn.Dense(4) for _ in range(self.rounds)]"
    each = "for _ in range(self.rounds):"
    return [
        piece(one, each, f"    x = @{n}(x)", **rounds),
        piece(one, "for _ in range(1, self.rounds):", f"    x = @{n}(x)", **rounds),
        piece(one, f"run = @{n}", each, "    x = run(x)", **rounds),
        piece(one, f"x = x + sum(@{n}(x) for _ in range(self.rounds))", **rounds),
        piece(one, f"x = functools.reduce(lambda z, _: @{n}(z), range(self.rounds), x)", **rounds),
        piece(one, "i = 0", "while i < self.rounds:", f"    x = @{n}(x)", "    i += 1", **rounds),
        piece(one, each, f"    if {t}:", f"        x = @{n}(x)", **rounds),
        piece(two, each, f"    for layer in @{n}:", "        x = layer(x)", **rounds),
        piece(two, f"for layer in @{n}[: self.rounds]:", "    x = layer(x)", **rounds),
        piece(two, f"for layer, _ in zip(@{n}, range(self.rounds)):", "    x = layer(x)", **rounds),
        piece(
            two,
            f"for i, layer in enumerate(@{n}):",
            "    if i == self.rounds:",
            "        break",
            "    x = layer(x)",
            **rounds,
        ),
        piece(
            two,
            f"for layer in [one for i, one in enumerate(@{n}) if i < self.rounds]:",
            "    x = layer(x)",
            **rounds,
        ),
        piece(
            two,
            f"for layer in filter(lambda one: isinstance(one, nn.Dense) or self.flag, @{n}):",
            "    x = layer(x)",
        ),
        piece(many, f"for layer in @{n}:", "    x = layer(x)", **rounds),
        piece(many, each, f"    for layer in @{n}:", "        x = layer(x)", **rounds),
        piece(many, "for i in range(self.rounds):", f"    x = x + @{n}[i](x)", **rounds),
        piece([one, many.replace(n, f"{n}s")], f"for layer in @{n}s:", f"    x = layer(@{n}(x))", **rounds),
        piece("", each, "    x = nn.Dense(4)(x)", compact=True, **rounds),
        piece("", each, "    x = nn.Dense(5)(x)", "x = nn.Dense(4)(x)", compact=True, **rounds),
    ]  # fmt: skip
