"""The pages: a link that leads nowhere is worse than none."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)([^)\s]*)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    plain = (re.sub(r"[^\w\- ]", "", one.lower()) for one in _HEADING.findall(text))
    return {one.strip().replace(" ", "-") for one in plain}


def dead_links(page: Path, text: str) -> Iterator[str]:
    """Yield the links of a page whose file or heading is not there."""
    for link in _LINK.findall(_CODE.sub("", text)):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if not target.exists() or (
            anchor and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    assert list(dead_links(page, page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ("[x](README.md)", []),
        ("[x](README.md#limits)", []),
        ("[x](README.md#no-such-heading)", ["README.md#no-such-heading"]),
        ("[x](gone.md)", ["gone.md"]),
        ("`[x](gone.md)` and [y](https://example.com/gone.md)", []),
    ],
)
def test_a_link_to_nothing_is_found(text: str, dead: list[str]) -> None:
    assert list(dead_links(ROOT / "page.md", text)) == dead
