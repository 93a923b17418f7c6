"""``python -m benchmarks.lazy``: what the lazy form costs, of rewriting and of running."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(words: list[str]) -> int:
    """Run one of the benchmarks, print its figures, return 1 where a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lazy", description=__doc__)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--rewrite", nargs="+", type=Path, metavar="DIR", help="trees to rewrite")
    chosen.add_argument("--runtime", action="store_true", help="against Linen and plain NNX")
    chosen.add_argument("--generated", action="store_true", help="long classes and files")
    parser.add_argument("--form", default="lazy", choices=("lazy", "auto"))
    parser.add_argument("--size", type=float, default=1.0, help="of what is generated")
    parser.add_argument("--depth", type=int, default=48, help="blocks of the transformer")
    parser.add_argument("--repeats", type=int, default=5)
    known = parser.parse_args(words)
    if known.rewrite:
        from benchmarks.lazy.rewriting import lines, measure

        figures = measure(known.rewrite, known.form)
        print("\n".join(lines(figures)))
        return 1 if figures.failed or figures.broken else 0
    if known.generated:
        from benchmarks.lazy import generated

        for name, ratio in generated.measure(known.form, known.size).items():
            print(f"{name}, {known.form}: {ratio:.2f} of LibCST's parse and code generation")
        return 0
    from benchmarks.lazy import runtime

    for name, value in runtime.measure(known.depth, known.repeats).items():
        print(f"{name}: {value if isinstance(value, bool) else format(value, '.2f')}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
