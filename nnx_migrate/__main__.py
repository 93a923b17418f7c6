"""``python -m nnx_migrate``."""

import sys

from nnx_migrate.cli import main

sys.exit(main())
