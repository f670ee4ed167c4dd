"""``SyncReplicas``: several workers whose gradients become one update, slow ones left out.

In:   variables; each worker's gradients; what an update does with their mean.
Out:  what workers run, what the chief runs, and what starts them.
Not:  runs nothing; starts no threads.

As in TensorFlow's SyncReplicasOptimizer.  Each variable has an accumulator that drops gradients
which were computed for a step that is over; so of ``total_num_replicas`` workers the first
``replicas_to_aggregate`` count, and the others are backups: Chen, Pan, Monga, Bengio and
Jozefowicz, "Revisiting distributed synchronous SGD" (2016).  After each update the chief hands out
tokens with the number of the next step; who has one goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from penstock.builder import Operation, Tensor, Variable, control_dependencies, group, ops
from penstock.builder import device as on_device
from penstock.errors import InvalidArgumentError
from penstock.training.saver import global_step_of

_NAME: Final = "sync_replicas"


class SyncReplicas:
    """Ordinary nodes of the default graph, which all workers' graphs have under equal names."""

    def __init__(
        self,
        variables: Sequence[Variable],
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        *,
        global_step: Variable | None = None,
        device: str = "",
    ) -> None:
        """Make accumulators and the queue of tokens.

        Args:
            variables: what is updated; of known shapes.
            replicas_to_aggregate: so many gradients are one update.
            total_num_replicas: so many workers there are, backups included; None for as many.
            global_step: the variable that counts updates, if it is not called ``global_step``.
            device: where accumulators and queue are; the same for all workers.

        Raises:
            InvalidArgumentError: the numbers make no sense, or there is no global step.

        """
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        if not 1 <= replicas_to_aggregate <= total:
            raise InvalidArgumentError(
                f"Of {total} replicas, {replicas_to_aggregate} cannot be aggregated"
            )
        self._variables: Final = list(variables)
        self._wanted: Final = replicas_to_aggregate
        self._total: Final = total
        self._step: Final = global_step_of(global_step)
        #: The steps for which workers compute, one for each worker made here.
        self._local_steps: Final[list[Variable]] = []
        with on_device(device):
            self._accumulators: Final[list[Tensor]] = [
                ops.resource_conditional_accumulator(
                    dtype=one.dtype, shape=one.shape, shared_name=f"{_NAME}/{one.name}"
                )
                for one in self._variables
            ]
            self._tokens: Final[Tensor] = ops.fifo_queue_v2(
                component_types=["int64"], shapes=[[]], shared_name=f"{_NAME}/tokens"
            )

    def worker(self, gradients: Sequence[Tensor]) -> Operation:
        """What one worker runs in each step: give gradients, and wait for the next step.

        Args:
            gradients: of the variables, in their order.

        Raises:
            InvalidArgumentError: there are more or fewer gradients than variables.

        """
        if len(gradients) != len(self._variables):
            raise InvalidArgumentError(
                f"{len(gradients)} gradients were given for {len(self._variables)} variables"
            )
        number = len(self._local_steps)
        local = Variable(np.int64(0), name=f"{_NAME}_local_step_{number}")
        self._local_steps.append(local)
        at = local.read_value()
        # What is computed for a step that is over by then is dropped.
        given = [
            ops.resource_accumulator_apply_gradient(handle, at, gradient)
            for handle, gradient in zip(self._accumulators, gradients, strict=True)
        ]
        with control_dependencies(given):
            token = ops.queue_dequeue_v2(self._tokens, component_types=["int64"])
            return group(local.assign(_only(token)))

    def chief(self, apply: Callable[[Variable, Tensor], Any]) -> Operation:
        """What the chief runs in each step: wait for gradients, update, and let workers go on.

        Args:
            apply: makes the nodes that update a variable with the mean of gradients.

        """
        updates = []
        for variable, handle in zip(self._variables, self._accumulators, strict=True):
            mean = ops.resource_accumulator_take_gradient(
                handle, np.int32(self._wanted), dtype=variable.dtype
            )
            updates.append(apply(variable, mean))
        with control_dependencies(updates):
            step = self._step.assign_add(ops.cast(1, self._step.dtype))
        return self._going_on(ops.cast(step, "int64"))

    def start(self) -> Operation:
        """What runs once before all workers, and after each restoration, whatever the step is."""
        step = ops.cast(self._step.read_value(), "int64")
        locals_ = [one.assign(step) for one in self._local_steps]
        known = [
            ops.resource_accumulator_set_global_step(handle, step) for handle in self._accumulators
        ]
        return group(*locals_, *known)

    def stop(self) -> Operation:
        """What the chief runs in the end: workers that wait get OutOfRangeError, for good."""
        return group(ops.queue_close_v2(self._tokens))

    def _going_on(self, step: Tensor) -> Operation:
        """Accumulators drop what is older than a step; every worker gets a token for it."""
        known = [
            ops.resource_accumulator_set_global_step(handle, step) for handle in self._accumulators
        ]
        with control_dependencies(known):
            tokens = ops.fill([self._total], step)
            return group(ops.queue_enqueue_many_v2(self._tokens, [tokens]))


def _only(result: Any) -> Tensor:
    """The tensor of a list of one."""
    found: Tensor = result[0] if isinstance(result, (list, tuple)) else result
    return found
