"""What values are made of, beyond what arrays are: shared by kernels of all families."""
