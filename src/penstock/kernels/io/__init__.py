"""Files: checkpoints, records, constants."""
