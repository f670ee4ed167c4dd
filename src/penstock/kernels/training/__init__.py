"""Optimisers: how variables take a step."""
