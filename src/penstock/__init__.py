"""Penstock runs TensorFlow graphs without TensorFlow."""
