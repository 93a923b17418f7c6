"""What holds for every input: prose changes no count, and the books always balance."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nnx_migrate.ledger import Count, Source, count, settle
from nnx_migrate.model import Outcome

LINES = (
    "import flax.linen as nn",
    "from flax.linen import Dense as D",
    "class A(nn.Module):",
    "    width: int = 3",
    "    def __call__(self, x):",
    "        y = nn.Dense(3)(x)",
    "        return D(3)(y)",
    "def run(model, x: nn.Module):",
    "    model.apply({}, x)",
    "    return A().init(0, x)",
)
PROSE = ("# nn.Dense(3).init(0)", "", "    # flax.linen", "'nn.Dense'", '"""A().init(0)"""', "\x0c")
OUTPUTS = (
    "\n".join(LINES),
    "import flax.linen as nn\nfrom flax import nnx\nclass A(nnx.Module): ...\n",
    "import flax.linen as nn\nx = [nn.Dense, nn.Module]\ndef run(m): m.apply()\n",
    "x = (",
    "",
)


def counted(text: str) -> Count:
    return count([Source("m.py", "m", text)])


def shape(found: Count) -> list[tuple[str, str, bool]]:
    places = (*found.references, *found.call_sites, *found.classes)
    return [(one.symbol, one.scope, one.certain) for one in places]


@given(st.lists(st.tuples(st.integers(0, len(LINES)), st.sampled_from(PROSE)), max_size=8))
@settings(max_examples=60, deadline=None)
def test_comments_blank_lines_and_strings_never_change_the_counts(
    added: list[tuple[int, str]],
) -> None:
    lines = list(LINES)
    for at, prose in sorted(added, reverse=True):
        following = LINES[at] if at < len(LINES) else ""
        indent = " " * (len(following) - len(following.lstrip()))
        lines.insert(at, indent + prose.lstrip(" ") if prose.strip() else prose)
    assert shape(counted("\n".join(lines))) == shape(counted("\n".join(LINES)))


@given(
    st.sampled_from(OUTPUTS),
    st.sampled_from(OUTPUTS),
    st.dictionaries(st.sampled_from(["m.A", "m.B", "m.run"]), st.sampled_from(Outcome)),
    st.dictionaries(
        st.tuples(st.just("m.py"), st.integers(1, 10), st.integers(1, 20)),
        st.sampled_from(Outcome),
        max_size=20,
    ),
)
@settings(max_examples=150, deadline=None)
def test_the_books_balance_and_say_how_much_linen_is_left(
    before: str,
    after: str,
    classes: dict[str, Outcome],
    places: dict[tuple[str, int, int], Outcome],
) -> None:
    old, new = counted(before), counted(after)
    ledger = settle(old, new, classes, places)
    assert ledger.references.balanced
    assert ledger.call_sites.balanced
    assert ledger.references.total == len(old.references)
    assert ledger.call_sites.total == len(old.call_sites)
    if not ledger.violations:
        left = ledger.references.total - ledger.references.rewritten
        assert left == len(new.references)
