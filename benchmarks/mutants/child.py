"""One ``parity`` command in a process of its own: ``python child.py STORE REPORT key=value...``.

Nothing but ``nnx_migrate`` is imported: it may be a copy with a fault. STORE is a folder in which the
result of the Linen side is kept from process to process, or "" where the fault may reach that side.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nnx_migrate.parity import command
from nnx_migrate.parity.evaluation.results import SideResult, load, save
from nnx_migrate.parity.models import full, run


def stored(evaluate: Callable[..., SideResult], folder: Path, words: str) -> Callable[..., Any]:
    """The same evaluation, whose result is read where an equal one was written."""

    def evaluated(case: Any, *args: Any, **options: Any) -> SideResult:
        asked = f"{evaluate.__name__} {words} {sorted(options.items())}"
        place = folder / hashlib.sha256(asked.encode()).hexdigest()[:16]
        if (place / "side.json").is_file():
            return load(place)
        result = evaluate(case, *args, **options)
        save(result, place)
        return result

    return evaluated


def main(store: str, report: str, *words: str) -> int:
    if store:
        run.evaluate_linen = stored(run.evaluate_linen, Path(store), " ".join(words))
        full.trace_linen = stored(full.trace_linen, Path(store), " ".join(words))
    outcome = command.run([*words, f"report={report}"])
    sys.stdout.write("\n".join(outcome.lines) + "\n")
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
