"""``python -m benchmarks.models [NAME...] [--mesh fsdp:64,expert:8] [--compile]``.

Compares models at full size, each in a process of its own, and prints seconds of CPU and of the clock,
the most memory held, and the ratio to bare tracing and lowering of both variants. Start-up (imports)
is excluded from both.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from nnx_migrate.parity.models.registry import MODELS


def main() -> int:
    """Print one line per model; 1 when a comparison failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("models", nargs="*", default=["deepseek3-671b"], metavar="NAME")
    parser.add_argument("--mesh", default="fsdp:64,expert:8")
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args()
    if unknown := set(given.models) - set(MODELS):
        parser.error(f"unknown models {sorted(unknown)}; expected some of {', '.join(MODELS)}")
    words = [f"mesh={given.mesh}", f"compile={str(given.compile).lower()}"]
    print("model | verdict | CPU s | clock s | peak GB | bare CPU s | ratio")
    ok = True
    for name in given.models:
        whole = _measured("whole", f"model={name}", *words)
        bare = _measured("bare", f"model={name}", *words)
        ok = ok and whole["ok"]
        print(
            f"{name} | {whole['verdict']} | {whole['cpu']:.1f} | {whole['clock']:.1f} | "
            f"{whole['peak'] / 1e9:.2f} | {bare['cpu']:.1f} | {whole['cpu'] / bare['cpu']:.1f}"
        )
    return 0 if ok else 1


def _measured(what: str, *words: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.models.one", what, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"benchmarks.models: {' '.join(command)} failed:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
