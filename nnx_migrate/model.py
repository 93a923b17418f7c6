"""Plain data that every part of nnx-migrate agrees on: frozen types, no logic.

The shapes here are the ones of the JSON reports (``"schema": 1``); see docs/rewrite.md, "Reports".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

JOURNAL_FOLDER = ".nnx-migrate"  # at a project's root: what in-place runs replaced


class Outcome(StrEnum):
    """What became of a class, a reference to Linen, or a call site of a Linen module."""

    REWRITTEN = "rewritten"
    REFUSED = "refused"  # left untouched, with a reason and a place
    KEPT = "kept"  # left untouched because the user said so


class Confidence(StrEnum):
    """How sure a rewritten class is: proven by rule, or worth a person's look."""

    EXACT = "exact"
    REVIEW = "review"


class Form(StrEnum):
    """How a rewritten class is written: as people write NNX, or as it was, on NNX modules."""

    EXPLICIT = "explicit"  # children made in ``__init__``, with their sizes and ``rngs``
    LAZY = "lazy"  # its text imports ``nnx_migrate.linen``: submodules are built in the first call


class FileStatus(StrEnum):
    """What became of a file."""

    REWRITTEN = "rewritten"
    UNCHANGED = "unchanged"
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    """One remark about one place. Lines and columns count from 1; ``path`` is relative to PATH."""

    rule: str
    path: str
    line: int
    column: int
    outcome: Outcome
    message: str


@dataclass(frozen=True)
class SizeResult:
    """One size that a submodule needs: what is passed for it, and where that comes from.

    ``source`` is static (read from the code), recorded (from the evidence file), both, or argument
    (neither: passed by whoever constructs the class). The place is the constructor call, which may
    stand in a base class or in a function that builds submodules for the class.
    """

    path: str
    line: int
    column: int
    argument: str
    value: str
    source: str
    note: str = ""


@dataclass(frozen=True)
class ArgumentResult:
    """A constructor argument that NNX needs: what to pass, and what evidence would remove it."""

    name: str
    meaning: str
    remedy: str


@dataclass(frozen=True)
class ClassResult:
    """What became of one Linen module class."""

    name: str  # qualified: package.module.Class (or Class.Inner)
    path: str
    line: int
    outcome: Outcome
    confidence: Confidence = Confidence.EXACT
    reason: str | None = None
    # ``path:line`` of what the reason speaks of, inside of the class
    reason_place: str | None = None
    new_arguments: tuple[str, ...] = ()
    arguments: tuple[ArgumentResult, ...] = ()  # the same ones, in words
    cut_by: str | None = None  # the class that kept this one Linen
    form: Form | None = None  # of a rewritten class
    sizes: tuple[SizeResult, ...] = ()  # with an evidence file


@dataclass(frozen=True)
class FileResult:
    """What became of one file; ``code`` is the new text when ``status`` is REWRITTEN."""

    path: str
    status: FileStatus
    code: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Tally:
    """A ledger line: every counted place has exactly one outcome."""

    total: int = 0
    rewritten: int = 0
    bridged: int = 0  # of reports alone: nothing is built behind ``nnx.bridge.ToNNX`` any more
    refused: int = 0
    kept: int = 0

    @property
    def balanced(self) -> bool:
        """Whether the four outcomes add up to the total."""
        return self.total == self.rewritten + self.bridged + self.refused + self.kept


@dataclass(frozen=True)
class SizeArgument:
    """A constructor argument that NNX needs and Linen inferred.

    ``method``/``argument``/``axis`` say which dimension of which call argument it is, for example
    ``__call__``/``x``/-1. ``submodule`` is set instead when the size is the ``axis`` of the first
    argument of the submodule at that scope path. An ``optional`` size belongs to submodules that
    only some calls reach: its default is None, and callers that never reach them leave it out.

    With a ``fact`` it is no size but says what Linen's initial call had for ``argument``, which
    decides what is built: ``given`` (not None) or ``truth`` (a true value). Its ``default`` is what
    holds in calls that leave ``argument`` out; None where they cannot.
    """

    name: str
    method: str = "__call__"
    argument: str | None = None
    axis: int | None = -1  # None: the whole shape, as a tuple
    submodule: str | None = None
    optional: bool = False
    fact: str | None = None
    default: bool | None = None


FACT_PREFIXES = {"given": "with", "truth": "init"}  # ``with_c``: whether ``c`` is given


@dataclass(frozen=True)
class ClassMap:
    """How one Linen class reads in NNX; what ``parity`` and ``checkpoint`` need to know."""

    linen: str  # qualified name before
    nnx: str  # qualified name after
    fields: dict[str, str] = field(default_factory=dict)  # dataclass field -> constructor argument
    size_arguments: tuple[SizeArgument, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)  # scope path -> attribute path
    rng_streams: tuple[str, ...] = ()


@dataclass(frozen=True)
class MappedFile:
    """A file that classes of a map stand in: the hash of the text that was read, and written."""

    path: str  # relative to PATH
    classes: tuple[str, ...]  # qualified names
    before: str
    after: str


@dataclass(frozen=True)
class MigrationMap:
    """The migration map of one ``rewrite`` run (``--map FILE``, JSON, ``"schema": 1``)."""

    classes: tuple[ClassMap, ...] = ()
    files: tuple[MappedFile, ...] = ()


@dataclass(frozen=True)
class RewriteResult:
    """Everything one run decided; nothing is written yet."""

    files: tuple[FileResult, ...] = ()
    classes: tuple[ClassResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    references: Tally = Tally()
    call_sites: Tally = Tally()
    migration_map: MigrationMap = MigrationMap()
