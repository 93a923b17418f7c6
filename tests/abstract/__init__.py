"""Tests of `nnx_migrate.abstract`."""
