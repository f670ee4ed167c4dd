"""Linear algebra: decompositions, solutions, functions of matrices, sums of products."""
