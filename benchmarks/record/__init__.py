"""What ``nnx-migrate record`` costs the program that it records."""
