"""What values are made of, beyond what arrays are: shared by kernels of all families.

Numbers (``complex_arithmetic``, ``select_clip``), text (``strings``, ``printing``,
``spelled_numbers``, ``paths``, ``fingerprints``), objects (``variants``, ``variant_elements``), and
arrays as a whole (``arrays``, ``batches``, ``windows``).
"""
