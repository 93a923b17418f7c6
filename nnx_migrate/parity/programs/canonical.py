"""Canonical StableHLO text: what is left when names without meaning are taken out.

Canonical are: module name, ``jax.result_info``/``jax.arg_info`` attributes, names of private
functions (numbered in order of appearance), locations and white space. Everything else counts:
operations, their order and attributes, types, constants, shardings.
"""

from __future__ import annotations

import re

_MODULE = re.compile(r"^module @\S+", re.MULTILINE)
_ATTRIBUTE = r"jax\.(?:result_info|arg_info) = \"(?:[^\"\\]|\\.)*\""
# Alone in its dictionary, before other attributes, after other attributes.
_INFO = re.compile(rf" \{{{_ATTRIBUTE}\}}|{_ATTRIBUTE}, |, {_ATTRIBUTE}")
_LOCATION = re.compile(
    r" loc\((?:[^()\"]|\"(?:[^\"\\]|\\.)*\"|\([^()]*\))*\)|^#loc.*\n", re.MULTILINE
)
_PRIVATE = re.compile(r"func\.func private @([\w.$\-]+|\"(?:[^\"\\]|\\.)*\")")
_SYMBOL = re.compile(r"@([\w.$\-]+|\"(?:[^\"\\]|\\.)*\")")


def canonical(text: str) -> str:
    """Return the canonical form of a StableHLO module as ``jax.jit(f).lower(...).as_text()``."""
    text = _LOCATION.sub("", text)
    text = _MODULE.sub("module", text)
    text = _INFO.sub("", text)
    text = _renumber(text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


def _renumber(text: str) -> str:
    private = set(_PRIVATE.findall(text))
    names: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in private:
            return match.group(0)
        return f"@f{names.setdefault(name, str(len(names)))}"

    text = _SYMBOL.sub(rename, text)
    # Functions are printed in the order of their old names' first use or definition; after
    # renaming, the order of definition must not matter either.
    head, *functions = re.split(r"(?m)^(?=  func\.func private @)", text)
    if not functions:
        return text
    *rest, last = functions
    last, brace = last.rstrip().removesuffix("}"), "}"
    return head + "".join(sorted([*rest, last.rstrip() + "\n"])) + brace


def first_line_apart(left: str, right: str) -> str:
    """Say where two canonical texts part."""
    ours, theirs = left.splitlines(), right.splitlines()
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False), 1):
        if one != other:
            left, right = one.strip(), other.strip()
            pairs = enumerate(zip(left, right, strict=False))
            place = next((at for at, (a, b) in pairs if a != b), min(len(left), len(right)))
            return f"line {number}: Linen `{_around(left, place)}`, NNX `{_around(right, place)}`"
    return f"Linen has {len(ours)} lines, NNX {len(theirs)}"


_SHOWN, _BEFORE = 160, 60  # characters of a line, and of those before what differs


def _around(line: str, place: int) -> str:
    """A line, or of a long one the part around a place."""
    if len(line) <= _SHOWN:
        return line
    start = max(min(place - _BEFORE, len(line) - _SHOWN), 0)
    end = start + _SHOWN
    return f"{'...' if start else ''}{line[start:end]}{'...' if end < len(line) else ''}"
