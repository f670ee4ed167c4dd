"""What each op does, as small functions; one file per family of ops.

Importing this package registers nothing.  The families that have kernels for an op are imported
when the first of them is looked up; ``families.txt`` says which those are.
"""
