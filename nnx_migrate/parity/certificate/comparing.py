"""Compare a certificate with one of the same command that was made just now. Loads no jax."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.parity.certificate.data import Certificate, Leaf, Side
from nnx_migrate.parity.certificate.provenance import differences as circumstances

_NONE = "none"


@dataclass(frozen=True)
class Entries:
    """One kind of entry, each as text by name; ``exact`` ones are only equal where the same was run.

    What is no ``proof`` says nothing about the models.
    """

    kind: str
    texts: Mapping[str, str]
    exact: bool = False
    proof: bool = True


@dataclass(frozen=True)
class Verification:
    """What differs, one line each; how many entries of each kind are equal, and why others were left out.

    ``is_other_parity``: another source of parity made the one than the other.
    """

    differences: tuple[str, ...]
    equal: Mapping[str, int]
    circumstances: tuple[str, ...]
    is_other_parity: bool

    @property
    def ok(self) -> bool:
        """Whether something was compared, and all of it is equal."""
        return not self.differences


def compare(old: Certificate, new: Certificate) -> Verification:
    """Compare every entry, those that need the same versions and machine only where these are the same."""
    apart = circumstances(old.provenance, new.provenance)
    lines: list[str] = []
    equal: dict[str, int] = {}
    proofs = 0
    other = old.mutation_score.source != new.mutation_score.source
    for ours, theirs in zip(entries(old, not other), entries(new, not other), strict=True):
        if apart and ours.exact:
            continue
        found = list(_apart(ours, theirs))
        lines += found
        equal[ours.kind] = len({*ours.texts, *theirs.texts}) - len(found)
        proofs += equal[ours.kind] if ours.proof else 0
    if not lines and not proofs:
        lines.append("nothing was compared: both certificates are empty")
    return Verification(tuple(lines), equal, apart, other)


def entries(one: Certificate, with_score: bool) -> tuple[Entries, ...]:
    """All that two certificates are compared by, in the order in which differences are named.

    The score is among them where it is one of the same parity.
    """
    sides = {"Linen": one.linen, "NNX": one.nnx}
    return (
        Entries("verdict", _verdict(one), proof=False),
        Entries("checks", {c.name: f"{c.status}, {c.leaves} compared" for c in one.checks}, proof=False),
        Entries("modes", dict.fromkeys(one.modes, "run"), proof=False),
        Entries("paths", dict(_leaves(sides, False))),
        Entries("specs", dict(_specs(sides))),
        Entries("values", dict(_leaves(sides, True)), exact=True),
        Entries("losses", {f"{s} {n}": x for s, side in sides.items() for n, x in side.losses.items()}, exact=True),
        Entries("programs", {f"{s} {n}": x for s, side in sides.items() for n, x in side.programs.items()}, exact=True),
        Entries("rules used", dict.fromkeys(one.rules_used, "used"), exact=True, proof=False),
        Entries("not checked", dict.fromkeys(one.not_checked, "named"), exact=True, proof=False),
        Entries("mutation score", _score(one, with_score), exact=True, proof=False),
    )  # fmt: skip


def _verdict(one: Certificate) -> dict[str, str]:
    sides = {"Linen": one.linen.model, "NNX": one.nnx.model}
    return {
        "verdict": one.verdict,
        "ok": str(one.ok).lower(),
        "model": one.model,
        "mesh": one.mesh or _NONE,
        "without values": one.without_values or _NONE,
        **sides,
    }


def _score(one: Certificate, with_score: bool) -> dict[str, str]:
    score = one.mutation_score
    return (
        {"state": score.state, **{n: str(t) for n, t in score.sizes.items()}} if with_score else {}
    )


def _leaves(sides: Mapping[str, Side], values: bool) -> Iterator[tuple[str, str]]:
    """Shape and dtype of every array, or the hash of its values."""
    for name, side in sides.items():
        stages: dict[str, Mapping[str, Leaf]] = {
            "initial": side.initial,
            "output": side.outputs,
            "gradient": side.gradients,
            "after the steps": side.after_steps,
        }
        for stage, leaves in stages.items():
            for path, leaf in leaves.items():
                entry = f"{name} {stage} {path}".rstrip()
                if not values:
                    yield entry, f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
                elif leaf.sha256 is not None:
                    yield entry, leaf.sha256


def _specs(sides: Mapping[str, Side]) -> Iterator[tuple[str, str]]:
    for name, side in sides.items():
        for path, one in side.specs.items():
            names = "none" if one.names is None else ", ".join(n or "-" for n in one.names)
            after = f", after a step {one.after_step}" if one.after_step is not None else ""
            yield f"{name} {path}", f"({names}) {one.spec} placed {one.placed}{after}"


def _apart(ours: Entries, theirs: Entries) -> Iterator[str]:
    for name in dict.fromkeys((*ours.texts, *theirs.texts)):
        old, new = ours.texts.get(name, _NONE), theirs.texts.get(name, _NONE)
        if old != new:
            yield f"{ours.kind}: {name}: {_short(old)} in the certificate, {_short(new)} now"


def _short(text: str) -> str:
    return text if len(text) < 64 or " " in text else f"{text[:12]}..."
