"""``python -m nnx_migrate``."""

from nnx_migrate.cli import command

command()
