"""One-line faults in one side of the built-in models: which check of ``parity`` sees each of them."""
