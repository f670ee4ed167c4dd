"""Kernels in C, for what numpy has no function for: convolutions.

``convolution.h`` says what a convolution is; ``tiles.c`` computes parts of one, and is compiled
once for each kind of vectors; ``pool.c`` shares parts among threads; ``library.c`` is what Python
calls.

The library is built by ``tools/build_kernels.py`` when the package is installed.  Where there is
no C compiler, ``library.py`` finds nothing, and numpy's kernels do the same.
"""
