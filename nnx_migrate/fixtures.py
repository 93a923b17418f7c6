"""Where the reference models are: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path


def path() -> Path:
    """Directory that holds one directory per reference model.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    package = Path(__file__).resolve().parent
    for place in (package.parent / "fixtures", package / "_fixtures"):
        if (place / "README.md").is_file():
            return place
    raise FileNotFoundError(
        f"no fixtures beside or inside {package}: reinstall nnx-migrate from its wheel or checkout"
    )
