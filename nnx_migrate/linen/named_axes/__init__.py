"""Logical axis names in collections beside the variables: what ``nnx_migrate.linen.partitioning`` is made of."""
