"""Readers of models in other forms than a graph; each ends in one."""
