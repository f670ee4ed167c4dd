"""Ops that TensorFlow puts into graphs itself, here written out."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import f32, graph, i32, s, steps

_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def _add(graph_def: Any, tf: Any, name: str, op: str, *inputs: str, **attrs: Any) -> None:
    """Add a node; numbers, texts, types and arrays are attributes."""
    node = graph_def.node.add(name=name, op=op, input=inputs)
    for key, value in attrs.items():
        if isinstance(value, (np.ndarray, np.generic)):
            node.attr[key].tensor.CopyFrom(tf.make_tensor_proto(value))
        elif isinstance(value, int):
            node.attr[key].i = value
        elif hasattr(tf.dtypes, value):
            node.attr[key].type = tf.as_dtype(value).as_datatype_enum
        else:
            node.attr[key].s = value.encode()


def _import(tf: Any, graph_def: Any, *names: str) -> list[Any]:
    found: list[Any] = tf.import_graph_def(graph_def, return_elements=list(names), name="")
    return found


def sent(tf: Any, prefix: str, value: Any) -> Any:
    """A value that leaves by one node and comes back by another."""
    proto, dtype = tf.GraphDef(), "string" if value.dtype == object else value.dtype.name
    key = {"tensor_name": "edge", "send_device": _CPU, "send_device_incarnation": 7,
           "recv_device": _CPU}  # fmt: skip
    _add(proto, tf, "value", "Const", value=value, dtype=dtype)
    _add(proto, tf, "send", f"{prefix}Send", "value", T=dtype, **key)
    _add(proto, tf, "recv", f"{prefix}Recv", tensor_type=dtype, **key)
    _add(proto, tf, "result", "Identity", "recv", T=dtype)
    return _import(tf, proto, "result:0", "send")


def sent_dead(tf: Any, prefix: str) -> Any:
    """What is dead arrives dead."""
    proto = tf.GraphDef()
    key = {"tensor_name": "edge", "send_device": _CPU, "send_device_incarnation": 7,
           "recv_device": _CPU}  # fmt: skip
    _add(proto, tf, "value", "Const", value=f32([1, 2]), dtype="float32")
    _add(proto, tf, "take", "Placeholder", dtype="bool")
    _add(proto, tf, "switch", "Switch", "value", "take", T="float32")
    _add(proto, tf, "send", f"{prefix}Send", "switch:1", T="float32", **key)
    _add(proto, tf, "recv", f"{prefix}Recv", tensor_type="float32", **key)
    _add(proto, tf, "merge", "Merge", "recv", "switch:0", T="float32", N=2)
    take, *results = _import(tf, proto, "take:0", "merge:0", "merge:1", "send")
    return steps(({take: np.bool_(True)}, results), ({take: np.bool_(False)}, results))


def switch_n(tf: Any) -> Any:
    """The index says which output is alive; what is out of range means the last."""
    index, *results = _switched(tf, "merge:0", "merge:1")
    return steps(*(({index: np.int32(chosen)}, results) for chosen in (0, 1, 2, 3, -1)))


def switch_n_dead(tf: Any) -> Any:
    """An output that was not chosen cannot be fetched."""
    index, result = _switched(tf, "product_1:0")
    return steps(({index: np.int32(0)}, [result]))


def _switched(tf: Any, *names: str) -> list[Any]:
    proto = tf.GraphDef()
    _add(proto, tf, "value", "Const", value=f32([3, 4]), dtype="float32")
    _add(proto, tf, "index", "Placeholder", dtype="int32")
    _add(proto, tf, "switch", "_SwitchN", "value", "index", T="float32", num_outs=3)
    for slot in range(3):
        _add(proto, tf, f"factor_{slot}", "Const", value=f32(10**slot), dtype="float32")
        _add(proto, tf, f"product_{slot}", "Mul", f"switch:{slot}", f"factor_{slot}", T="float32")
    products = [f"product_{slot}" for slot in range(3)]
    _add(proto, tf, "merge", "Merge", *products, T="float32", N=3)
    return _import(tf, proto, "index:0", *names)


def argument(tf: Any) -> Any:
    """A function that also takes its argument from the call itself."""
    proto = _calling(tf)
    body = proto.library.function[0]
    again = body.node_def.add(name="again", op="_Arg")
    again.attr["T"].type, again.attr["index"].i = 1, 0
    total = body.node_def.add(name="total", op="AddV2", input=["again:output:0", "x"])
    total.attr["T"].type = 1
    body.ret["y"] = "total:z:0"
    return _import(tf, proto, "call:0")


def result(tf: Any, how: str, returned: str) -> Any:
    """A function that also hands over a result itself; what it returns is what counts."""
    del how
    proto = _calling(tf)
    body = proto.library.function[0]
    negative = body.node_def.add(name="negative", op="Neg", input=["x"])
    negative.attr["T"].type = 1
    handed = body.node_def.add(name="handed", op="_Retval", input=["negative:y:0"])
    handed.attr["T"].type, handed.attr["index"].i = 1, 0
    body.ret["y"] = returned
    return _import(tf, proto, "call:0")


def _calling(tf: Any) -> Any:
    """A graph that calls a function without a body."""
    proto = tf.GraphDef()
    _add(proto, tf, "x", "Const", value=f32(3), dtype="float32")
    _add(proto, tf, "call", "PartitionedCall", "x")
    proto.node[-1].attr["Tin"].list.type.append(1)
    proto.node[-1].attr["Tout"].list.type.append(1)
    proto.node[-1].attr["f"].func.name = "Body"
    signature = proto.library.function.add().signature
    signature.name = "Body"
    signature.input_arg.add(name="x", type=1)
    signature.output_arg.add(name="y", type=1)
    return proto


CASES = [
    *(
        graph(sent, prefix, value)
        for prefix in ("_", "_Host")
        for value in (f32([1, 2]), i32(5), s([b"one", b"two"]))
    ),
    graph(sent_dead, "_"),
    graph(sent_dead, "_Host"),
    graph(switch_n),
    graph(switch_n_dead, says="Retval[0] does not have value"),
    graph(argument),
    graph(result, "same", "negative:y:0"),
    graph(result, "other", "x"),
]
