"""Optimisers: every update rule on variables of both generations, dense and sparse."""

from __future__ import annotations

from typing import Any

from cases_src.casebook import f32, f64, graph, i32, i64, normal, uniform

_SHAPE = (4, 3)
#: The state that each rule keeps beside the variable, and its numbers in order of the op.
_RULES: dict[str, tuple[str, str]] = {
    "AdaMax": ("m v", "beta1_power lr beta1 beta2 epsilon grad"),
    "Adadelta": ("accum accum_update", "lr rho epsilon grad"),
    "Adagrad": ("accum", "lr grad"),
    "AdagradDA": (
        "gradient_accumulator gradient_squared_accumulator",
        "grad lr l1 l2 global_step",
    ),
    "AdagradV2": ("accum", "lr epsilon grad"),
    "Adam": ("m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad"),
    "AdamWithAmsgrad": ("m v vhat", "beta1_power beta2_power lr beta1 beta2 epsilon grad"),
    "AddSign": ("m", "lr alpha sign_decay beta grad"),
    "CenteredRMSProp": ("mg ms mom", "lr rho momentum epsilon grad"),
    "Ftrl": ("accum linear", "grad lr l1 l2 lr_power"),
    "FtrlV2": ("accum linear", "grad lr l1 l2 l2_shrinkage lr_power"),
    "GradientDescent": ("", "alpha delta"),
    "KerasMomentum": ("accum", "lr grad momentum"),
    "Momentum": ("accum", "lr grad momentum"),
    "PowerSign": ("m", "lr logbase sign_decay beta grad"),
    "ProximalAdagrad": ("accum", "lr l1 l2 grad"),
    "ProximalGradientDescent": ("", "alpha l1 l2 delta"),
    "RMSProp": ("ms mom", "lr rho momentum epsilon grad"),
}
_NUMBERS = {
    "lr": 0.1, "alpha": 0.2, "beta": 0.9, "beta1": 0.8, "beta2": 0.95, "beta1_power": 0.8,
    "beta2_power": 0.95, "epsilon": 1e-3, "rho": 0.9, "momentum": 0.7, "l1": 0.05, "l2": 0.3,
    "l2_shrinkage": 0.2, "lr_power": -0.5, "sign_decay": 0.9, "logbase": 1.1,
}  # fmt: skip
_ONLY_RESOURCE = ("KerasMomentum", "AdamWithAmsgrad")
_SPARSE = (
    "Adadelta", "Adagrad", "AdagradDA", "AdagradV2", "CenteredRMSProp", "Ftrl", "FtrlV2",
    "KerasMomentum", "Momentum", "ProximalAdagrad", "ProximalGradientDescent", "RMSProp",
)  # fmt: skip


def rule(tf: Any, op: str, dtype: Any, **attrs: Any) -> Any:
    """Two updates of a variable and its state, and what they are then."""
    is_resource, is_sparse = op.startswith("Resource"), "SparseApply" in op
    name = op.rpartition("Apply")[2]
    state, arguments = _RULES[name]
    starts = {"var": normal(*_SHAPE, seed=1)}
    starts |= {s: uniform(*_SHAPE, low=0.2, seed=2 + n) for n, s in enumerate(state.split())}
    made = {key: _variable(tf, key, dtype(start), is_resource) for key, start in starts.items()}
    gradient = dtype(normal(*((2, 3) if is_sparse else _SHAPE), seed=9))
    args: dict[str, Any] = {key: handle for key, (handle, _, _) in made.items()}
    for argument in arguments.split():
        if argument in ("grad", "delta"):
            sparse_descent = is_sparse and name == "ProximalGradientDescent"
            args["grad" if sparse_descent else argument] = gradient
        else:
            args[argument] = i64(3) if argument == "global_step" else dtype(_NUMBERS[argument])
    if is_sparse:
        args["indices"] = i32([2, 0])
    init = [init for _, init, _ in made.values()]
    with tf.control_dependencies(init):
        first = getattr(tf.raw_ops, op)(**args, **attrs)
    with tf.control_dependencies([first]):
        second = getattr(tf.raw_ops, op)(**args, **attrs)
    with tf.control_dependencies([second]):
        return [read() for _, _, read in made.values()]


def _variable(tf: Any, name: str, start: Any, is_resource: bool) -> Any:
    dtype = start.dtype.name
    if is_resource:
        handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=start.shape, shared_name=name)
        init = tf.raw_ops.AssignVariableOp(resource=handle, value=start)
        return handle, init, lambda: tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
    ref = tf.raw_ops.VariableV2(dtype=dtype, shape=start.shape, shared_name=name)
    init = tf.raw_ops.Assign(ref=ref, value=start).op
    return ref, init, lambda: tf.raw_ops.Identity(input=ref)


_OPS = [f"{kind}Apply{name}" for name in _RULES for kind in ("Resource", "")]
_OPS += [f"{kind}SparseApply{name}" for name in _SPARSE for kind in ("Resource", "")]
_OPS = [op for op in _OPS if op.startswith("Resource") or not op.endswith(_ONLY_RESOURCE)]

CASES = [
    *(graph(rule, op, f32) for op in _OPS),
    *(graph(rule, op, f64) for op in _OPS if op.startswith("ResourceApply")),
]
