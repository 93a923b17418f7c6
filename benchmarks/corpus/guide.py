"""Flax's own migration guide: take its Linen snippets, rewrite each, and run what comes out.

A snippet stands in the left column of a ``codediff`` directive. It runs after the earlier snippets
that define the names it uses, and before the guide's own hidden check when one follows.
"""

from __future__ import annotations

import ast
import builtins
import re
import shutil
import subprocess
import symtable
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import fetch
from benchmarks.corpus.packages import Package, requirements
from benchmarks.corpus.rewriting import last_line, rewrite, tool_environment

if TYPE_CHECKING:
    from benchmarks.corpus.run import Options

_FLAX = "flax==0.12.8"
_PAGE = "docs_nnx/migrating/linen_to_nnx.rst"

# The guide shows these calls in a comment or not at all; without them the snippet only defines.
_CALLS = {
    "Model": "Model(5, 7).init(jax.random.key(0), jnp.ones((2, 3)), training=False)\n",
    "RNNCell": "RNNCell(5).init(jax.random.key(0), jnp.ones((2, 5)), jnp.ones((2, 3)))\n",
    "MLP": "variables = model.init(jax.random.key(0), x=jnp.ones((1, 64)), training=False)\n"
    "y = model.apply(variables, x=jnp.ones((1, 64)), training=False)\n"
    "assert y.shape == (1, 64)\n",
}


@dataclass(frozen=True)
class Snippet:
    """One Linen snippet: its own text, and the whole program it runs in."""

    name: str
    text: str
    program: str


def snippets(page: str) -> list[Snippet]:
    """Return the Linen snippets of the guide's source text, in order."""
    setup = ""
    earlier: list[str] = []
    found: list[Snippet] = []
    for kind, text in _blocks(page):
        if kind == "setup":
            setup = text
        elif kind == "check":
            last = found.pop()
            found.append(Snippet(last.name, last.text, f"{last.program}\n{text}"))
        else:
            name = f"{len(found) + 1:02d}-{_title(text)}"
            needed = _needed(text, earlier)
            program = "\n".join([setup, *needed, text, _call(text)])
            found.append(Snippet(name, text, program))
            earlier.append(text)
    return found


def run(options: Options, log: Callable[[str], None]) -> dict[str, Any]:
    """Return ``{"schema", "set", "cases": [{"case", "rewritten", "ok", "detail"}]}``."""
    python = fetch.environment(options.cache, requirements("guide"), log)
    page = (fetch.sdist(options.cache, _FLAX, python, log) / _PAGE).read_text(encoding="utf-8")
    rows = []
    for snippet in snippets(page):
        if options.only in (None, snippet.name):
            log(f"guide: {snippet.name}")
            rows.append(_row(snippet, options.cache / "guide" / snippet.name, python, options))
    return {"schema": 1, "set": "guide", "cases": rows}


def _row(snippet: Snippet, folder: Path, python: Path, options: Options) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    before = folder / "before"
    before.mkdir(parents=True)
    (before / "snippet.py").write_text(snippet.program, encoding="utf-8")
    row = {"case": snippet.name, "rewritten": False, "ok": False, "detail": ""}
    error = _run_program(before, python, options.timeout)
    if error is not None:
        return {**row, "detail": f"Linen: {error}"}
    package = Package(snippet.name, "guide", "flax", _FLAX.split("==")[1])
    result = rewrite(package, before, folder / "output", options.timeout)
    if result.error is not None:
        return {**row, "detail": f"rewrite: {result.error}"}
    left = _left(result.report)
    error = _run_program(result.after, python, options.timeout)
    return {**row, "rewritten": not left, "ok": error is None and not left, "detail": error or left}


def _left(report: dict[str, Any]) -> str:
    """Say what of a snippet was not rewritten; empty when all of it was."""
    for entry in report["classes"]:
        if entry["outcome"] != "rewritten":
            return f"class {entry['name']} {entry['outcome']}: {entry.get('reason') or ''}"
    for kind in ("references", "call_sites"):
        rest = report[kind]["total"] - report[kind]["rewritten"]
        if rest:
            messages = [f["message"] for f in report["findings"] if f["outcome"] != "rewritten"]
            return f"{rest} {kind} left: {messages[0] if messages else ''}"
    return ""


def _run_program(folder: Path, python: Path, timeout: float) -> str | None:
    """Run the program in ``folder``; return its error as one line, or None."""
    command = [str(python), "-W", "ignore", str(folder / "snippet.py")]
    environment = tool_environment()
    environment.pop("PYTHONSAFEPATH")
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not finished after {timeout:g} s"
    return None if done.returncode == 0 else last_line(done.stderr)


def _blocks(page: str) -> Iterator[tuple[str, str]]:
    """Yield the guide's set-up, its snippets' Linen halves, and its hidden Linen checks."""
    for match in re.finditer(r"^\.\. (\w+)::(.*)\n((?:[ \t]+.*\n|\n)*)", page, re.MULTILINE):
        directive, groups, body = match.groups()
        text = re.sub(r"^\s*:\w+:.*\n", "", textwrap.dedent(body), flags=re.MULTILINE).strip("\n")
        if directive == "testsetup" and "Linen" in groups:
            yield "setup", f"{text}\n"
        elif directive == "codediff":
            yield "snippet", text.split("\n---\n")[0].rstrip() + "\n"
        elif directive == "testcode" and groups.strip() == "Linen":
            yield "check", f"{text}\n"


def _needed(text: str, earlier: list[str]) -> list[str]:
    """Return the earlier snippets that define what ``text`` uses, the latest of each name."""
    chosen: set[int] = set()
    pending = [(name, len(earlier)) for name in _free(text)]
    while pending:
        name, before = pending.pop()
        for index in range(before - 1, -1, -1):
            if name in _bound(earlier[index]):
                if index not in chosen:
                    chosen.add(index)
                    pending += [(used, index) for used in _free(earlier[index])]
                break
    return [earlier[index] for index in sorted(chosen)]


def _bound(text: str) -> set[str]:
    """Return the names that a snippet defines at its top level."""
    names: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {name.id for name in _names(node) if isinstance(name.ctx, ast.Store)}
    return names


def _free(text: str) -> set[str]:
    """Return the global names that a snippet reads before, or without, binding them itself."""
    table = symtable.symtable(text, "snippet", "exec")
    inside = {name for child in table.get_children() for name in _globals(child)}
    free = inside - _bound(text)
    bound: set[str] = set()
    for node in ast.parse(text).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            loaded = {name.id for name in _names(node) if isinstance(name.ctx, ast.Load)}
            free |= loaded - bound
        bound |= _bound(ast.unparse(node))
    return free - set(dir(builtins))


def _globals(table: symtable.SymbolTable) -> set[str]:
    own = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return own.union(*(_globals(child) for child in table.get_children()))


def _names(node: ast.AST) -> list[ast.Name]:
    return [name for name in ast.walk(node) if isinstance(name, ast.Name)]


def _call(text: str) -> str:
    """Return a call for a snippet that only defines classes."""
    body = ast.parse(text).body
    classes = [node.name for node in body if isinstance(node, ast.ClassDef)]
    if not classes or any("init" in ast.dump(node) for node in body if _is_use(node)):
        return ""
    return next((_CALLS[name] for name in reversed(classes) if name in _CALLS), "")


def _is_use(node: ast.stmt) -> bool:
    return not isinstance(node, ast.ClassDef | ast.Import | ast.ImportFrom)


def _title(text: str) -> str:
    defined = [
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    ]
    return defined[-1] if defined else "use"
