"""Strings: cut, joined, matched, hashed, read as numbers, in all encodings."""
