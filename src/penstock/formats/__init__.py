"""Readers of models in other forms than a graph; each ends in one."""

from penstock.formats import keras

__all__ = ["keras"]
