"""What the fields of a class may hold, as far as the project shows."""
