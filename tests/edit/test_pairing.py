"""Every ast node is paired with the LibCST node of the same text."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest

from nnx_migrate.edit.pairing import pair

PROGRAM = '''\
from a import b as c, d
import e.f, g as h

@decorator(1)
@other
class A(B, *C, metaclass=D, **options):
    """Text."""
    x: int = field(default=1); y = z = (1, *w)

    async def f(self, a, /, b: int = 2, *args: T, c=3, d, **kwargs) -> R:
        async with x as y, z: await q(*a, b, *c, k=1, **d)
        async for i in j: pass
        else: pass
        return a if b else lambda u, *v, w=1: u or v or (w or x) or y and z

def g(*, only=1):
    for i, in [*a, b]:
        if a < b < c: break
        elif not d: continue
        else: del e
    else:
        while True: pass
        else: del a.b, c[0]
    try: raise E from None
    except (A, B) as e: raise
    except: pass
    else: assert x, "message"
    finally: global y
    try: pass
    except* C: pass
    match x:
        case a.b | 3 | None if y: pass
        case nn.Dense(a, features=c.d) if False: pass
        case {"k": v, **rest}: pass
        case [p, *q] as r: yield x
    x[1:2, ...], x[a:b], x[a,], x[::2], x[*a], x[(1, 2)]
    {**a, "b": c}; {*s, t}; {k: v for k in l if m if n for v in k}; [i async for i in j]
    yield from (y := a @ b); x += -1
    f"a{b!r:>{width}}c" "plain" f"{d.e=}"
'''
ROOT = Path(__file__).parents[2] / "nnx_migrate"
KINDS = (ast.Name, ast.Attribute, ast.Call, ast.Constant, ast.alias, ast.Subscript)


def texts_of(source: str) -> list[tuple[str, str]]:
    tree, module = ast.parse(source), cst.parse_module(source)
    found = []
    for mine, theirs in pair(tree, module).items():
        if not isinstance(mine, KINDS) or isinstance(mine, ast.alias):
            continue
        text = ast.get_source_segment(source, mine)
        bare = theirs.with_changes(lpar=[], rpar=[]) if hasattr(theirs, "lpar") else theirs
        if text is not None and not isinstance(theirs, cst.Element | cst.Arg):
            code = module.code_for_node(bare)  # without the indentation of what is around it
            found.append(("".join(text.split()), "".join(code.split())))
    return found


def test_pairs_have_the_same_text() -> None:
    # What stands in an f-string has no place of its own in ast before Python 3.12.
    program = PROGRAM[: PROGRAM.index('    f"a{')]
    assert len(texts_of(program)) > 90
    assert [one for one in texts_of(program) if one[0] != one[1]] == []


def test_every_statement_and_expression_is_paired() -> None:
    tree = ast.parse(PROGRAM)
    pairs = pair(tree, cst.parse_module(PROGRAM))
    patterns = {one for p in ast.walk(tree) if isinstance(p, ast.pattern) for one in ast.walk(p)}
    formatted = {
        one
        for f in ast.walk(tree)
        if isinstance(f, ast.JoinedStr)
        for part in f.values
        for one in ast.walk(part)
    }
    left = [
        ast.dump(one)
        for one in ast.walk(tree)
        if isinstance(one, ast.expr | ast.stmt | ast.keyword | ast.alias | ast.arg)
        and one not in pairs
        and one not in patterns | formatted
    ]
    assert left == []


def test_names_in_class_patterns_and_f_strings_are_paired() -> None:
    tree = ast.parse(PROGRAM)
    pairs = pair(tree, cst.parse_module(PROGRAM))
    named = {ast.unparse(one) for one in pairs if isinstance(one, ast.Attribute)}
    assert {"nn.Dense", "c.d", "a.b", "d.e"} <= named


def test_only_what_leads_to_the_wanted_places_is_walked() -> None:
    tree = ast.parse(PROGRAM)
    wanted = next(n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "decorator")
    pairs = pair(tree, cst.parse_module(PROGRAM), [wanted])
    assert wanted in pairs
    assert len(pairs) < 10


@pytest.mark.parametrize("path", sorted(ROOT.glob("source/*.py")), ids=lambda path: path.name)
def test_files_of_this_project_pair(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert [one for one in texts_of(source) if one[0] != one[1]] == []
