"""The command line, and the only part that prints.

A command's stack is imported inside the command: ``--help`` and ``rewrite`` load neither jax nor
numpy nor flax.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from nnx_migrate.cli.arguments import UsageError, parse
from nnx_migrate.cli.commands import run


def command() -> NoReturn:
    """The console script: run one command, and end the process.

    A rewrite ends without taking apart what it has read, as mypy does: to look through the objects of
    transformers 4.57.6 for garbage and to free them one by one took 16 of 85 s of CPU.
    """
    if sys.argv[1:2] != ["rewrite"]:
        sys.exit(main())
    gc.disable()  # what finds it disabled does not enable it again
    code = main()
    sys.stderr.flush()
    os._exit(code)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; never a traceback, unless ``NNX_MIGRATE_DEBUG=1``.

    Returns:
        0: nothing left to do; 1: a person is needed; 2: the command could not do its job.
    """
    own_words = sys.argv[1:] if words is None else words
    try:
        options = parse(own_words)
        code = options if isinstance(options, int) else run(options)
        sys.stdout.flush()
    except UsageError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        # Only a rewrite may have replaced some files and not yet others.
        rest = (
            "; run again to finish, or `nnx-migrate undo`"
            if [*own_words[:1]] == ["rewrite"]
            else ""
        )
        return _fail(f"interrupted{rest}")
    except BrokenPipeError:
        # The reader of our output left (`| head`); keep the interpreter from noticing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except PermissionError as error:
        return _fail(
            f"{error.filename}: {error.strerror}: make it accessible, or name another path"
        )
    except Exception as error:
        if os.environ.get("NNX_MIGRATE_DEBUG") == "1":
            raise
        text = " ".join(str(error).split()) or "no message"
        return _fail(
            f"internal error: {type(error).__name__}: {text}; "
            "please report it with the traceback that NNX_MIGRATE_DEBUG=1 shows"
        )
    return code


def _fail(message: str) -> int:
    sys.stderr.write(f"nnx-migrate: error: {' '.join(message.split())}\n")
    return 2
