"""The verdicts as a table."""

from __future__ import annotations

from benchmarks.programs.comparing import Compared
from benchmarks.programs.judging import Verdict, Verdicts

HEAD = "| program | form | classes | training | Linen's checkpoint after | the reverse | nn.build |"


def table(verdicts: Verdicts) -> str:
    """Rows per program and form, then the programs' tests, then what is wrong."""
    lines = [HEAD, "|---|---|---|---|---|---|---|"]
    lines += [_row(one) for one in verdicts.programs]
    if verdicts.tests:
        lines += [
            "",
            "| tests of | form | pass under Linen | pass rewritten |",
            "|---|---|---|---|",
        ]
        groups = dict.fromkeys((example, form) for example, form, _ in verdicts.tests)
        for example, form in groups:
            parts = [one for e, f, one in verdicts.tests if (e, f) == (example, form)]
            passed, kept = sum(len(one.passed) for one in parts), sum(one.kept for one in parts)
            lines.append(f"| {example} | {form} | {passed} | {kept} |")
    loops = {one.program.example: one.tree.loops for one in verdicts.programs if one.tree.loops}
    if loops:
        lines += ["", "| example | loop |", "|---|---|"]
        lines += [f"| {example} | {loop} |" for example, loop in loops.items()]
    wrong = [line for one in verdicts.programs for line in _wrong(one)]
    wrong += [
        f"- {example} ({form}): {name}: {error}"
        for example, form, one in verdicts.tests
        for name, error in one.lost.items()
    ]
    for title, found in (
        ("wrong", wrong),
        ("tests that do not pass under Linen here, which count as neither",
         [f"- {line}" for line in verdicts.failing]),
    ):  # fmt: skip
        if found:
            lines += ["", f"{title} ({len(found)}):", *found]
    right = sum(one.ok for one in verdicts.programs)
    lines += ["", f"{right} of {len(verdicts.programs)} the same"]
    return "\n".join(lines) + "\n"


def _row(one: Verdict) -> str:
    cells = [one.program.name, one.tree.side, one.tree.forms]
    cells.append(_cell(one.training))
    if one.tree.loops == "nnx":
        return f"| {' | '.join([*cells, *['not compared'] * 2, 'a module'])} |"
    cells += [_cell(part) for part in (one.forward, one.back)]
    return f"| {' | '.join([*cells, one.built or 'explicit'])} |"


def _cell(part: Compared) -> str:
    if not part.ok:
        return "**different**"
    texts = f", {part.texts} texts" if part.texts else ""
    return f"{part.losses} losses, {part.scalars} numbers{texts}, {part.arrays} arrays equal"


def _wrong(one: Verdict) -> list[str]:
    where = f"- {one.program.name} ({one.tree.side})"
    lines = [f"{where}: {one.error}"] if one.error else []
    if one.tree.loops == "nnx":
        return [*lines, *(f"{where}: training: {text}" for text in one.training.differences)]
    named = {"training": one.training, "after": one.forward, "the reverse": one.back}
    lines += [f"{where}: {name}: {text}" for name, p in named.items() for text in p.differences]
    if "lazy" in one.tree.forms and not one.built.startswith(("equal", "runs")):
        lines.append(f"{where}: nn.build: {one.built or 'not run'}")
    return lines
