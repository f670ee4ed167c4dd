"""Gradients of functions, as graphs.

``body.py`` goes backwards through a function and adds the nodes of its gradient; ``rules.py``
knows the tables with what each op's gradient is; ``values.py`` lets a rule be written as a formula.
"""
