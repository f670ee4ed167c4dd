"""Graph to graph, one verb per file: place, prune, optimize, split."""
