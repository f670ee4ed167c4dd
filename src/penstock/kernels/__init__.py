"""What each op does, as small functions; one file per family of ops.

Importing this package registers nothing; ``load_families`` imports every family, and
with that registers every kernel.  It runs once, when the first kernel is looked up.
"""
