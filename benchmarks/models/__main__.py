"""``python -m benchmarks.models [NAME...] [--tiny] [--mesh fsdp:64,expert:8] [--compile]``.

Compares models at full size, each in a process of its own, and prints seconds of CPU and of the clock,
the most memory held, and the ratio to bare tracing and lowering of both variants. Start-up (imports)
is excluded from both. With ``--tiny`` the command that a user gives is timed instead, start-up included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

from nnx_migrate.parity.models.registry import MODELS


def main() -> int:
    """Print one line per model; 1 when a comparison failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="NAME")
    parser.add_argument("--tiny", action="store_true", help="size=tiny, on 8 simulated devices")
    parser.add_argument(
        "--mesh", help="default: fsdp:64,expert:8, and the command's own for --tiny"
    )
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args()
    if unknown := set(given.models) - set(MODELS):
        parser.error(f"unknown models {sorted(unknown)}; expected some of {', '.join(MODELS)}")
    if given.tiny:
        return _tiny(given.models or ["deepseek2-16b"], given.mesh)
    return _full(
        given.models or ["deepseek3-671b"], given.mesh or "fsdp:64,expert:8", given.compile
    )


def _tiny(models: list[str], mesh: str | None) -> int:
    print("model | exit code | CPU s | clock s")
    worst = 0
    for name in models:
        words = [f"model={name}", *([f"mesh={mesh}"] if mesh else [])]
        cpu, clock = _cpu_of_children(), time.monotonic()
        command = [sys.executable, "-m", "nnx_migrate", "parity", *words]
        code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
        worst = max(worst, code)
        cpu, clock = _cpu_of_children() - cpu, time.monotonic() - clock
        print(f"{name} | {code} | {cpu:.1f} | {clock:.1f}", flush=True)
    return worst


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _full(models: list[str], mesh: str, compiled: bool) -> int:
    words = [f"mesh={mesh}", f"compile={str(compiled).lower()}"]
    print("model | verdict | CPU s | clock s | peak GB | bare CPU s | ratio")
    ok = True
    for name in models:
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
