"""The migrated twin of a Linen module: its fields, its sizes, and the map that names them."""
