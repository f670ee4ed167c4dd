"""Run functions of the graph's library for the kernels that call them.

In:   a function's name, attributes and arguments, and the caller's context.
Out:  ``done`` gets a tuple of results, or the error.
Not:  does not know who calls, nor waits for anything.

A body is instantiated when it is first called with these attributes, which is what makes
recursion possible.  It shares the caller's step: rendezvous, step container, cancellation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Final

import numpy as np

from penstock.core.denormals import in_own_setting
from penstock.core.dtypes import DType
from penstock.core.values import Value, freeze
from penstock.defs.attrs import Attr, FuncAttr, TensorAttr
from penstock.errors import CancelledError, OpError, ResourceExhaustedError
from penstock.graph.functions import FunctionLibrary
from penstock.graph.instantiate import FunctionBody, instantiate
from penstock.kernels.context import Done, OpKernelContext, StepContext
from penstock.runtime.compiler.region import Region
from penstock.runtime.executor.params import ExecutorArgs
from penstock.runtime.runnable import Runnable
from penstock.runtime.step_loop import Trampoline
from penstock.state.call_frame import CallFrame
from penstock.state.checkpoints import heeding

#: Deeper recursion than this is taken for endless.
MAX_CALL_DEPTH: Final = 5000
#: So is wider recursion: a function that calls itself twice doubles at every level.
MAX_CALLS_IN_FLIGHT: Final = 100_000
#: The name under which the kernel of gradients asks for one.
_GRADIENT: Final = "SymbolicGradient"
#: Call sites whose attributes are kept; a kernel may make new ones for every call.
MAX_KNOWN_SITES: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Instance:
    """One function for one set of attributes, ready to run."""

    body: FunctionBody
    runnable: Runnable


class FunctionRuntime:
    """Functions of one library on one device."""

    def __init__(
        self, library: FunctionLibrary, new_runnable: Callable[[FunctionBody], Runnable]
    ) -> None:
        self._library = library
        self._new_runnable = new_runnable
        #: Guards ``_instances`` and ``_bodies``.  Not held while a body is instantiated: the
        #: loser of a race throws its work away.
        self._lock = Lock()
        self._instances: dict[tuple[str, str], _Instance] = {}
        #: Bodies that were looked at and never called; each is used up by its instance.
        self._bodies: dict[tuple[str, str], FunctionBody] = {}
        #: The same, by name and identity of the attributes, which are kept so that no others
        #: get their place in memory.  A call site has the same ones every time.
        self._known: dict[tuple[str, int], tuple[Mapping[str, Attr], _Instance]] = {}
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
        allow_dead: bool = False,
    ) -> None:
        """Start a function; see ``FunctionCaller``."""
        if context.interrupt.loops_end or context.cancellation_manager.is_cancelled:
            # What makes a loop of calls end when something else in its step has failed, or when
            # Ctrl-C was pressed.
            raise CancelledError("Function was cancelled before it was started", derived=True)
        depth = context.step.call_depth + 1
        if depth > MAX_CALL_DEPTH:
            raise _endless(f"Function {name} is called more than {MAX_CALL_DEPTH} levels deep")
        site = self._known.get((name, id(attrs)))
        if site is not None:
            instance = site[1]
        else:
            instance = heeding(context.interrupt, partial(self._instance, name, attrs))
        frame = CallFrame(instance.body.arg_types, instance.body.ret_types)
        frame.set_args(args)
        self._begin(name)

        def finished(error: BaseException | None) -> None:
            self._end()
            done(error if error is not None else _results(frame, instance.body, allow_dead))

        step = context.step
        whole = instance.runnable.whole
        if whole is not None:
            _run_whole(whole, step, args, frame, finished)
            return
        instance.runnable.executor(step.interrupt).run_async(
            ExecutorArgs(
                step_id=step.step_id,
                rendezvous=step.rendezvous,
                call_frame=frame,
                cancellation_manager=step.cancellation_manager,
                session_state=step.session_state,
                tensor_store=step.tensor_store,
                step_container=step.step_container,
                runner=step.runner,
                pool=step.pool,
                interrupt=step.interrupt,
                flush=step.flush,
                call_depth=depth,
            ),
            finished,
        )

    def check(self, name: str, attrs: Mapping[str, Attr]) -> None:
        """Raise OpError unless a function is there, and its definition makes sense."""
        key = (name, _canonical(attrs))
        with self._lock:
            is_known = key in self._instances or key in self._bodies
        if not is_known:
            body = self._body(name, attrs)
            with self._lock:
                self._bodies[key] = body

    def _begin(self, name: str) -> None:
        with self._lock:
            if self._in_flight >= MAX_CALLS_IN_FLIGHT:
                raise _endless(
                    f"Function {name} is called while {MAX_CALLS_IN_FLIGHT} calls are unfinished"
                )
            self._in_flight += 1

    def _end(self) -> None:
        with self._lock:
            self._in_flight -= 1

    def _instance(self, name: str, attrs: Mapping[str, Attr]) -> _Instance:
        key = (name, _canonical(attrs))
        with self._lock:
            known = self._instances.get(key)
            body = None if known else self._bodies.pop(key, None)
        if known is None:
            body = body or self._body(name, attrs)
            # Kernels are made, and perhaps libraries imported, in the thread's own setting.
            known = _Instance(body, in_own_setting(self._new_runnable, body))
        with self._lock:
            known = self._instances.setdefault(key, known)
            if len(self._known) < MAX_KNOWN_SITES:
                self._known[name, id(attrs)] = (attrs, known)
            return known

    def _body(self, name: str, attrs: Mapping[str, Attr]) -> FunctionBody:
        if name == _GRADIENT:
            # Hardly any graph has one, so nobody else waits for the import.
            from penstock.graph.gradients.body import instantiate_gradient  # noqa: PLC0415

            return instantiate_gradient(self._library, attrs["f"])
        return instantiate(self._library, name, attrs)


def _run_whole(
    region: Region,
    step: StepContext,
    args: Sequence[Value],
    frame: CallFrame,
    finished: Callable[[BaseException | None], None],
) -> None:
    """Run a body that is one compiled function, when the step's thread comes to it."""

    def run() -> None:
        try:
            with np.errstate(all="ignore"):
                results = region.run(step, *args)
            for index, result in enumerate(results):
                if result is not None:
                    frame.set_retval(index, result)
        except BaseException as error:  # noqa: BLE001  (handed to the node's own done)
            finished(error)
            return
        finished(None)

    # Not at once: a function that calls the next one when it is done would never return.
    (step.runner or Trampoline().schedule)(run)


def _results(frame: CallFrame, body: FunctionBody, allow_dead: bool) -> object:  # noqa: FBT001
    """What ``done`` is told: a tuple of results, or the error that one is missing."""
    try:
        results = frame.consume_retvals(allow_dead=allow_dead)
    except OpError as missing:
        return missing
    if allow_dead and any(result is None for result in results):
        results = list(map(_or_empty, results, body.ret_types))
    return tuple(results)


def _endless(reason: str) -> ResourceExhaustedError:
    return ResourceExhaustedError(reason, next_step="the recursion probably never ends")


def _or_empty(result: Value | None, dtype: DType) -> Value:
    """A result; for a dead one, a tensor without elements."""
    return freeze(np.empty(0, dtype.numpy)) if result is None else result


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
