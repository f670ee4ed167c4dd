"""Write the signature of every TensorFlow op as the table ``catalogue/ops.txt``.

In:   an installed TensorFlow (``pip install tensorflow-cpu``, in an environment of its own).
Out:  one line per op: inputs, outputs, attributes with defaults and constraints, flags.
Not:  takes no documentation texts.

    python tools/make_catalogue.py > src/penstock/catalogue/ops.txt
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import tensorflow  # noqa: F401  (registers the ops)
from tensorflow.core.framework import op_def_pb2, types_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import test_ops

NAMES = {"DT_HALF": "float16", "DT_FLOAT": "float32", "DT_DOUBLE": "float64"}
HEADER = """\
# The signature of every TensorFlow op.  Made by tools/make_catalogue.py; not edited by hand.
#
#   Op(input: type, ...) -> (output: type, ...) [attr: kind{allowed} >= minimum = default, ...] flags
#
# A type is a data type, the name of a type attribute, COUNT*TYPE for a list of one type, or
# LIST* for a list whose types the attribute LIST gives; "ref" marks a reference.  Defaults are JSON.
# The flag "test" marks what only TensorFlow's own tests use."""


def type_name(number: int) -> str:
    """Penstock's name of a data type."""
    name = types_pb2.DataType.Name(number)
    return NAMES.get(name, name.removeprefix("DT_").lower())


def arg(a: Any) -> str:
    """``name: type`` of an input or output."""
    base = a.type_attr or (type_name(a.type) if a.type else "")
    if a.type_list_attr:
        base = a.type_list_attr + "*"
    elif a.number_attr:
        base = f"{a.number_attr}*{base}"
    return f"{a.name}: {'ref ' if a.is_ref else ''}{base}"


def shape_json(shape: Any) -> Any:
    """A shape as JSON: null for unknown rank, -1 for an unknown size."""
    return None if shape.unknown_rank else [dim.size for dim in shape.dim]


def one(field: str, value: Any) -> Any:
    """A single attribute value as JSON."""
    if field == "s":
        return value.decode("latin-1")
    if field == "type":
        return type_name(value)
    if field == "shape":
        return shape_json(value)
    if field == "func":
        return value.name
    if field == "f":
        return float(f"{value:.9g}")
    if field == "tensor":  # the few that exist hold small integers
        shape, values = shape_json(value.tensor_shape), list(value.int_val)
        return {"dtype": type_name(value.dtype), "shape": shape, "values": values}
    return value


def default(value: Any) -> str:
    """A default as JSON."""
    field = value.WhichOneof("value")
    if field == "list":
        for f, items in value.list.ListFields():
            return json.dumps([one(f.name, item) for item in items], separators=(",", ":"))
        return "[]"
    return json.dumps(one(field, getattr(value, field)), separators=(",", ":"))


def attr(a: Any) -> str:
    """``name: kind{allowed} >= minimum = default``."""
    text = f"{a.name}: {a.type}"
    if a.HasField("allowed_values"):
        allowed = a.allowed_values.list
        items = [type_name(t) for t in allowed.type] or [s.decode() for s in allowed.s]
        text += "{" + " ".join(items) + "}"
    if a.has_minimum:
        text += f" >= {a.minimum}"
    if a.HasField("default_value"):
        text += f" = {default(a.default_value)}"
    return text


def ops_for_tests() -> set[str]:
    """The ops that only TensorFlow's own tests use: its Python keeps their functions apart."""
    source = Path(test_ops.__file__).read_text("utf-8")
    return set(re.findall(r'_apply_op_helper\(\s*"([\w>]+)"', source))


def flags(op: Any) -> str:
    """The op's properties as words."""
    words = []
    if op.is_stateful:
        words.append("stateful")
    if op.is_commutative:
        words.append("commutative")
    if op.is_aggregate:
        words.append("aggregate")
    if op.allows_uninitialized_input:
        words.append("uninitialized")
    if op.deprecation.version:
        words.append(f"deprecated={op.deprecation.version}")
    if op.name in FOR_TESTS:
        words.append("test")
    return "".join(" " + word for word in words)


FOR_TESTS = ops_for_tests()


def main() -> None:
    """Print the table, ops in alphabetical order."""
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    print(HEADER)
    for op in sorted(ops.op, key=lambda op: op.name):
        inputs = ", ".join(map(arg, op.input_arg))
        outputs = ", ".join(map(arg, op.output_arg))
        attrs = ", ".join(map(attr, op.attr))
        print(f"{op.name}({inputs}) -> ({outputs})" + (f" [{attrs}]" if attrs else "") + flags(op))


if __name__ == "__main__":
    main()
