"""What several devices of one process exchange in one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cases_src.casebook import EXACT, Case, bf16, f16, f32, f64, graph, i32, i64, normal, steps

#: So long somebody waits who waits in vain.
_SECONDS = 1.0


def on_devices(tf: Any, make: Any, values: Sequence[Any]) -> list[Any]:
    """One node for each value, on a device each."""
    found = []
    for number, value in enumerate(values):
        with tf.device(f"/cpu:{number}"):
            found.append(make(tf.raw_ops, tf.constant(value), number))
    return found


def reduced(ops: Any, value: Any, size: int, **facts: Any) -> Any:
    facts = {"merge_op": "Add", "final_op": "Id", "group_key": 1, "instance_key": 1, **facts}
    return ops.CollectiveReduce(
        input=value, group_size=size, subdiv_offsets=[0], timeout_seconds=_SECONDS, **facts
    )


def reduced_v2(ops: Any, value: Any, size: Any, **facts: Any) -> Any:
    facts = {"merge_op": "Add", "final_op": "Id", "group_key": 1, "instance_key": 1, **facts}
    return ops.CollectiveReduceV2(
        input=value, group_size=size, ordering_token=[], timeout_seconds=_SECONDS, **facts
    )


def gathered(ops: Any, value: Any, size: int, **facts: Any) -> Any:
    facts = {"group_key": 1, "instance_key": 1, "timeout_seconds": _SECONDS, **facts}
    return ops.CollectiveGather(input=value, group_size=size, shape=[], **facts)


def reduce(tf: Any, kind: str, values: Sequence[Any], facts: dict[str, Any]) -> Any:
    """All devices reduce, by the op of either version."""
    made = reduced_v2 if kind == "v2" else reduced
    return on_devices(tf, lambda ops, value, _: made(ops, value, len(values), **facts), values)


def reducing(*values: Any, says: str = "", exact: bool = True, **facts: Any) -> list[Case]:
    options: Any = {"says": says, "cpus": len(values), **(EXACT if exact else {})}
    return [graph(reduce, kind, values, facts, **options) for kind in ("v1", "v2")]


def gather(tf: Any, values: Sequence[Any]) -> Any:
    return on_devices(tf, lambda ops, value, _: gathered(ops, value, len(values)), values)


def gather_v2(tf: Any, values: Sequence[Any]) -> Any:
    def made(ops: Any, value: Any, _: int) -> Any:
        return ops.CollectiveGatherV2(
            input=value, group_size=len(values), group_key=1, instance_key=1, ordering_token=[],
            timeout_seconds=_SECONDS,
        )  # fmt: skip

    return on_devices(tf, made, values)


def all_to_all(tf: Any, values: Sequence[Any]) -> Any:
    def made(ops: Any, value: Any, _: int) -> Any:
        return ops.CollectiveAllToAllV2(
            input=value, group_size=len(values), group_key=1, instance_key=1, ordering_token=[],
            timeout_seconds=_SECONDS,
        )  # fmt: skip

    return on_devices(tf, made, values)


def broadcast(
    tf: Any, value: Any, count: int, senders: Sequence[int], sent: Any, received: Any, dtype: Any
) -> Any:
    """From some devices to the others, with shapes as attributes."""
    facts = {"group_size": count, "group_key": 7, "instance_key": 3, "timeout_seconds": _SECONDS}

    def made(ops: Any, held: Any, number: int) -> Any:
        if number in senders:
            return ops.CollectiveBcastSend(input=held, shape=sent, **facts)
        return ops.CollectiveBcastRecv(T=dtype or held.dtype, shape=received, **facts)

    return on_devices(tf, made, [value] * count)


def broadcasting(
    value: Any, count: int, senders: Sequence[int] = (0,), says: str = "", **other: Any
) -> Case:
    sent, received = other.get("sent", value.shape), other.get("received", value.shape)
    facts = (value, count, senders, sent, received, other.get("dtype"))
    return graph(broadcast, *facts, says=says, cpus=count, **EXACT)


def broadcast_v2(tf: Any, value: Any, count: int, sender: int, shape: Any) -> Any:
    facts = {"group_size": count, "group_key": 7, "instance_key": 3, "timeout_seconds": _SECONDS}

    def made(ops: Any, held: Any, number: int) -> Any:
        if number == sender:
            return ops.CollectiveBcastSendV2(input=held, **facts)
        return ops.CollectiveBcastRecvV2(T=held.dtype, shape=shape, **facts)

    return on_devices(tf, made, [value] * count)


def sizes_differ(tf: Any) -> Any:
    """Of the group: the first member that comes says how many there are."""
    return on_devices(tf, lambda ops, v, n: reduced(ops, v, (2, 3)[n]), [f32([1]), f32([2])])


def too_many(tf: Any) -> Any:
    return on_devices(tf, lambda ops, v, _: reduced(ops, v, 2), [f32([1])] * 3)


def too_few(tf: Any) -> Any:
    return on_devices(tf, lambda ops, v, _: reduced(ops, v, 3), [f32([1])] * 2)


def other_ops(tf: Any) -> Any:
    makes = (reduced, gathered)
    return on_devices(tf, lambda ops, v, n: makes[n](ops, v, 2), [f32([1]), f32([2])])


def merged_differently(tf: Any) -> Any:
    """Each member merges in its own way what comes to it."""
    merges = ("Add", "Mul")
    return on_devices(
        tf, lambda ops, v, n: reduced(ops, v, 2, merge_op=merges[n]), [f32([3]), f32([4])]
    )


def one_after_the_other(tf: Any) -> Any:
    """The same group exchanges twice under one key; and a second group beside it."""

    def made(ops: Any, value: Any, number: int) -> Any:
        first = reduced(ops, value, 2)
        with tf.control_dependencies([first]):
            again = reduced(ops, first * (number + 1), 2)
        other = gathered(ops, value, 2, group_key=2, instance_key=5)
        return [again, other]

    return on_devices(tf, made, [f32([1, 2]), f32([3, 4])])


def a_member_fails(tf: Any) -> Any:
    """Who never comes ends the others' wait."""

    def made(ops: Any, value: Any, number: int) -> Any:
        if number == 1:
            value = tf.debugging.check_numerics(tf.math.log(value - 2), "bad")
        return reduced(ops, value, 2, instance_key=9)

    return on_devices(tf, made, [f32([1]), f32([1])])


def step_by_step(tf: Any) -> Any:
    """Steps know nothing of each other, one that failed included."""
    right = on_devices(tf, lambda ops, v, _: reduced(ops, v, 2), [f32([1]), f32([2])])
    wrong = on_devices(
        tf, lambda ops, v, _: reduced(ops, v, 2, group_key=2), [f32([1]), f32([2, 3])]
    )
    return steps(right, right, wrong, right)


def assigned(tf: Any, groups: Any, numbers: Sequence[int], base: int) -> Any:
    return [
        tf.raw_ops.CollectiveAssignGroupV2(
            group_assignment=groups, device_index=number, base_key=base
        )
        for number in numbers
    ]


def bad_size(tf: Any, size: Any) -> Any:
    return on_devices(tf, lambda ops, v, _: reduced_v2(ops, v, size), [f32([1])])


CASES = [
    *reducing(f32([1, 2, 3]), f32([10, 20, 30]), f32([100, 200, 300])),
    *(
        case
        for merge in ("Mul", "Max", "Min")
        for case in reducing(f32([1, -2, 3]), f32([10, -20, -30]), merge_op=merge)
    ),
    *reducing(i32([1, 2, 3, -5]), i32([2, 3, 4, -5]), i32([2, 2, 3, 0]), final_op="Div"),
    *reducing(i64([1 << 40, -7]), i64([1, 0]), final_op="Div"),
    *reducing(f64([[1, 2], [3, 4]]), f64([[0.1, 0.2], [0.3, 0.4]]), final_op="Div"),
    *reducing(f16([1, 2]), f16([3, 4.5]), f16([1, 1]), final_op="Div"),
    *reducing(bf16([1, 2]), bf16([3, 4.5]), exact=False),
    *reducing(f32(1), f32(2)),
    *reducing(f32([]), f32([])),
    *reducing(f32([5]), final_op="Div"),
    # The order in which numbers are added up tells in the last bits.
    *(
        case
        for members, size in ((3, 5), (3, 48), (3, 200), (4, 64), (4, 131))
        for case in reducing(*normal(members, size, seed=size).astype("f4"))
    ),
    *reducing(f32([1, 2, 3]), f32([10, 20]), says="Shape mismatch in the collective instance 1"),
    *reducing(f32([[1, 2]]), f32([10, 20]), says="another member in the group expected shape"),
    *reducing(f32([1, 2]), f64([1, 2]), says="Collective instance 1 expected type 0 and data_type"),
    graph(gather, [f32([[1, 2]]), f32([[3, 4]]), f32([[5, 6]])], cpus=3, **EXACT),
    graph(gather, [i64([1, 2]), i64([3, 4])], cpus=2, **EXACT),
    graph(gather, [f32([1])], **EXACT),
    graph(gather, [f32([1, 2]), f32([3])], cpus=2, says="Shape mismatch in the collective"),
    graph(gather_v2, [f32([[1, 2]]), f32([[3, 4]])], cpus=2, **EXACT),
    graph(gather_v2, [f32([1, 2]), f32([3])], cpus=2, says="Shape mismatch in the collective"),
    graph(all_to_all, [f32([[1, 2], [3, 4]]), f32([[5, 6], [7, 8]])], cpus=2, **EXACT),
    graph(all_to_all, [i32([1, 2, 3]), i32([4, 5, 6]), i32([7, 8, 9])], cpus=3, **EXACT),
    graph(
        all_to_all, [f32([1, 2, 3]), f32([4, 5, 6])], cpus=2,
        says="must be the same as the group size (2)",
    ),
    broadcasting(f32([1, 2]), 1),
    broadcasting(f32([1, 2]), 2),
    broadcasting(i64([[1, 2], [3, 4]]), 5),
    broadcasting(f64(7), 6, senders=[3]),
    broadcasting(f32([1, 2]), 2, sent=[3], received=[3], says="does not match shape of input"),
    broadcasting(f32([1, 2]), 2, received=[3], says="Shape mismatch in the collective instance 3"),
    broadcasting(f32([1, 2]), 2, dtype="float64", says="expected type 1 and data_type"),
    broadcasting(f32([1, 2]), 2, senders=[], says="found no source for broadcast."),
    broadcasting(f32([1]), 2, senders=[0, 1], says="received second claim from"),
    graph(broadcast_v2, f32([[1], [2]]), 3, 1, [2, 1], cpus=3, **EXACT),
    graph(broadcast_v2, f32([1, 2]), 2, 0, [3], cpus=2, says="Shape mismatch in the collective"),
    graph(sizes_differ, cpus=2, says="but that group has size"),
    graph(too_many, cpus=3, says="is joining a group that is already full (group_key=1)"),
    graph(too_few, cpus=2, says="Collective has timed out waiting for other workers."),
    graph(other_ops, cpus=2, says="Collective instance 1 expected type"),
    graph(merged_differently, cpus=2, **EXACT),
    graph(one_after_the_other, cpus=2, **EXACT),
    graph(a_member_fails, cpus=2, says="bad : Tensor had NaN values"),
    graph(step_by_step, cpus=2, says="Shape mismatch in the collective"),
    graph(assigned, i32([[0, 1], [2, 3]]), (0, 1, 2, 3), 100),
    graph(assigned, i32([[3, 1], [0, 2]]), (0, 2, 3), 5),
    graph(assigned, i32([[3, 1, 0]]), (0,), 5, says="is within [0, number of devices)"),
    graph(assigned, i32([[0, 1]]), ([1],), 5, says="device_index must be a scalar"),
    graph(assigned, i32([[0, 1]]), (1,), [5], says="base_key must be a scalar"),
    graph(assigned, i32([[0, 1]]), (7,), 1, says="device_index 7 is not found in group_assignment"),
    graph(assigned, i32([0, 1]), (0,), 1, says="group_assignment must be a 2-d Tensor"),
    graph(bad_size, 0, says="group_size must be positive integer but got 0"),
    graph(bad_size, [1], says="Unexpected dimensions on input group_size"),
]  # fmt: skip
