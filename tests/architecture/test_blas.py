"""Who calls numpy's BLAS does so where OpenBLAS's threads are kept out of it."""

from __future__ import annotations

import ast
from pathlib import Path

import penstock.kernels

ROOT = Path(penstock.kernels.__path__[0])
#: Functions of numpy that may end in BLAS or LAPACK; ``einsum`` does only if it optimises.
CALLS = {"dot", "matmul", "vdot", "inner", "tensordot", "linalg", "convolve", "correlate"}
#: Modules that name them, and why that is all right.
ALLOWED = {
    "c/convolution.py": "its own library has a function of such a name",
    "c/product.py": "the same",
    "parallel/products.py": "asks alone() for what is large",
    "math/sums.py": "adds up fewer numbers than wake a thread",
    "math/argmax_ops.py": "leaves what is long to products",
    "math/matmul_ops.py": "leaves what is large to products",
    "nn/gates_op.py": "leaves what is large to products",
    "image/crop_and_resize_ops.py": "asks alone()",
    "linalg/linalg_ops.py": "keeps_alone",
    "linalg/decomposition_ops.py": "keeps_alone",
    "linalg/matrix_function_ops.py": "keeps_alone",
    "linalg/substitution.py": "called by linalg_ops alone",
    "xla/xla_ops.py": "keeps_alone",
    "xla/xla_products.py": "keeps_alone",
    "image/png.py": "whole numbers, which numpy multiplies itself",
    "quantization/quantized_nn_ops.py": "whole numbers",
    "quantization/uniform_arithmetic_ops.py": "whole numbers",
    "sparse/sparse_tensor.py": "whole numbers",
    "xla/xla_function_ops.py": "whole numbers",
}


def names_blas(tree: ast.Module) -> bool:
    """Whether a module names one of the functions, or multiplies matrices by the operator."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in CALLS:
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return True
    return False


def test_products_go_through_one_place() -> None:
    """No other kernel multiplies matrices by numpy's own functions; ``products`` has them."""
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if names_blas(ast.parse(path.read_text("utf-8")))
    }
    assert found == set(ALLOWED)
