"""The two sides: Linen and NNX, each evaluated alone."""
