"""Layers of neural networks and their gradients: convolutions, pools, norms, losses, cells."""
