"""What `tabulate` prints: calls and their variables as rows, costs and text (flax.linen.summary)."""
