"""Tests of readers of models in other forms than a graph."""
