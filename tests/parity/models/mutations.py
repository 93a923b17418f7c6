"""``nnx-migrate parity`` on a copy of the reference models in which one line of one side is another.

``python -m tests.parity.models.mutations FILE OLD NEW key=value...``; FILE is below ``fixtures``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from nnx_migrate import fixtures
from nnx_migrate.parity import command
from nnx_migrate.parity.models.load import PACKAGE


def parity(file: str, old: str, new: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own: what is imported once stays as it was."""
    return subprocess.run(
        [sys.executable, "-m", "tests.parity.models.mutations", file, old, new, *words],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def main(file: str, old: str, new: str, *words: str) -> int:
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "fixtures"
        shutil.copytree(fixtures.path(), copy)
        text = (copy / file).read_text()
        if old not in text:
            raise ValueError(f"{file}: expected {old!r}")
        (copy / file).write_text(text.replace(old, new, 1))
        package = ModuleType(PACKAGE)
        package.__path__ = [str(copy)]
        sys.modules[PACKAGE] = package
        outcome = command.run(words)
    print("\n".join(outcome.lines))
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
