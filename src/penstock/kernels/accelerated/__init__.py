"""Kernels that compute heavy nodes with PyTorch, where it is installed.

Each module registers kernels of a higher priority than numpy's for the same ops.  Such a
kernel looks at the sizes of its inputs: small ones, and all of them where PyTorch is not
installed, go to numpy's kernel.  What PyTorch computes may differ in the last bits.
"""
