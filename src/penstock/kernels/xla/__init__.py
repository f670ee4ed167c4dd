"""XLA's own ops, in plain numpy, and programs that XLA itself runs."""
