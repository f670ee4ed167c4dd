"""Much work, and several cores for it.

``intra_op`` shares pieces of work among threads; ``tiles``, ``image_tiles`` and ``products`` cut
arrays into such pieces. ``contention`` knows how busy the machine is, ``blas`` keeps numpy's BLAS
to the thread that asks, ``beside`` has work done for a caller who may go before it is over, and
``strided_copies`` copies arrays whose elements lie apart.
"""
