"""Gradients of single ops and of functions, made by the op SymbolicGradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import b1, c64, f32, f64, graph, i32, nan, normal, uniform

_X, _Y = normal(2, 3), normal(2, 3, seed=1)
_ROW, _COLUMN = normal(3, seed=2), normal(2, 1, seed=3)


def gradient(tf: Any, op: str, *arrays: Any, **attrs: Any) -> Any:
    """The gradient of one op at some inputs, for gradients of its outputs that vary."""
    with tf.Graph().as_default() as alone, tf.Session(graph=alone) as session:
        node = _node(tf, op, arrays, attrs)
        back = [_varied(value) for value in session.run(list(node.outputs))]
    inputs = [*_flat(arrays), *back]
    proto = tf.GraphDef()
    made = proto.node.add(name="gradient", op="SymbolicGradient")
    for number, value in enumerate(inputs):
        const = proto.node.add(name=f"input_{number}", op="Const")
        const.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
        const.attr["dtype"].type = const.attr["value"].tensor.dtype
        made.input.append(const.name)
        made.attr["Tin"].list.type.append(const.attr["dtype"].type)
    wanted = list(made.attr["Tin"].list.type)[: len(_flat(arrays))]
    made.attr["Tout"].list.type.extend(wanted)
    made.attr["f"].func.name = op
    for name, value in node.node_def.attr.items():
        made.attr["f"].func.attr[name].CopyFrom(value)
    outputs = [f"gradient:{slot}" for slot in range(len(wanted))]
    return tf.import_graph_def(proto, return_elements=outputs, name="")


def _node(tf: Any, op: str, arrays: Any, attrs: dict[str, Any]) -> Any:
    """The op by itself."""
    from tensorflow.python.framework import op_def_library, op_def_registry

    definition = op_def_registry.get(op)
    names = [arg.name for arg in definition.input_arg]
    plain = {a.name: _default(a) for a in definition.attr if a.HasField("default_value")}
    plain = {name: value for name, value in plain.items() if value is not None} | attrs
    inputs = {
        name: [tf.constant(item) for item in given] if isinstance(given, list) else given
        for name, given in zip(names, arrays, strict=True)
    }
    made = op_def_library.apply_op(op, **inputs, **plain)
    return made[0].op if isinstance(made, (list, tuple)) else made.op


def _default(attr: Any) -> Any:
    """An attribute's default, unless it follows from the inputs."""
    kind = attr.default_value.WhichOneof("value")
    if kind == "list":
        return list(attr.default_value.list.i)
    return getattr(attr.default_value, kind) if kind in "bifs" else None


def _flat(arrays: Any) -> list[Any]:
    return [item for given in arrays for item in (given if isinstance(given, list) else [given])]


def _varied(value: Any) -> Any:
    numbers = np.linspace(-1, 2, value.size).reshape(value.shape)
    return np.asarray(numbers + (0.5j if value.dtype.kind == "c" else 0)).astype(value.dtype)


def function(tf: Any, name: str, *arrays: Any) -> Any:
    """The gradient of a function of a TF1 library."""
    from tensorflow.python.framework import function as functions
    from tensorflow.python.ops import functional_ops

    types = [tf.as_dtype(array.dtype) for array in arrays]
    body = _FUNCTIONS[name]
    defined = functions.Defun(*types, func_name=name)(lambda *x: body(tf, *x))
    inputs = [tf.constant(array) for array in arrays]
    results = defined(*inputs)
    results = results if isinstance(results, (list, tuple)) else [results]
    back = [tf.ones_like(result) * 2 for result in results]
    gradients = functional_ops.symbolic_gradient(input=[*inputs, *back], Tout=types, f=defined)
    return [*results, *gradients]


def registered(tf: Any) -> Any:
    """A function with a gradient of its own, which is not the true one."""
    from tensorflow.python.framework import function as functions

    @functions.Defun("float32", "float32", func_name="OwnGradient")
    def own(x: Any, dy: Any) -> Any:
        return x * 100.0 + dy

    @functions.Defun("float32", func_name="Outer", grad_func=own)
    def outer(x: Any) -> Any:
        return tf.sin(x)

    @functions.Defun("float32", func_name="Caller")
    def caller(x: Any) -> Any:
        return outer(x) * 3.0

    x = tf.constant(_X)
    return [tf.gradients(outer(x), x)[0], tf.gradients(caller(x), x)[0]]


def dense_layers(tf: Any) -> Any:
    """Two layers and a loss, differentiated as one function."""
    from tensorflow.python.framework import function as functions

    @functions.Defun(*["float32"] * 5, func_name="Layers")
    def layers(x: Any, w: Any, b: Any, v: Any, c: Any) -> Any:
        hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
        logits = tf.matmul(hidden, v) + c
        return -tf.reduce_mean(tf.reduce_sum(tf.nn.log_softmax(logits) * 0.25, axis=1))

    shapes = [(4, 3), (3, 5), (5,), (5, 2), (2,)]
    inputs = [tf.constant(normal(*shape, seed=n)) for n, shape in enumerate(shapes)]
    return tf.gradients(layers(*inputs), inputs)


def _shared(tf: Any, x: Any, y: Any) -> Any:
    """A value that is read thrice, and an argument that is a result."""
    z = x * y
    return z * z + tf.sin(z), x


def _untouched(tf: Any, x: Any, y: Any, n: Any) -> Any:
    """An argument that nobody reads, one read through ops without gradient, and an int."""
    steps = tf.cast(tf.size(y), "float32") * tf.stop_gradient(y)
    return x * tf.cast(n, "float32") + tf.reduce_sum(steps)


def _one_of_several(tf: Any, x: Any) -> Any:
    """Outputs of which some are not used."""
    first, _, third = tf.split(x, 3, axis=1)
    return first * first + tf.unstack(third, 2, axis=1)[0][:, None]


_FUNCTIONS: dict[str, Any] = {
    "Shared": _shared,
    "Untouched": _untouched,
    "OneOfSeveral": _one_of_several,
    "Undefined": lambda tf, x: tf.cumsum(x) * x,
    "Branching": lambda tf, x: tf.reduce_sum(
        tf.where(x > 0.0, tf.exp(x), x * x), axis=[0], keepdims=True
    ),
    "BesidesUndefined": lambda tf, x: x * tf.cumsum(tf.constant([1.0, 2.0, 3.0])),
}
_IMAGES, _FILTERS = normal(2, 5, 6, 3), normal(3, 2, 3, 4, seed=1)
_STRIDES = {"strides": [1, 2, 1, 1], "padding": "SAME"}
_WINDOW = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "padding": "VALID"}
_SMALL, _LARGE = uniform(2, 3, low=-0.9, high=0.9), uniform(2, 3, low=1.2, high=4)


def _case(op: str, *arrays: Any, **attrs: Any) -> Any:
    tol, says = attrs.pop("tol", (1e-5, 1e-6)), attrs.pop("says", "")

    def gradient_of(tf: Any, _op: str) -> Any:
        return gradient(tf, op, *arrays, **attrs)

    return graph(gradient_of, op, tol=tol, says=says)


_COMPLEX = c64([0.3 + 0.4j, -0.5 + 0.2j, 0.1 - 0.7j])
_UNARY = ("Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Exp", "Expm1",
          "Neg", "Sign", "Sigmoid", "Sin", "Sinh", "Square", "Tan", "Tanh", "Identity", "Relu",
          "Relu6")  # fmt: skip
_POSITIVE = ("Acosh", "Inv", "Reciprocal", "Log", "Log1p", "Rsqrt", "Sqrt")
_COMPLEX_UNARY = ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Conj", "Cos", "Cosh", "Exp",
                  "Expm1", "Inv", "Log", "Log1p", "Neg", "Reciprocal", "Rsqrt", "Sigmoid", "Sin",
                  "Sinh", "Sqrt", "Square", "Tan", "Tanh")  # fmt: skip
_BINARY = ("Add", "AddV2", "Sub", "Mul", "MulNoNan", "Div", "RealDiv", "DivNoNan", "Maximum",
           "Minimum", "SquaredDifference", "Pow", "Xlogy", "Xlog1py", "Xdivy")  # fmt: skip

CASES = [
    *(_case(op, _SMALL) for op in _UNARY),
    *(_case(op, _LARGE) for op in _POSITIVE),
    *(_case(op, f64(_LARGE)) for op in ("Sqrt", "Log1p")),
    *(_case(op, _COMPLEX) for op in _COMPLEX_UNARY),
    *(_case(op, _LARGE, _SMALL) for op in _BINARY if not op.startswith("Xlog")),
    *(_case(op, _SMALL, _LARGE) for op in ("Xlogy", "Xlog1py", "Xdivy")),
    *(_case(op, _LARGE, _ROW + f32(4)) for op in _BINARY),
    *(_case(op, f32(2), _COLUMN + f32(4)) for op in _BINARY),
    *(_case(op, _COMPLEX, c64([1 + 1j])) for op in ("AddV2", "Sub", "Mul", "RealDiv", "Pow",
                                                   "SquaredDifference")),
    _case("Maximum", f32([1, 2, 3]), f32([3, 2, 1])),
    _case("Minimum", f32([1, 2, 3]), f32([3, 2, 1])),
    _case("Pow", f32([0, 0, 2, -2]), f32([2, 0, 0, 3])),
    _case("Xlogy", f32([0, 0, 2]), f32([0, 3, 4])),
    _case("DivNoNan", f32([1, 2]), f32([0, 4])),
    _case("MulNoNan", f32([1, 2]), f32([0, 4])),
    _case("Cast", _X, DstT="float64"),
    _case("Cast", i32([1, 2]), DstT="float32"),
    _case("Select", b1([[True, False, True], [False, True, False]]), _X, _Y),
    _case("Select", b1([True, False]), _X, _Y),
    _case("Sum", _X, i32([1])), _case("Sum", _X, i32(0)), _case("Sum", _X, i32([0, 1])),
    _case("Sum", _X, i32([1]), keep_dims=True),
    _case("Mean", _X, i32([1])), _case("Mean", _X, i32([0, 1])),
    _case("Max", f32([[1, 3, 3], [2, 0, 1]]), i32([1])),
    _case("Min", f32([[1, 3, 1], [2, 0, 1]]), i32([0, 1])),
    *(_case("MatMul", _X.T if a else _X, normal(4, 3) if b else normal(3, 4),
            transpose_a=a, transpose_b=b) for a in (False, True) for b in (False, True)),
    *(_case(op, normal(2, 4, 3) if a else normal(2, 3, 4), normal(2, 5, 4) if b else
            normal(2, 4, 5), adj_x=a, adj_y=b)
      for op in ("BatchMatMul", "BatchMatMulV2") for a in (False, True) for b in (False, True)),
    _case("BatchMatMulV2", normal(2, 1, 3, 4), normal(3, 4, 2)),
    _case("MatMul", c64([[1 + 1j, 2], [3, 4j]]), c64([[1, 1j], [2j, 1]]),
          says="MatMul gradient for complex is not supported yet"),
    _case("BiasAdd", _X, _ROW),
    _case("Conv2D", _IMAGES, _FILTERS, **_STRIDES, tol=(1e-4, 1e-5)),
    _case("MaxPool", _IMAGES, **_WINDOW), _case("AvgPool", _IMAGES, **_WINDOW),
    _case("Softmax", _X), _case("LogSoftmax", _X), _case("Softmax", normal(2, 2, 3)),
    _case("Reshape", _X, i32([3, 2])), _case("ExpandDims", _X, i32(1)),
    _case("Squeeze", normal(2, 1, 3)), _case("Transpose", normal(2, 3, 4), i32([2, 0, 1])),
    _case("ConjugateTranspose", c64([[1 + 1j, 2], [3, 4j]]), i32([1, 0])),
    _case("Reverse", _X, b1([False, True])), _case("ReverseV2", _X, i32([0, -1])),
    _case("Fill", i32([2, 3]), f32(5)), _case("BroadcastTo", _ROW, i32([2, 3])),
    _case("BroadcastTo", _COLUMN, i32([4, 2, 3])),
    _case("Pack", [_X, _Y], axis=1), _case("Unpack", _X, num=3, axis=1),
    _case("Split", i32(1), _X, num_split=3), _case("SplitV", _X, i32([1, 2]), i32(1), num_split=2),
    _case("Concat", i32(0), [_X, _Y]), _case("ConcatV2", [_X, normal(2, 1)], i32(1)),
    _case("ConcatV2", [_X, normal(2, 1)], i32(-1)),
    _case("Slice", normal(4, 5), i32([1, 2]), i32([2, 2])),
    _case("StridedSlice", normal(4, 5), i32([0, 1]), i32([4, 2]), i32([2, 1]), begin_mask=1,
          shrink_axis_mask=2),
    _case("StridedSliceGrad", i32([4, 5]), i32([0, 1]), i32([4, 3]), i32([2, 1]), normal(2, 2)),
    _case("GatherNd", normal(4, 3), i32([[1], [0], [1]])),
    _case("GatherNd", normal(4, 3), i32([[1, 2], [0, 0]])),
    *(_case(op, _X, says=f"No gradient is defined for {op}")
      for op in ("Floor", "OnesLike", "StopGradient", "Shape")),
    graph(function, "Shared", f32([1, 2]), f32([3, nan])),
    graph(function, "Untouched", f32([1, 2]), f32([3, 4, 5]), i32(7)),
    graph(function, "OneOfSeveral", normal(2, 6)),
    graph(function, "Branching", normal(3, 2)),
    graph(function, "BesidesUndefined", f32([1, 2, 3])),
    graph(function, "Undefined", f32([1, 2]), says="No gradient defined for op: Cumsum"),
    _case("Erf", _X, says="No gradient defined for op: Erf"),
    graph(registered), graph(dense_layers),
]  # fmt: skip
