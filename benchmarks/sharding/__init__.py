"""How long resolution takes, as ratios to Linen's and NNX's own in the same run."""
