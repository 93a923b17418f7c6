"""The words after ``nnx-migrate shardings``: how a built-in model is sharded, by one or two rules."""

from __future__ import annotations

from collections.abc import Sequence

from nnx_migrate.parity.models.options import model_options
from nnx_migrate.parity.outcome import CommandOutcome, refusal
from nnx_migrate.parity.words import BadWord, read, require_keys

# Words of ``parity`` that say how to run, which nothing is here.
ELSEWHERE = (
    *(
        "steps",
        "seed",
        "optimizer",
        "zero1",
        "gradient_accumulation_steps",
        "devices",
        "report",
        "certificate",
        "shard_mode",
        "compile",
    ),
)


def run(words: Sequence[str]) -> CommandOutcome:
    """Print the table of ``rules=A``; with a second ``rules=B``, what changes. Never raises."""
    try:
        return CommandOutcome(0, tuple(_lines(words)))
    except BadWord as error:
        return refusal(f"shardings: {error}")


def _lines(words: Sequence[str]) -> list[str]:
    rules = [word for word in words if word.startswith("rules=")]
    values = read([word for word in words if word not in rules])
    for key in ELSEWHERE:
        if key in values:
            raise BadWord(f"{key}= is for parity: nothing runs here")
    if "model" not in values:
        require_keys(words, ("model", "rules", "mesh", "size"))
        raise BadWord("nothing to show: pass model=NAME")
    if len(rules) > 2:
        raise BadWord(f"expected one or two rules=, found {len(rules)}")
    all_options = [
        model_options({**values, **(read([one]) if one else {})}) for one in rules or [""]
    ]
    from nnx_migrate.parity.models import layout

    heads = [options.describe() for options in all_options]
    found = [layout.rows(options) for options in all_options]
    if len(found) == 1:
        return [*heads, *layout.table(found[0])]
    first, second = (options.rules.name for options in all_options)
    return [*heads, *layout.changes(found[0], found[1], (first, second))]
