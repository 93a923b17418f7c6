"""How a module imports: Linen's names, and those of the project's other modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from hypothesis import strategies as st

_LINEN = re.compile(r"(?<![\w.\"'])nn\.(\w+)")
_IMPORT = "import flax.linen as nn\n"


@st.composite
def spelled(draw: st.DrawFn, text: str) -> str:
    """``text``, which says ``import flax.linen as nn``, in one of the spellings."""
    kind = draw(
        st.sampled_from(["as", "from", "linen", "dotted", "names", "mixed", "alias", "both"])
    )
    names = sorted(set(_LINEN.findall(text)))
    some = [one for one in ("Dense", "compact", "Module") if one in names]
    if kind == "from":
        return text.replace(_IMPORT, "from flax import linen as nn\n")
    if kind == "linen":
        return _with(text, "from flax import linen\n", r"linen.\1")
    if kind == "dotted":
        return _with(text, "import flax.linen\n", r"flax.linen.\1")
    if kind == "names" and names:
        return _with(text, f"from flax.linen import {', '.join(names)}\n", r"\1")
    if kind == "mixed" and some:
        text = text.replace(_IMPORT, f"{_IMPORT}from flax.linen import {', '.join(some)}\n")
        return re.sub(rf"(?<![\w.\"'])nn\.({'|'.join(some)})\b", r"\1", text)
    if kind == "alias":
        return _with(text, "import flax.linen as fnn\n", r"fnn.\1")
    if kind == "both":
        return text.replace(_IMPORT, "import flax\nfrom flax import linen as nn, struct\n").replace(
            "nn.Dense", "flax.linen.Dense"
        )
    return text


def _with(text: str, statement: str, name: str) -> str:
    head, _, rest = text.partition(_IMPORT)
    return head + statement + _LINEN.sub(name, rest)


def defined(text: str) -> list[str]:
    """Names that a text defines at its top."""
    tree = ast.parse(text)
    found = [one.name for one in tree.body if isinstance(one, ast.ClassDef | ast.FunctionDef)]
    for one in tree.body:
        if isinstance(one, ast.Assign):
            found += [target.id for target in one.targets if isinstance(target, ast.Name)]
    return found


@st.composite
def importing(
    draw: st.DrawFn, text: str, module: str, names: Sequence[str], package: str
) -> tuple[str, str]:
    """An import statement for what ``text`` uses of ``names``, and the text as it uses them."""
    used = [one for one in names if re.search(_use(one), text)]
    if not used:
        return "", text
    kind = draw(st.sampled_from(["from", "module", "alias", "renamed", "lines"]))
    full = f"{package}.{module}" if package else module
    relative = f".{module}" if package and draw(st.booleans()) else full
    if kind == "module":
        where = f"from {package or '.'} import {module}" if package else f"import {module}"
        return f"{where}\n", _prefixed(text, used, module)
    if kind == "alias":
        return f"import {full} as parts\n", _prefixed(text, used, "parts")
    if kind == "renamed":
        first = used[0]
        renamed = re.sub(_use(first), f"My{first}", text)
        listed = ", ".join([f"{first} as My{first}", *used[1:]])
        return f"from {relative} import {listed}\n", renamed
    if kind == "lines":
        listed = "".join(f"    {one},\n" for one in used)
        return f"from {relative} import (\n{listed})\n", text
    return f"from {relative} import {', '.join(used)}\n", text


def _use(name: str) -> str:
    return rf"(?<![\w.\"']){name}\b(?!\s*=[^=])"


def _prefixed(text: str, names: Sequence[str], module: str) -> str:
    for one in names:
        text = re.sub(_use(one), f"{module}.{one}", text)
    return text
