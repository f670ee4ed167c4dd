"""Random numbers, in TensorFlow's own streams."""
