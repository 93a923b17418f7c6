"""Projects as texts, rewritten in memory, for the tests of the engine and its parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.comments.keeping import changed_statements, lost_comments
from nnx_migrate.model import FileStatus, RewriteResult
from nnx_migrate.rewrite.engine import rewrite_project
from nnx_migrate.rewrite.forms import rewrite_in
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.rewrite.single import SourceResult
from nnx_migrate.source.files import SourceText

ROOT = Path("/project")  # no file is read: only a name

LINEN = "import flax.linen as nn\n\n\n"


def dense(name: str = "Layer", width: int = 2, base: str = "nn.Module") -> str:
    """A class that is rewritten."""
    return (
        f"class {name}({base}):\n"
        "    @nn.compact\n"
        "    def __call__(self, x):\n"
        f"        return nn.Dense({width})(x)\n\n\n"
    )


def looped(name: str = "Scanned", body: str = "x", fields: str = "") -> str:
    """A class that is refused: it lifts a loop over itself, with options nobody sees."""
    return (
        f"class {name}(nn.Module):\n{fields}"
        "    @nn.compact\n"
        "    def __call__(self, x):\n"
        f"        x = {body}\n"
        "        return nn.while_loop(lambda m, c: c.sum() < 9, lambda m, c: c + 1, self, x, **{})\n\n\n"
    )


def caller(name: str, body: str, fields: str = "") -> str:
    """A class whose compact call returns ``body``."""
    return (
        f"class {name}(nn.Module):\n{fields}"
        "    @nn.compact\n"
        "    def __call__(self, x):\n"
        f"        return {body}\n\n\n"
    )


def one_line(text: str) -> str:
    """Text without the line ends and indentation inside of it: what it says, however it is laid out."""
    text = re.sub(r"([(\[{])\s+", r"\1", text)
    return re.sub(r"\s+", " ", re.sub(r",?\s+([)\]}])", r"\1", text))


def source(path: str, text: str) -> SourceText:
    """One file of the project."""
    return SourceText(ROOT / path, text)


def explicit_source(text: str) -> SourceResult:
    """One text rewritten by the explicit engine alone: what it cannot prove stays Linen."""
    result = rewrite({"source.py": text})
    (file,) = result.files
    if file.status is FileStatus.FAILED:
        raise ValueError(file.error)
    return SourceResult(
        file.code or text, result.findings, result.classes, result.references, result.call_sites
    )


def rewrite(
    files: Mapping[str, str], context: Mapping[str, str] | None = None, **options: Any
) -> RewriteResult:
    """Rewrite ``files``; ``context`` is only read."""
    request = RewriteRequest(
        ROOT,
        tuple(source(path, text) for path, text in files.items()),
        tuple(source(path, text) for path, text in (context or {}).items()),
        base=ROOT,
        **options,
    )
    result = rewrite_project(request)
    check_kept(files, result)
    return result


def check_kept(files: Mapping[str, str], result: RewriteResult) -> None:
    """No comment is lost, and what is the same to Python is the same text."""
    for file in result.files:
        if file.code is not None and file.path in files:
            before = files[file.path]
            assert lost_comments(before, file.code) == [], file.code
            assert changed_statements(before, file.code) == [], file.code


def rewrite_in_form(files: Mapping[str, str], form: str, names: str = "linen") -> RewriteResult:
    """Rewrite ``files`` as the command does with ``--form`` and ``--names``."""
    own = tuple(source(path, text) for path, text in files.items())
    return rewrite_in(RewriteRequest(ROOT, own, base=ROOT), form, names=names)


def outcomes(result: RewriteResult) -> dict[str, str]:
    """Outcome of every class by its qualified name."""
    return {one.name: one.outcome.value for one in result.classes}


def texts(result: RewriteResult, files: Mapping[str, str]) -> dict[str, str]:
    """The project after the run."""
    new = {one.path: one.code for one in result.files if one.code is not None}
    return {path: new.get(path, text) for path, text in files.items()}


def only(result: RewriteResult) -> str | None:
    """New text of the only file; None when it is unchanged."""
    (file,) = result.files
    return file.code


def imports_of(text: str) -> list[str]:
    """Import lines of a text, in order."""
    return [line for line in text.splitlines() if line.lstrip().startswith(("import", "from"))]


USER = "import flax.linen as nn\nimport ops\n\n\n"


def run_ops(ops: str, user: str) -> tuple[dict[str, str], dict[str, str]]:
    """Outcomes and texts of ``ops.py`` and of ``user.py``, whose classes use its functions."""
    files = {"ops.py": ops, "user.py": USER + user}
    result = rewrite(files)
    return outcomes(result), texts(result, files)


def ops_reason(ops: str, user: str) -> str:
    """Why class ``A`` of ``user.py`` is refused."""
    found = {one.name: one for one in rewrite({"ops.py": ops, "user.py": USER + user}).classes}
    assert found["user.A"].outcome.value == "refused"
    return found["user.A"].reason or ""
