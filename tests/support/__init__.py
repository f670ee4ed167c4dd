"""What several tests need: run one op, read a corpus case."""
