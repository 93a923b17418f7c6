"""Writes ``docs/constructs``: ``python -m tests.constructs.pages``.

A page per construct: what its file says, its example in both forms as ``rewrite`` makes them, and
code in which it is lazy, with the reason that ``rewrite`` reports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from nnx_migrate.constructs import all_constructs
from nnx_migrate.constructs.common.rules import (
    CallRule,
    Construct,
    Layer,
    NameRule,
    RefusalRule,
    Rule,
)
from nnx_migrate.model import Form, RewriteResult
from tests.rewrite.projects import rewrite_in_form

FOLDER = Path(__file__).parents[2] / "docs" / "constructs"
INDEX = """\
# Constructs

What becomes of each Linen construct in the explicit form, one page each, written from `nnx_migrate/constructs/`
by `python -m tests.constructs.pages`. `nnx-migrate explain NAME` says the same in a terminal.
"""
IMPORTS = {
    "nn": "import flax.linen as nn",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "partitioning": "from flax.linen import partitioning",
}


def program(text: str) -> str:
    """An example as a module, with the imports that it needs."""
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    imports = [line for name, line in IMPORTS.items() if name in names]
    return "\n".join(imports) + "\n\n\n" + text.strip("\n") + "\n"


def rewritten(text: str) -> RewriteResult:
    """What ``rewrite`` makes of an example."""
    return rewrite_in_form({"model.py": program(text)}, "auto")


def code(result: RewriteResult) -> str:
    """The new text of the only file."""
    (file,) = result.files
    assert file.code is not None, file.error
    return file.code


def pages() -> dict[str, str]:
    """Text of every page by file name."""
    found = {f"{name}.md": page(construct) for name, construct in all_constructs().items()}
    return {"README.md": index(), **found}


def title(construct: Construct) -> str:
    """The first sentence of what its file says."""
    return _plain(construct.doc or "").split("\n\n")[0].replace("\n", " ").rstrip(".")


def index() -> str:
    """The page that lists the others."""
    lines = [INDEX]
    for name, construct in all_constructs().items():
        lines.append(f"- [{title(construct)}]({name}.md)")
    return "\n".join(lines) + "\n"


def page(construct: Construct) -> str:
    """The page of one construct."""
    return "\n".join(
        [*_head(construct), *_example(construct), *_names(construct), *_lazy(construct)]
    )


def _head(construct: Construct) -> Iterator[str]:
    yield f"# {title(construct)}"
    yield ""
    _, _, rest = _plain(construct.doc or "").partition("\n\n")
    yield rest.strip() + "\n"


def _example(construct: Construct) -> Iterator[str]:
    if construct.example:
        yield f"## Linen\n\n```python\n{program(construct.example)}```\n"
        yield f"## Explicit\n\n```python\n{code(rewritten(construct.example))}```\n"


def _names(construct: Construct) -> Iterator[str]:
    yield "## Names\n"
    for rule in construct.rules:
        yield f"### {rule.name}\n\n```python\n{_diff(rule)}```\n"
        yield from _facts(rule)


def _diff(rule: Rule) -> str:
    after = rule.example.after.splitlines()
    return f"{rule.example.before}\n" + "".join(f"# -> {line}\n" for line in after)


def _facts(rule: Rule) -> Iterator[str]:
    match rule:
        case Layer():
            yield from _layer(rule)
        case RefusalRule():
            for symbol, refusal in rule.refusals.items():
                yield f"- `{symbol}`: {refusal.recipe}"
            yield ""
        case NameRule() | CallRule():
            yield ", ".join(f"`{symbol}`" for symbol in sorted(rule.symbols)) + "\n"


def _layer(layer: Layer) -> Iterator[str]:
    yield f"- fields: {_listed(layer.fields)}"
    if layer.sizes or layer.optional_sizes:
        optional = [f"{one} (where it is another)" for one in layer.optional_sizes]
        yield f"- sizes: {', '.join([*layer.sizes, *optional])}"
    if layer.at_call:
        yield f"- moves to the call where it depends on it: {_listed(layer.at_call)}"
    if layer.attributes is not None:
        kept = [f"`{a}`" if a == b else f"`{a}` as `{b}`" for a, b in layer.attributes.items()]
        yield f"- fields that can be read of the built layer: {', '.join(kept) or 'none'}"
    for field, recipe in layer.recipes.items():
        yield f"- no counterpart: `{field}`; {recipe}"
    yield ""


def _lazy(construct: Construct) -> Iterator[str]:
    if construct.lazy:
        yield "## Lazy\n"
    for text in construct.lazy:
        reasons = [one for one in rewritten(text).classes if one.form is Form.LAZY]
        yield f"```python\n{text.strip()}\n```\n"
        yield from (f"- `{one.name.partition('.')[2]}`: {one.reason}" for one in reasons)
        yield ""


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{one}`" for one in names)


def _plain(doc: str) -> str:
    return doc.replace("``", "`").strip()


def main() -> None:
    """Write all pages, and remove those of constructs that are gone."""
    FOLDER.mkdir(exist_ok=True)
    found = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in found:
            path.unlink()
    for name, text in found.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
