"""Training steps of a side, and where its state lies before and after."""
