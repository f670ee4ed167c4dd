"""Sources of the cases in ``tests/op_cases``; ``tools/record_case.py`` asks TensorFlow."""
