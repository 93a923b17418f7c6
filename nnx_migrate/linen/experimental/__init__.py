"""What flax keeps in ``flax.linen.experimental``."""
