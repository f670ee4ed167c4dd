"""Words that every layer shares: dtypes, shapes, names of tensors and devices."""
