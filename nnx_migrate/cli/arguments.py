"""What the words of the command line mean."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from nnx_migrate import __version__

LATER = {
    "checkpoint": "convert a checkpoint between Linen and NNX",
}

_JOBS = min(os.cpu_count() or 1, 4)  # more processes share too little of the work


class UsageError(Exception):
    """The command line cannot be used; the message is one line."""


@dataclass(frozen=True)
class RewriteOptions:
    """``rewrite PATH...``"""

    paths: tuple[Path, ...]
    output: Path | None = None
    diff: bool = False
    check: bool = False
    map: Path | None = None
    report: Path | None = None
    evidence: Path | None = None
    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    root: Path | None = None
    jobs: int = 1
    allow_dirty: bool = False
    form: str = "auto"
    loop: str = "functional"
    names: str = "linen"
    no_cache: bool = False

    @property
    def in_place(self) -> bool:
        """Whether the files themselves are replaced."""
        return self.output is None and not self.diff and not self.check


@dataclass(frozen=True)
class UndoOptions:
    """``undo [PATH]``"""

    root: Path | None = None
    path: Path = Path()


@dataclass(frozen=True)
class ExplainOptions:
    """``explain RULE``"""

    rule: str


@dataclass(frozen=True)
class ParityOptions:
    """``parity key=value...``"""

    words: tuple[str, ...]


@dataclass(frozen=True)
class VerifyOptions:
    """``verify FILE``"""

    file: Path


@dataclass(frozen=True)
class ShardingsOptions:
    """``shardings key=value...``"""

    words: tuple[str, ...]


@dataclass(frozen=True)
class RecordOptions:
    """``record -- COMMAND...``"""

    command: tuple[str, ...]
    output: Path = Path("sizes.db")
    shim: Path | None = None
    seconds: float = 120.0


@dataclass(frozen=True)
class LaterOptions:
    """A command of a later version."""

    command: str


Options = (
    RewriteOptions
    | UndoOptions
    | ExplainOptions
    | ParityOptions
    | VerifyOptions
    | ShardingsOptions
    | RecordOptions
    | LaterOptions
)


class _Parser(argparse.ArgumentParser):
    """Raises instead of printing and exiting, so that errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`")


def parse(words: Sequence[str]) -> Options | int:
    """Read the command line; an exit code when ``--help`` or ``--version`` has answered it.

    Raises:
        UsageError: with the nearest known spelling, if there is one.
    """
    parser, commands = _parsers()
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in commands:
        raise UsageError(f"unknown command {command!r}{nearest(command, commands)}")
    if command in LATER and not {"-h", "--help"} & set(words):
        return LaterOptions(command)
    own, rest = _split(words) if command == "record" else (words, ())
    try:
        namespace, unknown = parser.parse_known_args(own)
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    if unknown:
        raise UsageError(_unknown(unknown[0], commands[namespace.command]))
    return _record_options(namespace, rest) if command == "record" else _options(namespace)


def _split(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The words before ``--``, and the recorded command after it."""
    if "--" not in words:
        return words, ()
    place = list(words).index("--")
    return words[:place], words[place + 1 :]


def _record_options(namespace: argparse.Namespace, command: Sequence[str]) -> RecordOptions:
    if not command:
        raise UsageError("record: expected -- and a command after the options")
    return RecordOptions(tuple(command), namespace.output, namespace.shim, namespace.seconds)


def nearest(word: str, vocabulary: Iterable[str]) -> str:
    """`` (did you mean ...?)`` or nothing."""
    close = get_close_matches(word, list(vocabulary), n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""


def _unknown(word: str, parser: argparse.ArgumentParser) -> str:
    if not word.startswith("-"):
        return f"unexpected argument {word!r}; see `{parser.prog} --help`"
    name = word.partition("=")[0]
    options = [option for action in parser._actions for option in action.option_strings]
    return f"unknown option {name}{nearest(name, options)}; see `{parser.prog} --help`"


def _parsers() -> tuple[_Parser, dict[str, argparse.ArgumentParser]]:
    parser = _Parser(
        prog="nnx-migrate",
        description="Move Flax Linen code to Flax NNX, and check that nothing changed.",
        allow_abbrev=False,
        epilog="Exit codes: 0 nothing left to do; 1 a person is needed; 2 could not do its job.",
    )
    parser.add_argument("--version", action="version", version=f"nnx-migrate {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )
    _rewrite_parser(commands)
    undo = _command(commands, "undo", "take in-place runs back")
    undo.add_argument("path", nargs="?", type=_path, default=Path(), metavar="PATH")
    undo.add_argument("--root", type=_path, metavar="DIR", help="the project's root")
    explain = _command(commands, "explain", "what a rewriting rule does")
    explain.add_argument("rule", metavar="RULE", help="a rule or a Linen name, e.g. Dense")
    _record_parser(commands)
    parity = _command(commands, "parity", "compare a Linen model with its NNX counterpart")
    parity.add_argument("words", nargs="*", metavar="key=value", help="case=FILE.py and more")
    parity.epilog = (
        "With distributed=true, model=NAME is compared by all processes of a job: start one per host "
        "or device under SLURM (srun), Open MPI, Kubernetes (an indexed job) or on a TPU pod, where "
        "jax.distributed finds the others; their devices are the mesh, the first process reports."
    )
    verify = _command(commands, "verify", "run again what `parity certificate=FILE` certified")
    verify.add_argument("file", type=_path, metavar="FILE", help="the certificate")
    shardings = _command(commands, "shardings", "print or compare the specs of a model's arrays")
    shardings.add_argument("words", nargs="*", metavar="key=value", help="model=NAME and more")
    for name, text in LATER.items():
        _command(commands, name, f"{text} (not available yet)")
    return parser, dict(commands.choices)


def _command(
    commands: argparse._SubParsersAction[_Parser], name: str, text: str
) -> argparse.ArgumentParser:
    description = f"{text[0].upper()}{text[1:]}."
    return commands.add_parser(name, help=text, description=description, allow_abbrev=False)


def _rewrite_parser(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _command(commands, "rewrite", "rewrite Linen modules to NNX, in place by default")
    parser.add_argument("paths", nargs="+", type=_path, metavar="PATH", help="file or directory")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--output", type=_path, metavar="DIR", help="write a rewritten copy there")
    mode.add_argument("--diff", action="store_true", help="print the changes, write nothing")
    mode.add_argument(
        "--check", action="store_true", help="only tell; exit 1 if files would change"
    )
    parser.add_argument("--map", type=_path, metavar="FILE", help="write the migration map (JSON)")
    parser.add_argument("--report", type=_path, metavar="FILE", help="write the report (JSON)")
    parser.add_argument("--evidence", type=_path, metavar="FILE", help="sizes that `record` saw")
    for option, text in (("--select", "only these"), ("--exclude", "not these")):
        parser.add_argument(
            option,
            action="append",
            default=[],
            metavar="GLOB",
            help=f"{text} paths or qualified class names (may be repeated)",
        )
    parser.add_argument(
        "--form",
        choices=("auto", "lazy", "explicit"),
        default="auto",
        help="auto: explicit NNX where it is proven, lazy elsewhere (default); lazy: every class"
        " lazy; explicit: as auto, and exit 1 when a class stays lazy",
    )
    parser.add_argument(
        "--loop",
        choices=("functional", "nnx"),
        default="functional",
        help="functional: training loops around explicit classes keep their style (default); nnx: they"
        " become nnx.Optimizer and nnx.value_and_grad where that is proven",
    )
    parser.add_argument(
        "--names",
        choices=("linen", "idiomatic"),
        default="linen",
        help="linen: attributes of explicit classes are called as Linen calls their variables (default);"
        " idiomatic: in snake case, and variables keep their paths",
    )
    parser.add_argument("--root", type=_path, metavar="DIR", help="the project's root")
    parser.add_argument("-j", "--jobs", type=_jobs, default=_JOBS, metavar="N")
    parser.add_argument(
        "--allow-dirty", action="store_true", help="also replace files with uncommitted changes"
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="decide anew what an earlier run decided"
    )


def _record_parser(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _command(commands, "record", "run a program and store the sizes of its Linen calls")
    parser.usage = "nnx-migrate record [-o FILE] [--shim FILE] [--seconds N] -- COMMAND..."
    parser.add_argument(
        "-o",
        "--output",
        type=_path,
        default=Path("sizes.db"),
        metavar="FILE",
        help="evidence file to add to (default: sizes.db)",
    )
    parser.add_argument(
        "--shim", type=_path, metavar="FILE", help="Python file that every process runs first"
    )
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=120.0,
        metavar="N",
        help="what tracing may take when a process ends (default: 120)",
    )


def _seconds(text: str) -> float:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a whole number of seconds, found {text!r}")
    return float(text)


def _path(text: str) -> Path:
    if not text:  # an empty variable of a shell; as a path it would mean the folder one is in
        raise argparse.ArgumentTypeError("expected a path, found an empty text")
    return Path(text)


def _jobs(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text)


def _options(namespace: argparse.Namespace) -> Options:
    match namespace.command:
        case "rewrite":
            values = {name: value for name, value in vars(namespace).items() if name != "command"}
            for name in ("paths", "select", "exclude"):
                values[name] = tuple(values[name])
            return RewriteOptions(**values)
        case "undo":
            return UndoOptions(namespace.root, namespace.path)
        case "explain":
            return ExplainOptions(namespace.rule)
        case "verify":
            return VerifyOptions(namespace.file)
        case "shardings":
            return ShardingsOptions(tuple(namespace.words))
        case _:
            return ParityOptions(tuple(namespace.words))
