"""What each op does, as small functions.

A folder has the families of ops that TensorFlow has in the op file of that name.  A family is a
file that registers kernels, and its name ends in ``_ops`` or ``_op``; the others are what these
are made of.

Three folders have what all families share:

- ``api``: how kernels are made, found and called;
- ``values``: what values are made of, beyond what arrays are;
- ``parallel``: much work, and several cores for it.

``c`` has convolutions in C; ``onnx`` has ONNX Runtime compute whole regions of a graph.

Importing this package registers nothing.  The families that have kernels for an op are imported
when the first of them is looked up; ``api/families.txt`` says which those are.
"""
