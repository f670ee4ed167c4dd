"""Kernels that run functions: calls, and If, Case, While and For that were not lowered.

In:   values, and functions by name in the attributes.
Out:  the functions' results.
Not:  runs no graph itself; it asks the step's ``FunctionCaller``.

All are asynchronous, since a function may wait.  A loop is a small state machine that is
woken by each function's end, so that no call stack grows with its iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from penstock.core.device_names import ANY, DeviceName
from penstock.core.dtypes import DType
from penstock.core.values import Value, as_value, describe, has_dtype, shape_of
from penstock.defs.attrs import FuncAttr
from penstock.errors import InternalError, InvalidArgumentError, NotFoundError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import CallKind, Done, FunctionCaller, OpKernelContext, Waiting
from penstock.kernels.api.registry import Kernel, async_kernel
from penstock.kernels.values.arrays import shape_text

#: The attribute by which If, Case and While ask to become Switches and Merges; those of
#: TensorFlow 2 do.
LOWERED: Final = "_lower_using_switch_merge"
_EXECUTOR_TYPES: Final = ("", "DEFAULT", "SINGLE_THREADED_EXECUTOR")


def call(
    context: OpKernelContext,
    func: FuncAttr,
    args: Sequence[Value],
    done: Done,
    *,
    kind: CallKind = CallKind.NATIVE,
    device: str = "",
) -> None:
    """Start a function of the graph's library."""
    context.waits_for = context.waits_for or f"the function {func.name}"
    _caller(context).call(func.name, func.attrs, args, context, done, kind=kind, device=device)


def _caller(context: OpKernelContext) -> FunctionCaller:
    functions = context.step.functions
    if functions is None:
        raise InternalError(f"{context.op} needs a function library, and the step has none")
    return functions


class _Whole:
    """Functions of one node, which must be right even if they are never called."""

    __slots__ = ("_functions",)

    def __init__(self, *functions: FuncAttr) -> None:
        #: Those that nobody has looked at; none once all of them are right.  Set by any thread:
        #: who comes at the same time looks for itself.
        self._functions = functions

    def check(self, context: OpKernelContext) -> None:
        """Raise OpError if one is not there, or makes no sense."""
        if self._functions:
            for func in self._functions:
                _caller(context).check(func.name, func.attrs)
            self._functions = ()


def as_bool(value: Value) -> bool:
    """How If and While read a condition: not zero, not empty text, not an empty tensor."""
    if isinstance(value, np.ndarray) and value.ndim:
        return value.size > 0
    if not isinstance(value, (np.generic, np.ndarray, bytes)):
        raise InvalidArgumentError(f"{describe(value)} cannot be converted to a bool")
    return bool(value)


def condition_of(attrs: Attrs) -> Callable[[Value], bool]:
    """How an If or a While reads its condition.

    What is meant to become Switches takes what a Switch does, whether or not it becomes any.
    """
    return _as_predicate if attrs.values.get(LOWERED) is True else as_bool


def _as_predicate(value: Value) -> bool:
    if isinstance(value, np.ndarray) and value.ndim and value.dtype == np.bool_:
        raise InvalidArgumentError(
            f"The second input must be a scalar, but it has shape {list(value.shape)}"
        )
    return as_bool(value)


def expecting(types: Sequence[DType], done: Done) -> Done:
    """A ``done`` that refuses results that are not what the node declares."""

    def check(results: Sequence[Value]) -> None:
        if len(results) != len(types):
            raise InternalError(f"Expect to produce {len(types)} tensors, but get {len(results)}")
        for slot, (value, dtype) in enumerate(zip(results, types, strict=True)):
            if not has_dtype(value, dtype):
                raise InternalError(
                    f"Expect {slot}-th output is of type {dtype} but get {describe(value)}"
                )
        done(results)

    return guarded(check, done)


@async_kernel("PartitionedCall", "StatefulPartitionedCall")
def make_call(attrs: Attrs) -> Kernel:
    """Call a function; its dead results become empty tensors."""
    func, types = attrs.func("f"), attrs.output_types
    executor_type = attrs.str("executor_type")
    if executor_type not in _EXECUTOR_TYPES:
        raise NotFoundError(
            f"No executor factory registered for the given executor type: {executor_type}"
        )

    def run(context: OpKernelContext, done: Done, *args: Value) -> None:
        call(context, func, args, expecting(types, done), kind=CallKind.PARTITIONED)

    return run


@async_kernel("RemoteCall")
def make_remote_call(attrs: Attrs) -> Kernel:
    """Call a function on the device that is named; what the name leaves out is as here."""
    func, types, own = attrs.func("f"), attrs.output_types, DeviceName.try_parse(attrs.device)

    def run(context: OpKernelContext, done: Done, target: Value, *args: Value) -> None:
        text = as_value(target).decode("utf-8", "replace")
        named = DeviceName.try_parse(text) or DeviceName.try_parse(f"/device:{text}")
        if named is None:
            raise InvalidArgumentError(f"Could not parse {text} into a device specification.")
        device = str((own or ANY).narrowed_to(named))
        call(context, func, args, expecting(types, done), device=device)

    return run


@async_kernel("If", "StatelessIf", "_If")
def make_if(attrs: Attrs) -> Kernel:
    """Call one of two functions."""
    then_branch, else_branch = attrs.func("then_branch"), attrs.func("else_branch")
    types, is_true = attrs.output_types, condition_of(attrs)
    whole = _Whole(then_branch, else_branch)

    def run(context: OpKernelContext, done: Done, cond: Value, *args: Value) -> None:
        whole.check(context)
        branch = then_branch if is_true(cond) else else_branch
        call(context, branch, args, expecting(types, done))

    return run


@async_kernel("Case", "StatelessCase")
def make_case(attrs: Attrs) -> Kernel:
    """Call the function with the index; out of range means the last one."""
    branches, types = attrs.list("branches"), attrs.output_types
    whole = _Whole(*branches)

    def run(context: OpKernelContext, done: Done, index: Value, *args: Value) -> None:
        whole.check(context)
        chosen = int(index)
        in_range = 0 <= chosen < len(branches)
        call(context, branches[chosen if in_range else -1], args, expecting(types, done))

    return run


@async_kernel("While", "StatelessWhile", "_While")
def make_while(attrs: Attrs) -> Kernel:
    """Call the body as long as the condition holds."""
    cond, body, is_true = attrs.func("cond"), attrs.func("body"), condition_of(attrs)
    whole = _Whole(cond, body)

    def run(context: OpKernelContext, done: Done, *args: Value) -> None:
        whole.check(context)
        _While(context, cond, body, is_true, done).test(args)

    return run


class _While:
    """One run of a While: waits in turn for the condition and for the body."""

    __slots__ = ("body", "cond", "context", "done", "is_true", "iteration", "values")

    def __init__(
        self,
        context: OpKernelContext,
        cond: FuncAttr,
        body: FuncAttr,
        is_true: Callable[[Value], bool],
        done: Done,
    ) -> None:
        self.context = context
        self.cond = cond
        self.body = body
        self.is_true = is_true
        self.done = done
        #: The loop variables as the condition sees them.
        self.values: Sequence[Value] = ()
        #: How many times the body has run.
        self.iteration = 0
        context.waits_for = Waiting(self.describe)

    def describe(self) -> str:
        """What the loop is at."""
        return f"iteration {self.iteration} of the functions {self.cond.name} and {self.body.name}"

    def test(self, values: Sequence[Value]) -> None:
        """Ask the condition."""
        self.values = values
        call(self.context, self.cond, values, self._guarded(self.decide))

    def decide(self, results: Sequence[Value]) -> None:
        """Go on, or be done."""
        if len(results) != 1:
            raise InvalidArgumentError(
                "Expected a single scalar return value from WhileOp cond, got "
                f"{len(results)} tensors."
            )
        if not self.is_true(results[0]):
            self.done(tuple(self.values))
            return
        call(self.context, self.body, self.values, self._guarded(self.follow))

    def follow(self, results: Sequence[Value]) -> None:
        """Take the body's results as the next iteration's variables."""
        if len(results) != len(self.values):
            raise InvalidArgumentError(
                f"While loop body returned {len(results)} arguments. Expected: {len(self.values)}"
            )
        self.iteration += 1
        self.test(results)

    def _guarded(self, go_on: Callable[[Any], None]) -> Done:
        return guarded(go_on, self.done)


def guarded(go_on: Callable[[Any], None], done: Done) -> Done:
    """A ``done`` that goes on with results, and passes errors (its own too) to ``done``."""

    def receive(result: object) -> None:
        if isinstance(result, BaseException):
            done(result)
            return
        try:
            go_on(result)
        except BaseException as error:  # noqa: BLE001  (handed to the node's own done)
            done(error)

    return receive


def _number(name: str, value: Value) -> int:
    if shape_of(value) != ():
        raise InvalidArgumentError(f"{name} must be a scalar, but {shape_text(shape_of(value))}")
    return int(value)


@async_kernel("For")
def make_for(attrs: Attrs) -> Kernel:
    """Call the body with every index from start to limit."""
    body = attrs.func("body")
    whole = _Whole(body)

    def run(
        context: OpKernelContext, done: Done, start: Value, limit: Value, delta: Value, *args: Value
    ) -> None:
        whole.check(context)
        first, last, step = map(_number, ("start", "limit", "delta"), (start, limit, delta))
        if first != last and (step == 0 or (last > first) != (step > 0)):
            raise InvalidArgumentError(f"Invalid start/limit/delta: {first} {last} {step}")
        indices = iter(range(first, last, step or 1))

        def iterate(values: Sequence[Value]) -> None:
            if len(values) != len(args):
                raise InvalidArgumentError(
                    f"For loop body returned {len(values)} arguments. Expected: {len(args)}"
                )
            index = next(indices, None)
            if index is None:
                done(tuple(values))
            else:
                call(context, body, (np.int32(index), *values), guarded(iterate, done))

        iterate(args)

    return run


@async_kernel("FakeParam")
def make_fake_param(attrs: Attrs) -> Kernel:
    """Stand for a result that nobody reads, where both branches must have one."""
    dtype, shape = attrs.dtype("dtype"), attrs.shape("shape")
    sizes = tuple(size or 0 for size in shape.dims or ())

    def run(_context: OpKernelContext, done: Done) -> None:
        done(np.zeros(sizes, dtype.numpy))

    return run


def make_named_call(name: str, attrs: Attrs) -> Kernel:
    """The kernel of a node whose op is a function of the library."""
    func = FuncAttr(name, {k: v for k, v in attrs.values.items() if k in attrs.op.attrs})
    is_bare = attrs.op.has_bare_output

    def run(context: OpKernelContext, done: Done, *args: Value) -> None:
        call(context, func, args, guarded(lambda r: done(r[0] if is_bare else r), done))

    return run
