"""``case=sizes.db``: replaying what `record` saw."""
