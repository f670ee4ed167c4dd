"""Arithmetic: element by element, along axes, by segments, products of matrices."""
