"""Legal mutations of what stands in nodes and steps: attributes, devices, feeds, fetches."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import numpy as np

from fuzzing.mutant import Mutant
from fuzzing.table import legal
from penstock.catalogue.registry import find_op
from penstock.core.dtypes import DType
from penstock.defs import tensors
from penstock.defs.schema import Message
from penstock.errors import OpError

_ENTERS: Final = ("Enter", "RefEnter")
#: Integers that attributes and constants are likely to treat in a way of their own.
_INTEGERS: Final = (-2, -1, 0, 1, 2, 3, 5, 10)


@legal(5)
def enter_otherwise(mutant: Mutant, draw: Random) -> str | None:
    """Change what an Enter says of its loop: constant or not, how many iterations, which frame."""
    nodes = mutant.of_op(*_ENTERS)
    if not nodes:
        return None
    node = draw.choice(nodes)
    which = draw.choice(["is_constant", "is_constant", "parallel_iterations", "frame_name"])
    if which == "is_constant":
        node.attr[which].b = not node.attr[which].b
    elif which == "parallel_iterations":
        node.attr[which].i = draw.choice([1, 1, 2, 3, 10, 100])
    else:
        frames = sorted({other.attr[which].s for other in nodes})
        node.attr[which].s = draw.choice([*frames, b"another"])
    return f"{which} of {node.name} is {_shown(node.attr[which])}"


@legal(4)
def change_attr(mutant: Mutant, draw: Random) -> str | None:
    """Give an attribute another value of its kind."""
    places = [
        (node, name)
        for node in mutant.all_nodes()
        for name in sorted(node.attr)
        if node.attr[name].WhichOneof("value") in _CHANGES
    ]
    if not places:
        return None
    node, name = draw.choice(places)
    value = node.attr[name]
    old = _shown(value)
    _CHANGES[value.WhichOneof("value")](value, draw)
    _stay_allowed(node, name, value, draw)
    return f"{name} of {node.name} is {_shown(value)}, not {old}"


@legal(1)
def drop_attr(mutant: Mutant, draw: Random) -> str | None:
    """Have an attribute take its default, if it has one."""
    places = [(node, name) for node in mutant.all_nodes() for name in sorted(node.attr)]
    has_default = [
        (node, name)
        for node, name in places
        if (op := find_op(node.op)) is not None
        and name in op.attrs
        and op.attrs[name].default is not None
    ]
    if not has_default:
        return None
    node, name = draw.choice(has_default)
    del node.attr[name]
    return f"{name} of {node.name} is the default"


@legal(2)
def colocate(mutant: Mutant, draw: Random) -> str | None:
    """Put a node into the group of another one, or out of all groups."""
    node, other = draw.choice(mutant.graph.node), draw.choice(mutant.graph.node)
    if draw.random() < 0.3:
        node.attr.pop("_class", None)
        return f"{node.name} is in no group"
    del node.attr["_class"].list.s[:]
    node.attr["_class"].list.s.append(b"loc:@" + other.name.encode())
    return f"{node.name} is with {other.name}"


@legal(3)
def move_to_device(mutant: Mutant, draw: Random) -> str | None:
    """Ask for another CPU for a node, or for a part of all of them."""
    mutant.device_count = max(mutant.device_count, 2)
    if draw.random() < 0.6:
        node = draw.choice(mutant.graph.node)
        node.device = f"/device:CPU:{draw.randrange(2)}"
        return f"{node.name} on {node.device}"
    for node in mutant.graph.node:
        if draw.random() < 0.4:
            node.device = f"/device:CPU:{draw.randrange(2)}"
    return "nodes on two devices"


@legal(5)
def change_const(mutant: Mutant, draw: Random) -> str | None:
    """Change what a constant holds."""
    nodes = [n for n in mutant.all_nodes() if n.op == "Const" and "value" in n.attr]
    if not nodes:
        return None
    node = draw.choice(nodes)
    changed = _changed(node.attr["value"].tensor, draw)
    if changed is None:
        return None
    node.attr["value"].tensor.CopyFrom(changed)
    shape = [dim.size for dim in changed.tensor_shape.dim]
    return f"{node.name} holds something else of shape {shape}"


@legal(4)
def change_feed(mutant: Mutant, draw: Random) -> str | None:
    """Feed another value."""
    fed = [(step, name) for step in mutant.steps for name in sorted(step.feeds)]
    if not fed:
        return None
    step, name = draw.choice(fed)
    dtype = mutant.type_of(name)
    if dtype is None:
        return None
    step.feeds[name] = _another(np.asarray(step.feeds[name]), draw)
    return f"{name} is fed with {_value_text(step.feeds[name])}"


@legal(3)
def feed_elsewhere(mutant: Mutant, draw: Random) -> str | None:
    """Feed another endpoint."""
    endpoints = [(text, dtype.base) for text, dtype in mutant.endpoints()]
    endpoints = [(text, dtype) for text, dtype in endpoints if dtype.numpy.kind != "O"]
    if not endpoints or not mutant.steps:
        return None
    text, dtype = draw.choice(endpoints)
    like = [np.asarray(v) for s in mutant.steps for v in s.feeds.values()]
    shapes = [(), *(value.shape for value in like)]
    value = _random(draw.choice(shapes), dtype, draw)
    for step in mutant.steps:
        step.feeds = {k: v for k, v in step.feeds.items() if k != text}
        step.feeds[text] = value
    return f"{text} is fed with {_value_text(value)}"


@legal(1)
def feed_less(mutant: Mutant, draw: Random) -> str | None:
    """Do not feed something any more."""
    fed = sorted({name for step in mutant.steps for name in step.feeds})
    if not fed:
        return None
    name = draw.choice(fed)
    for step in mutant.steps:
        step.feeds.pop(name, None)
    return f"{name} is not fed"


@legal(6)
def fetch_elsewhere(mutant: Mutant, draw: Random) -> str | None:
    """Fetch other endpoints, too, or instead."""
    endpoints = [text for text, _ in mutant.endpoints()]
    if not endpoints or not mutant.steps:
        return None
    step = draw.choice(mutant.steps)
    if draw.random() < 0.3 and step.fetches:
        step.fetches.remove(draw.choice(step.fetches))
    added = draw.sample(endpoints, min(len(endpoints), draw.choice([1, 1, 2, 4])))
    step.fetches += [text for text in added if text not in step.fetches]
    return f"{', '.join(added)} fetched in step {mutant.steps.index(step)}"


@legal(2)
def run_elsewhere(mutant: Mutant, draw: Random) -> str | None:
    """Run other nodes for their effects, too, or instead."""
    if not mutant.steps:
        return None
    step = draw.choice(mutant.steps)
    if draw.random() < 0.3 and step.targets:
        step.targets.remove(draw.choice(step.targets))
    name = draw.choice(mutant.graph.node).name
    step.targets += [name] if name not in step.targets else []
    return f"{name} run in step {mutant.steps.index(step)}"


@legal(1)
def repeat_step(mutant: Mutant, draw: Random) -> str | None:
    """Run a step once more, or leave one out."""
    if not mutant.steps:
        return None
    place = draw.randrange(len(mutant.steps))
    if draw.random() < 0.3 and len(mutant.steps) > 1:
        del mutant.steps[place]
        return f"step {place} is left out"
    mutant.steps.insert(place, mutant.steps[place])
    return f"step {place} is run twice"


# -- other values ------------------------------------------------------------------------------


def _number(old: int, draw: Random) -> int:
    return draw.choice([old + 1, old - 1, *_INTEGERS])


def _change_int(value: Message, draw: Random) -> None:
    value.i = _number(value.i, draw)


def _change_float(value: Message, draw: Random) -> None:
    value.f = draw.choice([0.0, 1.0, -1.0, 0.5, value.f * 2, float("nan"), float("inf"), 1e-7])


def _change_bool(value: Message, _draw: Random) -> None:
    value.b = not value.b


def _change_shape(value: Message, draw: Random) -> None:
    shape = value.shape
    kind = draw.randrange(4)
    if kind == 0 and shape.dim:
        draw.choice(shape.dim).size = draw.choice([-1, 0, 1, 2, 7])
    elif kind == 1:
        shape.dim.add(size=draw.choice([-1, 1, 2]))
    elif kind == 2 and shape.dim:
        del shape.dim[-1]
    else:
        shape.unknown_rank = not shape.unknown_rank
        del shape.dim[:]


def _change_type(value: Message, draw: Random) -> None:
    value.type = draw.choice([1, 2, 3, 4, 7, 9, 10, 14, 19])


def _change_list(value: Message, draw: Random) -> None:
    items = value.list
    if len(items.i):
        place = draw.randrange(len(items.i))
        items.i[place] = _number(items.i[place], draw)
    elif len(items.f):
        items.f[draw.randrange(len(items.f))] = draw.choice([0.0, 1.0, -2.5])
    elif len(items.type):
        items.type[draw.randrange(len(items.type))] = draw.choice([1, 3, 9, 10])
    elif len(items.shape):
        del items.shape[draw.randrange(len(items.shape))].dim[:]


_CHANGES: Final[dict[str, Callable[[Message, Random], None]]] = {
    "i": _change_int,
    "f": _change_float,
    "b": _change_bool,
    "shape": _change_shape,
    "type": _change_type,
    "list": _change_list,
    "s": lambda _value, _draw: None,
}


def _stay_allowed(node: Message, name: str, value: Message, draw: Random) -> None:
    """Of texts and types that an op names, take another one of those."""
    op = find_op(node.op)
    allowed = op.attrs[name].allowed if op is not None and name in op.attrs else None
    if not allowed:
        return
    chosen = draw.choice(sorted(allowed, key=str))
    if isinstance(chosen, bytes) and value.WhichOneof("value") == "s":
        value.s = chosen
    elif isinstance(chosen, DType) and value.WhichOneof("value") == "type":
        value.type = chosen.number


def _changed(proto: Message, draw: Random) -> Message | None:
    """Another tensor of the same type; None if this one is of a kind that is left alone."""
    try:
        old = np.asarray(tensors.from_proto(proto))
    except (OpError, ValueError, TypeError):
        return None
    if old.dtype.kind not in "biufc":
        return None
    changed = tensors.to_proto(_another(old, draw)[()])
    changed.dtype = proto.dtype
    return changed


def _another(old: Any, draw: Random) -> Any:
    """Another array of the same type, and mostly of the same shape."""
    kind = draw.randrange(6)
    if kind == 0:
        return np.zeros_like(old)
    if kind == 1 and old.ndim:
        return (
            old[..., :0]
            if draw.random() < 0.3
            else np.repeat(old, 2, axis=draw.randrange(old.ndim))
        )
    if kind == 2:
        return old[None] if draw.random() < 0.5 else old.reshape(-1)
    if old.dtype.kind not in "biufc" or not old.size:
        return old
    if old.dtype == np.bool_:
        return ~old
    new = old.copy()
    place = np.unravel_index(draw.randrange(old.size), old.shape)
    with np.errstate(all="ignore"):
        number = int(np.nan_to_num(old[place].real)) & 0xFFFF
        new[place] = np.int64(_number(number, draw)).astype(old.dtype)
    return new


def _random(shape: tuple[int, ...], dtype: DType, draw: Random) -> Any:
    """Small numbers of some type."""
    numbers = np.random.default_rng(draw.randrange(2**32)).integers(-3, 6, shape)
    return np.asarray(numbers).astype(bool if dtype.name == "bool" else dtype.numpy)


def _value_text(value: Any) -> str:
    array = np.asarray(value)
    return f"{array.dtype} of shape {list(array.shape)}" if array.ndim else repr(array[()])


def _shown(value: Message) -> str:
    return str(value).strip().replace("\n", " ")[:80]
