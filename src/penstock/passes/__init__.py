"""Graph to graph, one verb per file: place, prune, lower, optimize, split."""
