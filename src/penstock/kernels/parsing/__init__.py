"""Serialized messages, lines and bytes, read as tensors."""
