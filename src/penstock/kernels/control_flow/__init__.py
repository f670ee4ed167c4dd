"""Which nodes run: Switch, Merge and loops; calls of functions, in graphs and in Python."""
