"""What each op does, as small functions.

A folder has the families of ops that TensorFlow has in the op file of that name.  A family is a
file that registers kernels, and its name ends in ``_ops`` or ``_op``; the others are what these
are made of.  Beside the folders is what all families share:

- how kernels are made, found and called: ``registry``, ``families``, ``signatures``, ``attrs``,
  ``int32_attrs``, ``types``, ``host``, ``bound``, ``context``, ``at_once``, ``waiting``,
  ``elementwise``, ``forwarding``, ``traits``, ``constants``, ``extras``;
- values: ``arrays``, ``batches``, ``choice``, ``complex_arithmetic``, ``half_floats``,
  ``precision``, ``spelled_numbers``, ``strings``, ``variants``, ``printing``, ``files``;
  ``windows`` over them;
- much work, and several cores for it: ``intra_op``, ``portions``, ``bands``, ``products``,
  ``blas``, ``runs``; and ``accelerated``, which has PyTorch do it.

Importing this package registers nothing.  The families that have kernels for an op are imported
when the first of them is looked up; ``families.txt`` says which those are.
"""
