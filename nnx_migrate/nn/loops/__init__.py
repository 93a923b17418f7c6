"""How lifted loops treat variables and streams: stacked, shared, carried, drawn step by step."""
