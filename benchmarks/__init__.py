"""Measurements: how long steps take, and beside TensorFlow's; see docs/performance.md."""
