"""Run functions of the graph's library for the kernels that call them.

In:   a function's name, attributes and arguments, and the caller's context.
Out:  ``done`` gets a tuple of results, or the error.
Not:  does not know who calls, nor waits for anything.

A body is instantiated when it is first called with these attributes, which is what makes
recursion possible.  It shares the caller's step: rendezvous, step container, cancellation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Final, TypeAlias

import numpy as np

from penstock.core.denormals import in_own_setting
from penstock.core.dtypes import DType
from penstock.core.forks import importing
from penstock.core.limits import Limits
from penstock.core.values import ResourceHandle, Value, freeze
from penstock.defs.attrs import Attr, FuncAttr, TensorAttr
from penstock.errors import CancelledError, OpError, ResourceExhaustedError
from penstock.graph.functions import FunctionLibrary
from penstock.graph.instantiate import FunctionBody, instantiate_whole
from penstock.kernels.api.context import CallKind, Done, OpKernelContext
from penstock.runtime.function_instance import FunctionInstance, Pinned
from penstock.runtime.make_instance import InstanceMaker
from penstock.state.call_frame import CallFrame
from penstock.state.checkpoints import checkpoint, heeding
from penstock.state.interrupt import Interrupt

#: Deeper recursion than this is taken for endless.
MAX_CALL_DEPTH: Final = 5000
#: The name under which the kernel of gradients asks for one.
_GRADIENT: Final = "SymbolicGradient"
#: Asked for in every call: to find them in their class takes time.
_NATIVE: Final = CallKind.NATIVE
_PARTITIONED: Final = CallKind.PARTITIONED
#: Name and attributes of a function, whether the call is partitioned, and where its resource
#: arguments lie if it may lie on several devices.
_Key: TypeAlias = tuple[str, str, bool, Pinned]
#: Name of a function, identity of its attributes, and whether the call is partitioned.
_Site: TypeAlias = tuple[str, int, bool]


class FunctionRuntime:
    """Functions of one library on one device."""

    def __init__(
        self,
        library: FunctionLibrary,
        device: str,
        maker: InstanceMaker,
        runtime_of: Callable[[str], FunctionRuntime],
        limits: Limits,
    ) -> None:
        self._library = library
        self._device = device
        self._maker = maker
        #: The runtime of another device.
        self._runtime_of = runtime_of
        #: A function that calls itself twice doubles at every level.
        self._max_in_flight = limits.calls_in_flight
        self._max_known = limits.known_call_sites
        #: Guards ``_instances`` and ``_bodies``.  Not held while a body is instantiated: the
        #: loser of a race throws its work away.
        self._lock = Lock()
        self._instances: dict[_Key, FunctionInstance] = {}
        #: Bodies that were looked at and never called; each is used up by its instance.
        self._bodies: dict[tuple[str, str], FunctionBody] = {}
        #: Instances by name and identity of the attributes, which are kept so that no others
        #: get their place in memory.  A call site has the same ones every time.
        self._known: dict[_Site, tuple[Mapping[str, Attr], FunctionInstance]] = {}
        #: Calls that are not finished.  Also guarded by ``_lock``.
        self._in_flight = 0

    def call(
        self,
        name: str,
        attrs: Mapping[str, Attr],
        args: Sequence[Value],
        context: OpKernelContext,
        done: Done,
        *,
        kind: CallKind = CallKind.NATIVE,
        device: str = "",
    ) -> None:
        """Start a function; see ``FunctionCaller``."""
        if device and device != self._device:
            other = self._runtime_of(device)
            other.call(name, attrs, args, context, done, kind=kind)
            return
        if context.interrupt.loops_end or context.cancellation_manager.is_cancelled:
            # What makes a loop of calls end when something else in its step has failed, or when
            # Ctrl-C was pressed.
            raise CancelledError("Function was cancelled before it was started", derived=True)
        depth = context.step.call_depth + 1
        if depth > MAX_CALL_DEPTH:
            raise _endless(f"Function {name} is called more than {MAX_CALL_DEPTH} levels deep")
        site = self._known.get((name, id(attrs), kind is _PARTITIONED))
        if site is not None and (not site[1].pinned or _pinned(args) == site[1].pinned):
            instance = site[1]
        else:
            instance = self._instance(name, attrs, args, kind, context.interrupt)
        frame = CallFrame(instance.arg_types, instance.ret_types)
        frame.set_args(args)
        self._begin(name)

        def finished(error: BaseException | None) -> None:
            self._end()
            done(error if error is not None else _results(frame, instance, kind))

        try:
            instance.start(frame, context.step, depth, finished)
        except BaseException:
            self._end()
            raise

    def check(self, name: str, attrs: Mapping[str, Attr]) -> None:
        """Raise OpError unless a function is there, and its definition makes sense."""
        key = name, _canonical(attrs)
        with self._lock:
            is_known = key in self._bodies or any(known[:2] == key for known in self._instances)
        if not is_known:
            body = self._body(name, attrs)
            with self._lock:
                self._bodies[key] = body

    def _begin(self, name: str) -> None:
        with self._lock:
            if self._in_flight >= self._max_in_flight:
                raise _endless(
                    f"Function {name} is called while {self._max_in_flight} calls are unfinished"
                )
            self._in_flight += 1

    def _end(self) -> None:
        with self._lock:
            self._in_flight -= 1

    def _instance(
        self,
        name: str,
        attrs: Mapping[str, Attr],
        args: Sequence[Value],
        kind: CallKind,
        interrupt: Interrupt,
    ) -> FunctionInstance:
        """What runs a call from a site that is new, or has arguments on other devices."""
        is_partitioned = kind is _PARTITIONED
        pinned = _pinned(args) if is_partitioned and self._maker.spreads else ()
        found = heeding(interrupt, partial(self._made_instance, name, attrs, kind, pinned))
        with self._lock:
            if len(self._known) < self._max_known:
                self._known[name, id(attrs), is_partitioned] = (attrs, found)
        return found

    def _made_instance(
        self, name: str, attrs: Mapping[str, Attr], kind: CallKind, pinned: Pinned
    ) -> FunctionInstance:
        key = (name, _canonical(attrs), kind is _PARTITIONED, pinned)
        with self._lock:
            known = self._instances.get(key)
            body = None if known else self._bodies.pop(key[:2], None)
        if known is not None:
            return known
        body = body or self._body(name, attrs)
        # Kernels are made, and perhaps libraries imported, in the thread's own setting.
        made = in_own_setting(self._make, body, name, attrs, kind, pinned)
        with self._lock:
            return self._instances.setdefault(key, made)

    def _make(
        self,
        body: FunctionBody,
        name: str,
        attrs: Mapping[str, Attr],
        kind: CallKind,
        pinned: Pinned,
    ) -> FunctionInstance:
        """What runs a body, which is used up; a new one takes its place if need be."""
        title = _title(self._device, name, attrs, kind, pinned)
        try:
            return self._maker.make(body, self._device, kind, pinned, title)
        except OpError:
            checkpoint()
            if not pinned:
                raise
        # A node may take resources that lie apart: devices share them, so any will do.
        made = self._maker.make(self._body(name, attrs), self._device, kind, (), title)
        return dataclasses.replace(made, pinned=pinned)

    def _body(self, name: str, attrs: Mapping[str, Attr]) -> FunctionBody:
        if name == _GRADIENT:
            # Hardly any graph has one, so nobody else waits for the import.
            with importing:
                from penstock.graph.gradients.body import instantiate_gradient  # noqa: PLC0415

            return instantiate_gradient(self._library, attrs["f"])
        return instantiate_whole(self._library, name, attrs)


def _pinned(args: Sequence[Value]) -> Pinned:
    """The devices of resources among arguments, by index."""
    return tuple(
        (index, arg.device) for index, arg in enumerate(args) if isinstance(arg, ResourceHandle)
    )


def _results(frame: CallFrame, instance: FunctionInstance, kind: CallKind) -> object:
    """What ``done`` is told: a tuple of results, or the error that one is missing."""
    allow_dead = kind is not _NATIVE
    try:
        results = frame.consume_retvals(allow_dead=allow_dead)
    except OpError as missing:
        return missing
    if allow_dead and any(result is None for result in results):
        results = list(map(_or_empty, results, instance.ret_types))
    return tuple(results)


def _endless(reason: str) -> ResourceExhaustedError:
    return ResourceExhaustedError(reason, next_step="the recursion probably never ends")


def _or_empty(result: Value | None, dtype: DType) -> Value:
    """A result; for a dead one, a tensor without elements."""
    return freeze(np.empty(0, dtype.numpy)) if result is None else result


def _title(
    device: str, name: str, attrs: Mapping[str, Attr], kind: CallKind, pinned: Pinned
) -> str:
    """What one instance is called in every session that has the same graph."""
    with importing:
        from hashlib import blake2b  # noqa: PLC0415  (brings OpenSSL, and few graphs call functions)

    rest = f"{device} {_canonical(attrs)} {kind is _PARTITIONED} {pinned}"
    return f"{name} {blake2b(rest.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def _canonical(attrs: Mapping[str, Attr]) -> str:
    """Attributes as text, the same for equal ones."""
    return ",".join(f"{name}={_show(value)}" for name, value in sorted(attrs.items()))


def _show(value: Attr) -> str:
    if isinstance(value, FuncAttr):
        return f"{value.name}[{_canonical(value.attrs)}]"
    if isinstance(value, TensorAttr):
        return str(value.proto.SerializeToString(deterministic=True))
    if isinstance(value, tuple):
        return "(" + ",".join(map(_show, value)) + ")"
    return repr(value)
