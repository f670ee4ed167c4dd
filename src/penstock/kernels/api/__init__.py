"""How kernels are made, found and called.

``registry`` finds the kernel of an op, in the families that ``families`` names; a maker reads a
node's ``attrs`` and may ask a ``host`` for files; what it makes is the node's ``bound_kernel``.
``context`` is what a kernel may ask of its step, ``traits`` what it says of itself; ``wait_queue``,
``turns`` and ``try_kernel`` are for those that may have to wait.
"""
