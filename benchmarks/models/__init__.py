"""What it costs to compare built-in models at full size."""
