"""What to write instead of names that TensorFlow has and Penstock has not.

In:   a name that somebody looked for, and where.
Out:  a hint, or "".
Not:  knows no ops, which are many; imports nothing of Penstock.

Only names that programs of TensorFlow 1 use all the time are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

_GRADIENTS: Final = "Penstock derives no gradients: a graph that trains brings its own"
_SAVED: Final = (
    "a graph restores and saves by its own nodes: session.run('save/restore_all', "
    "{'save/Const:0': 'PREFIX'}); see docs/models.md"
)
_VARIABLES: Final = "graph.variables lists what ps.Variable made; a GraphDef has no collections"
_COLLECTIONS: Final = "a GraphDef has no collections; graph.get_tensor_by_name finds by name"
_FILES: Final = "Python's open reads files, and ps.load_graph_def reads graphs"
_LAYERS: Final = "ps.ops has every op of TensorFlow, but no layers are built of them"

#: Hints by place and name.
_HINTS: Final[Mapping[str, Mapping[str, str]]] = {
    "penstock": {
        "ConfigProto": "use ps.Config",
        "GPUOptions": "ps.Config has the options there are; Penstock uses no GPU",
        "GraphDef": "ps.load_graph_def reads one, and graph.as_graph_def() makes one",
        "InteractiveSession": "use `with ps.Session(graph) as session:`",
        "assign": "use variable.assign",
        "assign_add": "use variable.assign_add",
        "assign_sub": "use variable.assign_sub",
        "contrib": _LAYERS,
        "convert_to_tensor": "use ps.constant",
        "data": "ps.ops has the ops of datasets; graphs with datasets run",
        "estimator": _LAYERS,
        "function": "build with ps.cond and ps.while_loop; functions of a GraphDef are run",
        "get_collection": _COLLECTIONS,
        "get_default_graph": "use ps.default_graph",
        "get_default_session": "use ps.default_session",
        "get_variable": "use ps.Variable, with a name of its own",
        "gfile": _FILES,
        "global_variables": _VARIABLES,
        "gradients": _GRADIENTS,
        "initialize_all_variables": "use ps.global_variables_initializer",
        "io": _FILES,
        "keras": _LAYERS,
        "layers": _LAYERS,
        "linalg": "use ps.ops",
        "local_variables_initializer": "use ps.global_variables_initializer",
        "losses": _LAYERS,
        "math": "use ps.ops",
        "metrics": _LAYERS,
        "nn": "use ps.ops: ps.ops.relu, ps.ops.softmax, ps.ops.conv2d",
        "py_func": "use ps.ops.py_func, and ps.register_py_func for the function",
        "random": "use ps.ops: ps.ops.random_uniform, ps.ops.random_standard_normal",
        "set_random_seed": "give the op its seed: ps.ops.random_uniform(shape, seed=1)",
        "strings": "use ps.ops",
        "summary": "use ps.ops: ps.ops.scalar_summary",
        "tables_initializer": "run the node that initializes them: session.run(table_op)",
        "train": f"{_GRADIENTS}; {_SAVED}",
        "trainable_variables": _VARIABLES,
        "variable_scope": "use ps.name_scope",
    },
    "Graph": {
        "add_to_collection": _COLLECTIONS,
        "as_graph_element": "use graph.get_tensor_by_name or graph.get_operation_by_name",
        "colocate_with": "use ps.colocate_with inside `with graph.as_default():`",
        "control_dependencies": "use ps.control_dependencies inside `with graph.as_default():`",
        "create_op": "use graph.apply",
        "device": "use ps.device inside `with graph.as_default():`",
        "finalize": "there is no need: a session sees a graph grow",
        "get_all_collection_keys": _COLLECTIONS,
        "get_collection": _COLLECTIONS,
        "get_collection_ref": _COLLECTIONS,
        "get_name_scope": "`with ps.name_scope(name) as full:` gives it",
        "name_scope": "use ps.name_scope inside `with graph.as_default():`",
        "seed": "give the op its seed",
        "unique_name": "names of new nodes are made unique by themselves",
        "version": "use graph.versions",
    },
    "Session": {
        "sess_str": "sessions of this process have no target",
    },
    "Tensor": {
        "assign": "a Tensor cannot be assigned to; use ps.Variable",
        "numpy": "a Tensor has a value only in a step: session.run(tensor), or tensor.eval()",
        "set_shape": "use ps.ops.ensure_shape",
        "value_index": "use tensor.slot",
    },
    "Operation": {
        "node_def": "use graph.as_graph_def(), or operation.get_attr",
        "op_def": "help(ps.ops.NAME) shows the signature of an op",
        "traceback": "Penstock keeps none",
        "values": "use operation.outputs",
    },
    "Variable": {
        "initialized_value": "use variable.initial_value",
        "load": "use session.run(variable.assign(value))",
        "numpy": "a Variable has a value only in a session: session.run(variable)",
        "trainable": "Penstock derives no gradients, and so trains nothing by itself",
    },
}
#: Functions of TensorFlow's Python, by the function that makes their op here.
_FUNCTIONS: Final[Mapping[str, str]] = {
    "accumulate_n": "add_n",
    "concat": "concat_v2",
    "divide": "real_div",
    "gather": "gather_v2",
    "multiply": "mul",
    "negative": "neg",
    "ones": "fill",
    "random_normal": "random_standard_normal",
    "reduce_all": "all",
    "reduce_any": "any",
    "reduce_max": "max",
    "reduce_mean": "mean",
    "reduce_min": "min",
    "reduce_prod": "prod",
    "reduce_sum": "sum",
    "stack": "pack",
    "subtract": "sub",
    "to_double": "cast",
    "to_float": "cast",
    "to_int32": "cast",
    "to_int64": "cast",
    "truediv": "real_div",
    "unstack": "unpack",
    "where": "select_v2",
    "zeros": "fill",
}


def hint(place: str, name: str) -> str:
    """What to write instead of a name; "" if nothing is known.

    Args:
        place: ``penstock``, or the name of a class.
        name: what was looked for there.

    """
    return _HINTS.get(place, {}).get(name, "")


def function_here(name: str) -> str:
    """The function of ``ps.ops`` for one of TensorFlow's; "" if nothing is known."""
    return _FUNCTIONS.get(name, "")


class Absent:
    """An attribute that is not there, with a hint.

    It is found only when somebody looks for it; a ``__getattr__`` would make every other
    attribute of the class slower to find.
    """

    __slots__ = ("_hint", "_name", "_place")

    def __init__(self, place: str, name: str, hint: str) -> None:
        self._place: Final = place
        self._name: Final = name
        self._hint: Final = hint

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"'{self._place}' object has no attribute '{self._name}'; {self._hint}"
        )


def add_hints(cls: type[Any]) -> None:
    """Answer TensorFlow's names on objects of a class; ``dir`` does not list them."""
    place = cls.__name__
    for name, text in _HINTS[place].items():
        setattr(cls, name, Absent(place, name, text))

    def present(self: object) -> list[str]:
        return [name for name in object.__dir__(self) if name not in _HINTS[place]]

    cls.__dir__ = present  # type: ignore[assignment]
