"""How many axes the arguments of a call have, as the code that uses them proves.

``x.mean(1)`` keeps the last axis of ``x`` when ``x`` has three axes and not when it has two. What
runs in every call and fails otherwise says which: ``b, t, c = x.shape``, ``x.transpose(0, 2, 1)``,
``einsum("btc,cd->btd", x, w)``, ``jnp.concatenate([cls, x], axis=1)`` with a known ``cls``. Three
proofs are weaker than that, and as strong as the code they are read off:

* a loop over fields runs at least once;
* ``x.shape[:2]`` and ``x.shape[-2:]`` are written of an array that has two axes;
* a convolution or pooling is given one batch axis, not none and not several.

A class is analysed again with what its first analysis proved, so that a proof also counts before the
line that it stands on. Annotations, comments and names prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.values import Array, Value


@dataclass(frozen=True)
class Rank:
    """The number of axes of an argument: at least so many, or exactly, or as what it is given to usually has."""

    least: int = 0
    exact: int | None = None
    usual: int | None = None

    def both(self, other: Rank) -> Rank:
        """What two proofs say together; of two numbers of a kind the first."""
        exact = self.exact if self.exact is not None else other.exact
        usual = self.usual if self.usual is not None else other.usual
        return Rank(max(self.least, other.least), exact, usual)

    def below(self, more: int) -> Rank:
        """That of the argument of which an array with this rank has ``more`` axes."""
        exact = None if self.exact is None else self.exact - more
        return Rank(self.least - more, exact, None if self.usual is None else self.usual - more)


Proofs = dict[tuple[str, str], Rank]  # by method and path of the argument


def together(one: Mapping[tuple[str, str], Rank], other: Mapping[tuple[str, str], Rank]) -> Proofs:
    """What two say of the same arguments."""
    none = Rank()
    return {key: one.get(key, none).both(other.get(key, none)) for key in {**one, **other}}


@dataclass
class Ranks:
    """What one analysis knows and proves about the ranks of its arguments."""

    known_ranks: Mapping[tuple[str, str], Rank] = field(default_factory=dict)
    proofs: Proofs = field(default_factory=dict)
    method: str = "__call__"
    lacks_ranks: bool = False  # an answer was not given because a rank was not known
    certain: bool = True  # what runs now runs in every call of the method

    @property
    def has_gains(self) -> bool:
        """Whether another analysis would know more."""
        return self.lacks_ranks and any(
            rank.both(self.known_ranks.get(key, Rank())) != self.known_ranks.get(key)
            for key, rank in self.proofs.items()
        )

    def together(self) -> Proofs:
        """What was known, and what was proved."""
        return together(self.known_ranks, self.proofs)

    @contextmanager
    def uncertain(self) -> Iterator[None]:
        """Run what may be left out, or may fail and be caught."""
        before, self.certain = self.certain, False
        try:
            yield
        finally:
            self.certain = before

    def prove(
        self,
        array: Array,
        *,
        least: int = 0,
        exact: int | None = None,
        usual: int | None = None,
    ) -> None:
        """Note that ``array`` has so many axes."""
        if array.rank is not None or array.origin is None or not self.certain:
            return
        path, more = array.origin
        found = Rank(least, exact, usual).below(more)
        key = (self.method, path)
        self.proofs[key] = self.proofs.get(key, Rank()).both(found)

    def with_rank(self, array: Array) -> Array:
        """The array with what is known of its rank."""
        if array.rank is not None or array.origin is None:
            return array
        path, more = array.origin
        rank = self.known_ranks.get((self.method, path))
        if rank is None:
            return array
        if rank.exact is not None and rank.exact + more >= 0:
            return with_fixed_rank(array, rank.exact + more)
        if rank.usual is not None and rank.usual + more > 0:
            return array.with_one_batch_axis(rank.usual + more)
        return replace(array, least=max(array.least, rank.least + more))

    def want(self, array: Value, operands: Iterable[Value]) -> None:
        """Note that the last axis of ``array`` may be known once the operands' ranks are."""
        if isinstance(array, Array) and array.axis(-1) is None:
            arrays = [as_array(one) for one in operands]
            self.lacks_ranks |= any(one is not None and not one.has(1) for one in arrays)

    def behind(self, array: Array, axis: int, more: int = 0) -> Array:
        """The array after something happened at ``axis`` of it, of unknown rank."""
        self.lacks_ranks |= array.least_behind(axis) <= axis + 1
        return array.behind(axis, more)


def with_fixed_rank(array: Array, rank: int) -> Array:
    """The array, known to have ``rank`` axes."""
    return replace(array, rank=rank, tail=array.tail[max(len(array.tail) - rank, 0) :])


def is_row(array: Array) -> bool:
    """Whether an array ends with the last axis of an argument that has one axis more.

    Stacked in front, it still does where it is a number and the argument a vector.
    """
    path, more = array.origin or ("", 0)
    return more == -1 and array.axis(-1) == ex.input_size(path, -1)
