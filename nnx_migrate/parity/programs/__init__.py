"""StableHLO programs: canonical text, graphs, and equivalences that keep bits."""
