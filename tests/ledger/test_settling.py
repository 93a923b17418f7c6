"""The books balance, and a claim that the output contradicts is a violation."""

from __future__ import annotations

import pytest

from nnx_migrate.ledger import Count, Ledger, Source, count, settle
from nnx_migrate.model import Outcome, Tally

R, F, K = Outcome.REWRITTEN, Outcome.REFUSED, Outcome.KEPT

LINEN = """\
import flax.linen as nn

class A(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)

def run(key, x):
    return A().init(key, x)
"""
NNX = """\
from flax import nnx

class A(nnx.Module):
    def __init__(self, *, rngs):
        self.dense = nnx.Linear(3, 3, rngs=rngs)

def run(key, x):
    return nnx.state(A(rngs=nnx.Rngs(key)))
"""
STALE = NNX.replace("nnx.state(A(rngs=nnx.Rngs(key)))", "A().init(key, x)")
LEFTOVER = NNX.replace("def run", "    act = nn.relu\n\ndef run").replace(
    "from flax import nnx", "from flax import nnx, linen as nn"
)


def counted(text: str) -> Count:
    return count([Source("m.py", "m", text)])


def settled(
    before: str,
    after: str,
    classes: dict[str, Outcome],
    places: dict[tuple[str, int, int], Outcome] | None = None,
    calls: dict[tuple[str, int, int], Outcome] | None = None,
) -> Ledger:
    return settle(counted(before), counted(after), classes, places or {}, calls)


def test_a_whole_conversion_is_all_rewritten() -> None:
    ledger = settled(LINEN, NNX, {"m.A": R})
    assert ledger.references == Tally(total=3, rewritten=3)
    assert ledger.call_sites == Tally(total=1, rewritten=1)
    assert ledger.violations == ()


@pytest.mark.parametrize("outcome", [F, K])
def test_a_class_left_alone_gives_its_outcome_to_its_references(outcome: Outcome) -> None:
    ledger = settled(LINEN, LINEN, {"m.A": outcome})
    assert ledger.references == Tally(**{"total": 3, outcome.value: 3})
    assert ledger.call_sites == Tally(total=1, refused=1)
    assert ledger.violations == ()


def test_a_stale_call_of_a_converted_class_is_refused_though_nobody_says_so() -> None:
    ledger = settled(LINEN, STALE, {"m.A": R})
    assert ledger.call_sites == Tally(total=1, refused=1)
    assert ledger.violations == ()


def test_a_stale_call_claimed_rewritten_is_a_violation() -> None:
    ledger = settled(LINEN, STALE, {"m.A": R}, calls={("m.py", 9, 12): R})
    assert ledger.call_sites == Tally(total=1, refused=1)
    assert len(ledger.violations) == 1
    assert ledger.violations[0].startswith("m.py:9:12: the call site of init in m.run is reported")


def test_an_unconverted_class_reported_rewritten_is_a_violation() -> None:
    ledger = settled(LINEN, LINEN, {"m.A": R})
    assert ledger.references == Tally(total=3, refused=3)
    assert "m.py:3:1: m.A is reported rewritten, but is still a Linen class" in ledger.violations
    assert len(ledger.violations) == 4


def test_a_leftover_in_a_rewritten_class_is_a_violation_even_if_new() -> None:
    (violation,) = settled(LINEN, LEFTOVER, {"m.A": R}).violations
    assert "the output has a reference of flax.linen.relu in m.A" in violation


def test_a_place_outcome_cannot_excuse_a_leftover_in_a_rewritten_class() -> None:
    after = NNX.replace("nnx.Linear(3, 3, rngs=rngs)", "nn.Dense(3)")
    after = "import flax.linen as nn\n" + after
    ledger = settled(LINEN, after, {"m.A": R}, {("m.py", 6, 16): F})
    assert [one.split(" is ")[1] for one in ledger.violations] == [
        "reported rewritten, but the output still has it, at m.py:6:22"
    ]


def test_a_converted_class_may_keep_a_name_for_its_lazy_submodules() -> None:
    after = NNX.replace("nnx.Linear(3, 3, rngs=rngs)", "nn.Dense(3)")
    after = "import flax.linen as nn\n" + after
    kept = {("m.py", 6, 16)}
    found = settle(counted(LINEN), counted(after), {"m.A": R}, {}, staying=kept)
    assert found.violations == ()
    assert found.references.refused == 1


def test_its_constructor_and_its_call_may_both_have_that_name() -> None:
    kept = {("m.py", 6, 16)}
    for copies, violations in ((2, 0), (3, 1)):
        layers = ", ".join(["nn.Dense(3)"] * copies)
        after = "import flax.linen as nn\n" + NNX.replace("nnx.Linear(3, 3, rngs=rngs)", layers)
        found = settle(counted(LINEN), counted(after), {"m.A": R}, {}, staying=kept)
        assert len(found.violations) == violations


def test_a_class_reported_refused_but_converted_is_a_violation() -> None:
    ledger = settled(LINEN, NNX, {"m.A": F})
    assert ledger.references == Tally(total=3, rewritten=3)
    assert "m.py:3:1: m.A is reported refused, but is no Linen class in the output" in (
        ledger.violations
    )


def test_a_class_without_an_outcome_is_a_violation() -> None:
    assert settled(LINEN, LINEN, {}).violations == ("m.py:3:1: the Linen class m.A has no outcome",)


def test_a_class_whose_base_was_converted_away_is_a_violation() -> None:
    child = "\nclass B(A): ...\n"
    ledger = settled(LINEN + child, NNX + child, {"m.A": R, "m.B": F})
    assert ledger.violations == (
        "m.py:11:1: m.B is reported refused, but is no Linen class in the output",
    )


@pytest.mark.parametrize(
    ("after", "outcome"),
    [
        ("from flax import nnx\nact = nnx.relu\n", R),
        ("import flax.linen as nn\nact = nn.relu\n", F),
        ("import flax\nact = flax.linen.relu\n", F),
        ("from flax.linen import relu as act\n", R),
    ],
)
def test_a_reference_outside_classes_that_nobody_claims_is_found_out(
    after: str, outcome: Outcome
) -> None:
    (entry,) = settled("import flax.linen as nn\nact = nn.relu\n", after, {}).reference_entries
    assert entry.outcome is outcome
    assert not entry.is_claimed


def test_as_many_are_refused_as_survive() -> None:
    before = "import flax.linen as nn\nx = [nn.relu, nn.relu, nn.relu]\n"
    after = "import flax.linen as nn, jax\nx = [nn.relu, jax.nn.relu, nn.relu]\n"
    assert settled(before, after, {}).references == Tally(total=3, rewritten=1, refused=2)


def test_a_place_claimed_kept_that_is_gone_is_a_violation() -> None:
    before = "import flax.linen as nn\nact = nn.relu\n"
    ledger = settled(before, "act = None\n", {}, {("m.py", 2, 7): K})
    assert ledger.references == Tally(total=1, rewritten=1)
    assert [one.split(" is ")[1] for one in ledger.violations] == [
        "reported kept, which leaves it alone, but the output lacks it"
    ]


def test_a_claim_for_no_place_changes_nothing() -> None:
    ledger = settled(LINEN, NNX, {"m.A": R}, {("m.py", 1, 1): K})
    assert (ledger.references, ledger.violations) == (Tally(total=3, rewritten=3), ())


def test_a_reference_and_a_call_at_one_place_have_claims_of_their_own() -> None:
    before = "import flax.linen as nn\nx = nn.Dense(3).init(0)\n"
    place = ("m.py", 2, 5)
    ledger = settled(before, before, {}, {place: K}, {place: F})
    assert ledger.references == Tally(total=1, kept=1)
    assert ledger.call_sites == Tally(total=1, refused=1)


def test_an_output_that_does_not_parse_or_is_missing_is_a_violation() -> None:
    broken = settled(LINEN, "import flax\nx = (\n", {"m.A": R})
    assert "m.py: the output does not parse, though the input does" in broken.violations
    missing = settle(counted(LINEN), count([]), {"m.A": R}, {})
    assert "m.py: the output lacks this file" in missing.violations


def test_local_classes_may_be_named_as_python_does() -> None:
    before = "import flax.linen as nn\ndef f():\n    class L(nn.Module): ...\n"
    assert settled(before, before, {"m.f.<locals>.L": F}).violations == ()


def test_handles_survive_a_conversion_as_refused() -> None:
    before = LINEN.replace("A().init(key, x)", "A().init")
    after = STALE.replace("A().init(key, x)", "A().init")
    ledger = settled(before, after, {"m.A": R})
    assert [entry.outcome for entry in ledger.handle_entries] == [F]
    assert ledger.call_sites == Tally()
