"""Make the kernel of each node; keep those that have state.

In:   a placed node.
Out:  a ``BoundKernel``; ``bind_at``, for both tiers, says in an error which node it is of.
Not:  runs nothing.

A stateful op's kernel belongs to the session: all requests that contain the node share it,
so that, say, a random stream goes on from run to run.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from penstock.core.denormals import in_own_setting
from penstock.core.device_names import DeviceName
from penstock.errors import InternalError, OpError, Where
from penstock.exceptions import from_exception, shown_cause
from penstock.graph.graph import Node
from penstock.graph.roles import OF_THE_STEP, Role
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.host import CLOSED, Host
from penstock.kernels.api.registry import Calling, Cost, KernelDef, find_kernel, get_kernel
from penstock.kernels.api.traits import KernelTraits

# Nearly every graph needs these families: they come with the package, and no graph waits for them.
from penstock.kernels.array import identity_ops  # noqa: F401
from penstock.kernels.control_flow import transfer_ops  # noqa: F401
from penstock.kernels.control_flow.functional_ops import make_named_call
from penstock.kernels.math import cwise_ops  # noqa: F401
from penstock.state.checkpoints import checkpoint
from penstock.state.node_states import Keeper

#: Nodes whose kernels keep nothing, whatever the catalogue declares.
_FRESH_EACH_TIME: Final = OF_THE_STEP | {Role.CALL}


class KernelBinder:
    """Kernels of one session on one device."""

    def __init__(
        self,
        device: str,
        *,
        accelerate: bool = False,
        by_trial: bool = False,
        host: Host = CLOSED,
        session: str = "",
        keeper: Keeper | None = None,
    ) -> None:
        self.device = device
        self._session = session
        self._accelerate = accelerate
        self._by_trial = by_trial
        self._host = host
        self._keeper = keeper
        self._device_type = DeviceName.parse(device).type or "CPU"
        #: Guards ``_stateful``.  Kernels are made under it, so that each is made once.
        self._lock = Lock()
        #: Kernels that keep state, by node name.
        self._stateful: dict[str, tuple[Node, BoundKernel]] = {}

    def bind(self, node: Node) -> BoundKernel:
        """The kernel of ``node``.

        Raises:
            InvalidArgumentError: there is none, neither for the device nor for a CPU.
            OpError: an attribute makes no sense to it.

        """
        if not node.op.is_stateful or node.role in _FRESH_EACH_TIME:
            return self._make(node)
        with self._lock:
            known = self._stateful.get(node.name)
            if known is None or known[0].op is not node.op:
                known = self._stateful[node.name] = (node, self._make(node))
            return known[1]

    def _make(self, node: Node) -> BoundKernel:
        attrs = Attrs(
            node.op,
            node.attrs,
            node.input_types,
            node.output_types,
            node.name,
            self.device,
            self._accelerate,
            self._by_trial,
            self._host,
            self._session,
            self._keeper,
        )
        if node.op.is_function:
            return BoundKernel(make_named_call(node.op.name, attrs), Calling.ASYNC, Cost.CHEAP)
        # The placer chooses devices by their kernels.  What comes later, the nodes that join
        # devices, works everywhere as it does on a CPU.
        own = find_kernel(node.op.name, self._device_type, node.attrs)
        found = own or get_kernel(node.op.name, "CPU", node.attrs)
        try:
            compute = found.made(attrs)
            if not callable(compute):
                raise _not_a_kernel(found, compute)
            if not found.is_builtin:
                compute = functools.partial(in_own_setting, compute)
        except OpError:
            raise
        except Exception as cause:  # noqa: BLE001  (the one border of makers)
            raise from_exception(cause) from shown_cause(cause)
        is_pure, traits = _is_pure(found, node), _traits(found, node)
        return BoundKernel(compute, found.calling, found.cost, found.is_builtin, is_pure, traits)


def bind_at(
    make_kernel: Callable[[Node], BoundKernel], node: Node, device: str, function: str
) -> BoundKernel:
    """The kernel of a node; raises OpError with the node's place if it cannot be made."""
    checkpoint()
    try:
        return make_kernel(node)
    except OpError as error:
        where = Where(node.name, node.op.name, device, function=node.function or function)
        raise error.at(where) from error.__cause__


def _not_a_kernel(found: KernelDef, made: object) -> InternalError:
    """The error of a maker that returned something else than a kernel."""
    maker: Any = found.make
    name = getattr(maker, "__qualname__", type(maker).__qualname__)
    what = "nothing" if made is None else f"a {type(made).__name__}, which cannot be called"
    return InternalError(
        f"{name} in {getattr(maker, '__module__', '?')}, which makes kernels of Op '{found.op}', "
        f"returned {what}",
        next_step="a maker reads a node's attributes and returns the function that computes "
        "its outputs: `return lambda x: x + 1`, say",
    )


def _traits(found: KernelDef, node: Node) -> KernelTraits:
    """What is said of a kernel, as far as it can be true of a node."""
    if found.traits.forwards and not found.is_builtin and node.input_types != node.output_types:
        return dataclasses.replace(found.traits, forwards=False)
    return found.traits


def _is_pure(found: KernelDef, node: Node) -> bool:
    """Whether a kernel does nothing but compute, or make what nobody has seen yet."""
    if found.traits.is_pure is not None:
        return found.traits.is_pure
    is_plain = found.calling is Calling.PLAIN and not node.op.is_stateful
    return is_plain or node.op.traits.makes_handle
