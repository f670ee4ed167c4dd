"""Sparse tensors: places and values; matrices in rows; sets."""
