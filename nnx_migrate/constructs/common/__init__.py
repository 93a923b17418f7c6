"""What the constructs' files are written in."""
