"""What ``rewrite`` cannot be asked to do."""

from __future__ import annotations

from pathlib import Path

from nnx_migrate.cli.arguments import RewriteOptions, UsageError
from nnx_migrate.outputs import OutputError, check_outputs


def check(options: RewriteOptions) -> None:
    """Refuse what cannot work before anything is read.

    Raises:
        UsageError: what was expected of which option.
    """
    if options.evidence is not None and not options.evidence.is_file():
        raise UsageError(f"--evidence {options.evidence}: no such file; `record` makes one")
    for path in options.paths:
        _check_is_no_system(f"{path}", path)
    if options.root is not None:
        _check_is_no_system(f"--root {options.root}", options.root)
        _check_root(options, options.root)
    output = options.output
    if output is not None and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"--output {output}: not empty; name a new or empty directory")
    _check_files(options)


def _check_is_no_system(named: str, path: Path) -> None:
    """Refuse the root of the file system, all of which would be read."""
    if path.exists() and (whole := path.resolve()) == whole.parent:
        raise UsageError(
            f"{named}: expected the directory of a project, found the root of the file system"
        )


def _check_root(options: RewriteOptions, root: Path) -> None:
    if not root.is_dir():
        raise UsageError(f"--root {root}: expected a directory")
    for path in options.paths if options.in_place else ():
        if not path.resolve().is_relative_to(root.resolve()):
            raise UsageError(
                f"--root {root}: expected a directory that holds {path}, whose journal it keeps; "
                "name one above it, or write a copy with --output"
            )


def _check_files(options: RewriteOptions) -> None:
    named = (("--report", options.report), ("--map", options.map))
    outputs = [(f"{option} {file}", file) for option, file in named if file is not None]
    inputs = (*options.paths, options.evidence, options.output)
    try:
        check_outputs(outputs, [path for path in inputs if path is not None])
    except OutputError as error:
        raise UsageError(str(error)) from error
