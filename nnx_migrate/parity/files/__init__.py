"""``case=FILE``: each side in a process of its own."""
