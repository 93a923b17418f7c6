"""Random streams that draw Linen's keys."""
