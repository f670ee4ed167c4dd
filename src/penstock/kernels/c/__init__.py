"""Kernels in C, for what numpy has no function for, or only in many passes over memory.

``tiles.c`` has convolutions and products, ``correlation.c`` gradients of filters, ``strips.c`` and
``pooling.c`` what sees one channel at a time, ``softmax.c``, ``moments.c`` and ``short_rows.c``
rows, ``columns.c`` channels, ``extremes.c`` positions along an axis, ``segments.c`` gathered rows,
``weighing.c`` weighed ones, ``narrow.c`` numbers of 16 bits, ``resizing.c``, ``crops.c`` and
``colors.c`` images, ``philox.c`` random numbers, ``optimisers.c`` steps of training, ``boxes.c``
boxes that cover each other, and ``elements.c`` programs of functions of single elements, which
numpy calls as its own (``programs.py``).  All but boxes are compiled once for each kind of vectors
(``vectors.h``).  ``pool.c`` shares pieces of work among threads; ``library.c`` and ``programs.c``
are what Python calls.

The library is built by ``tools/build_kernels.py`` when the package is installed.  Where there is
no C compiler, ``library.py`` finds nothing, and numpy's kernels do the same.
"""
