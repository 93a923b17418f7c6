"""What all of `nnx_migrate.linen` stands on: scopes, modules and how they meet NNX's graph."""
