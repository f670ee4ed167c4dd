"""Integers that stand for numbers in a range."""
