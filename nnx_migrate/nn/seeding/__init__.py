"""Initial values from Linen's keys."""
