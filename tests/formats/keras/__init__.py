"""Tests of the reader of models of Keras."""
