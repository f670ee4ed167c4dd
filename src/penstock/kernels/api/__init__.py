"""How kernels are made, found and called."""
