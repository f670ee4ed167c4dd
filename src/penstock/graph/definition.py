"""The nodes of a GraphDef, read once.

In:   NodeDef messages.
Out:  ``Definition``: their names, ops, devices and inputs as lists, and the order in which they
      are to be created.
Not:  knows no graph and no op's signature; attributes stay in their messages.

Reading a field of a message takes as long as several steps of Python.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from penstock.core.names import CONTROL_SLOT, Endpoint, parse_endpoint
from penstock.errors import InvalidArgumentError

_NEXT_ITERATION: Final = ("NextIteration", "RefNextIteration")
#: Ops whose inputs may come from later nodes.
MERGE: Final = ("Merge", "RefMerge")
#: So few nodes hardly have the same attributes.
_FEW: Final = 16
#: Attributes that are longer than this, in bytes, are not compared with those of others.
_MAX_ENCODED: Final = 512


class Definition:
    """Facts of each def, by its position."""

    def __init__(
        self, protos: Sequence[Any], is_legal: Callable[[str], bool], *, needs_devices: bool
    ) -> None:
        """Read all defs.

        Raises:
            InvalidArgumentError: a name is malformed or not unique, the op or a device that is
                needed is missing, or a data input comes after a control input.

        """
        self.protos: Final = protos
        self.names: Final[list[str]] = []
        self.ops: Final[list[str]] = []
        self.devices: Final[list[str]] = []
        #: Inputs as they are written.
        self.input_texts: Final[list[tuple[str, ...]]] = []
        #: The same, parsed, data before control.
        self.inputs: Final[list[list[Endpoint]]] = []
        #: Positions by name.
        self.position: Final[dict[str, int]] = {}
        for proto in protos:
            self._add(proto, is_legal)
            if needs_devices and not self.devices[-1]:
                raise InvalidArgumentError(
                    f"Node '{self.names[-1]}' is missing a device specification"
                )

    def _add(self, proto: Any, is_legal: Callable[[str], bool]) -> None:
        name, op, texts = proto.name, proto.op, tuple(proto.input)
        if not is_legal(name):
            raise InvalidArgumentError(f"Node '{name}': Node name contains invalid characters")
        if name in self.position:
            raise InvalidArgumentError(f"Node '{name}' is not unique")
        if not op:
            raise InvalidArgumentError(f"Node '{name}' does not specify an operation")
        self.position[name] = len(self.names)
        self.names.append(name)
        self.ops.append(op)
        self.devices.append(proto.device)
        self.input_texts.append(texts)
        self.inputs.append(_parse_inputs(name, texts))

    def encoded_attrs(self, index: int) -> bytes:
        """The encoding of a def without most of what comes before its attributes.

        Each field before them takes two bytes and its text, or some more, which then remain.
        It is b"" where a look for others that are alike is not worth it: if it is long, or there
        are few others.
        """
        if len(self.names) <= _FEW:
            return b""
        proto = self.protos[index]
        if self.ops[index] == "Const" and not _is_scalar(proto):
            return b""  # It may be long, and is hardly ever equal to another.
        texts, device = self.input_texts[index], self.devices[index]
        start = 4 + len(self.names[index]) + len(self.ops[index]) + 2 * len(texts)
        start += sum(map(len, texts)) + (len(device) + 2 if device else 0)
        encoded: bytes = proto.SerializeToString()
        return encoded[start:] if len(encoded) <= start + _MAX_ENCODED else b""

    # -- order ---------------------------------------------------------------------

    def order(self, mapped: Mapping[Endpoint, object]) -> Iterator[int]:
        """Positions in the order of creation: as they are, as far as their inputs allow.

        Args:
            mapped: endpoints that stand for others outside, and need not be waited for.

        Raises:
            InvalidArgumentError: an input names no def; or, after all others were given, some
                positions wait for each other.

        """
        if self._are_in_order(mapped):
            return iter(range(len(self.names)))
        return self._sorted(mapped)

    def _are_in_order(self, mapped: Mapping[Endpoint, object]) -> bool:
        """Whether each def comes after its inputs, and there are no loops; checks all inputs."""
        are_in_order = True
        for index, endpoints in enumerate(self.inputs):
            for place, endpoint in enumerate(endpoints):
                if mapped and endpoint in mapped:
                    continue
                source = self.position.get(endpoint.node)
                if source is None:
                    raise InvalidArgumentError(
                        f"Node '{self.names[index]}': Unknown input node "
                        f"'{self.input_texts[index][place]}'"
                    )
                if source >= index:
                    are_in_order = False
        return are_in_order and not any(op in self.ops for op in _NEXT_ITERATION)

    def _sorted(self, mapped: Mapping[Endpoint, object]) -> Iterator[int]:
        """Always the lowest position whose inputs were given already."""
        pending, consumers = self._count_pending(mapped)
        ready = [index for index, count in enumerate(pending) if count == 0]
        done = 0
        while ready:
            index = heapq.heappop(ready)
            done += 1
            yield index
            for consumer in consumers[index]:
                pending[consumer] -= 1
                if pending[consumer] == 0:
                    heapq.heappush(ready, consumer)
        if done < len(self.names):
            stuck = [self.names[index] for index, count in enumerate(pending) if count > 0]
            raise InvalidArgumentError(
                f"{len(self.names) - done} nodes in a cycle, including: {', '.join(stuck[:3])}",
                next_step="only an edge from a NextIteration to a Merge may close a cycle",
            )

    def _count_pending(
        self, mapped: Mapping[Endpoint, object]
    ) -> tuple[list[int], list[list[int]]]:
        """How many inputs each def waits for, and its consumers, once per input."""
        next_iterations = {
            name for name, op in zip(self.names, self.ops, strict=True) if op in _NEXT_ITERATION
        }
        pending = [0] * len(self.names)
        consumers: list[list[int]] = [[] for _ in self.names]
        for index, endpoints in enumerate(self.inputs):
            is_merge = self.ops[index] in MERGE
            has_back_edge, controls = False, 0
            for endpoint in endpoints:
                if endpoint in mapped:
                    continue
                controls += endpoint.slot == CONTROL_SLOT
                if is_merge and endpoint.node in next_iterations:
                    has_back_edge |= endpoint.slot != CONTROL_SLOT
                    continue  # Not a reason to wait: it may close a loop.
                consumers[self.position[endpoint.node]].append(index)
                pending[index] += 1
            if has_back_edge:
                pending[index] = controls + 1
        return pending, consumers


def _is_scalar(const: Any) -> bool:
    attrs = const.attr
    return "value" in attrs and not attrs["value"].tensor.tensor_shape.dim


def _parse_inputs(name: str, texts: Sequence[str]) -> list[Endpoint]:
    """The inputs of a def; data inputs must all come before control inputs."""
    endpoints = [parse_endpoint(text) for text in texts]
    control_seen = False
    for endpoint in endpoints:
        if endpoint.slot == CONTROL_SLOT:
            control_seen = True
        elif control_seen:
            raise InvalidArgumentError(
                f"Node '{name}': Control dependencies must come after regular dependencies"
            )
    return endpoints
