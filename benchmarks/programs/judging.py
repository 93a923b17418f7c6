"""Run every program on every side, and say what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.flax_suite.comparing import Compared as ComparedTests
from benchmarks.flax_suite.comparing import compare as compare_tests
from benchmarks.flax_suite.running import Outcomes
from benchmarks.programs.comparing import Compared, compare
from benchmarks.programs.programs import Program, Tree, before, rewritten, same_text
from benchmarks.programs.running import Runner

Log = Callable[[str], None]


@dataclass(frozen=True)
class Verdict:
    """One program in one form, against itself under Linen."""

    program: Program
    tree: Tree
    training: Compared  # the same training
    forward: Compared  # Linen's checkpoint, loaded after the rewrite
    back: Compared  # the reverse
    built: str
    error: str = ""

    @property
    def ok(self) -> bool:
        """Everything ran and agrees."""
        if self.tree.loops == "nnx":
            return not self.error and self.training.ok
        parts = (self.training, self.forward, self.back)
        all_explicit = self.built == "" and "lazy" not in self.tree.forms
        fine = all_explicit or self.built.startswith(("equal", "runs"))
        return not self.error and fine and all(part.ok for part in parts)


@dataclass(frozen=True)
class Verdicts:
    """All of them."""

    programs: tuple[Verdict, ...]
    tests: tuple[tuple[str, str, ComparedTests], ...]  # example, form
    failing: tuple[str, ...]  # tests that do not pass under Linen here: they count as neither

    @property
    def ok(self) -> bool:
        """There is something, and all of it agrees."""
        lost = any(compared.lost for _, _, compared in self.tests)
        return bool(self.programs) and not lost and all(one.ok for one in self.programs)


def judge(
    runner: Runner,
    programs: Sequence[Program],
    forms: Sequence[str],
    loop: str,
    source: Path,
    with_tests: bool,
    log: Log,
) -> Verdicts:
    """Run ``programs`` before and after ``rewrite --form`` each of ``forms``, one process at a time.

    A module and its optimizer, which an NNX loop has, are no checkpoint of Linen's: only the training
    is compared then.

    Raises:
      ProgramError: the rewriter did not do its job.
    """
    verdicts: list[Verdict] = []
    tests: list[tuple[str, str, ComparedTests]] = []
    failing: list[str] = []
    for example in dict.fromkeys(one.example for one in programs):
        tree = before(example, source, runner.cache)
        afters = [rewritten(tree, form, runner.cache, loop) for form in forms]
        for program in (one for one in programs if one.example == example):
            verdicts += _program(runner, program, tree, afters, log)
        if with_tests:
            found, not_passing = _tests(runner, tree, afters, log)
            tests += found
            failing += not_passing
    return Verdicts(tuple(verdicts), tuple(tests), tuple(failing))


def _program(
    runner: Runner, program: Program, tree: Tree, afters: Sequence[Tree], log: Log
) -> list[Verdict]:
    log(f"{program.name}: before")
    error = runner.before(program, tree)
    found: list[Verdict] = []
    for after in afters:
        same = next((one for one in found if same_text(one.tree, after)), None)
        if same is not None:
            found.append(replace(same, tree=after))
            continue
        log(f"{program.name}: {after.side}")
        found.append(_verdict(runner, program, tree, after, error))
        log(f"{program.name}: {after.side}: {'the same' if found[-1].ok else 'NOT the same'}")
    return found


def _verdict(runner: Runner, program: Program, tree: Tree, after: Tree, error: str) -> Verdict:
    if error:
        nothing = Compared(differences=("not run",))
        return Verdict(program, after, nothing, nothing, nothing, "", f"under Linen: {error}")
    is_nnx = after.loops == "nnx"
    error = runner.after(program, after, crossed=not is_nnx)
    if not error and not is_nnx:
        error = runner.back(program, tree, after)
    nothing = Compared(differences=("not run",))
    linen, new = runner.results(program, "before"), runner.results(program, after.side)
    back = runner.results(program, f"before-from-{after.side}")
    built = new / "fresh" / "built"
    return Verdict(
        program,
        after,
        compare(linen / "fresh", new / "fresh", counts=is_nnx),
        nothing if is_nnx else compare(linen / "again", new / "crossed"),
        nothing if is_nnx else compare(linen / "again", back / "back"),
        built.read_text(encoding="utf-8") if built.exists() else "",
        error,
    )


def _tests(
    runner: Runner, tree: Tree, afters: Sequence[Tree], log: Log
) -> tuple[list[tuple[str, str, ComparedTests]], list[str]]:
    name = tree.folder.name
    if not tree.tests:
        return [], []
    log(f"tests of {name}: before")
    linen = runner.tests(tree)
    failing = [
        f"{name}/{test}: {one.error or one.outcome}"
        for test, one in linen.items()
        if one.outcome != "passed"
    ]
    found: list[tuple[str, str, ComparedTests]] = []
    done: list[tuple[Tree, Outcomes]] = []
    for after in afters:
        now = next((out for one, out in done if same_text(one, after)), None)
        if now is None:
            log(f"tests of {name}: {after.side}")
            now = runner.tests(after)
        done.append((after, now))
        found.append((name, after.side, _kept(name, linen, now)))
    return found, failing


def _kept(name: str, linen: Outcomes, now: Outcomes) -> ComparedTests:
    """A file that can no longer be imported has one outcome: it is each of its tests'."""
    crashed = {test: one for test, one in now.items() if "::" not in test}
    by_file = {test: crashed.get(test.split("::")[0]) for test in linen}
    return compare_tests(name, linen, {t: one for t, one in by_file.items() if one} | now)
