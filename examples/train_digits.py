"""A small network learns handwritten digits on several tasks of a cluster, in one of three ways.

    pip install 'penstock[cluster]'
    python examples/train_digits.py async         # parameter tasks; each worker at its own pace
    python examples/train_digits.py sync          # parameter tasks; updates of all workers' mean
    python examples/train_digits.py collectives   # no parameter tasks: workers add up gradients

    python examples/train_digits.py sync --workers 4 --parameter-tasks 2 --backup-workers 1
    python examples/train_digits.py async --carrier ray            # penstock[ray]
    srun python examples/train_digits.py collectives --carrier environment

Every worker has its own client, graph, share of the images and master: between-graph replication.
300 of the images of ``digits_test.npz`` are learnt, the others are read in the end.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.cluster import Carrier, EnvironmentTasks, LaunchedCluster, LocalProcesses, launch
from penstock.training import SyncReplicas

with np.load(Path(__file__).parent / "digits_test.npz") as _file:
    IMAGES = _file["images"].reshape(len(_file["images"]), -1).astype(np.float32)
    LABELS = _file["labels"].astype(np.int32)
LEARNT, BATCH, HIDDEN, RATE = 300, 32, 64, np.float32(0.5)
SHAPES = {"w1": [IMAGES.shape[1], HIDDEN], "b1": [HIDDEN], "w2": [HIDDEN, 10], "b2": [10]}


@dataclass(frozen=True)
class Replica:
    """What one worker builds, and then runs."""

    graph: ps.Graph
    init: Any
    global_step: ps.Variable
    digits: Any
    train: Train


@dataclass(frozen=True)
class Train:
    """What is run to train."""

    #: One step of a worker.
    step: Any
    #: Where workers wait for each other: what each runs once, what the first one runs beside its
    #: steps, and in the end.
    start: Any = None
    chief: Any = None
    stop: Any = None


def variables(place: Callable[[int], str]) -> dict[str, ps.Variable]:
    """Weights, equal wherever they are made; ``place`` says on which device each of them is."""
    draw = np.random.default_rng(1)
    made = {}
    for number, (name, shape) in enumerate(SHAPES.items()):
        with ps.device(place(number)):
            value = draw.standard_normal(shape) / np.sqrt(shape[0]) if len(shape) == 2 else 0.0
            made[name] = ps.Variable(np.broadcast_to(np.float32(value), shape), name=name)
    return made


def hidden_and_logits(w: dict[str, ps.Variable], images: Any) -> tuple[Any, Any]:
    """The network: two layers."""
    hidden = ps.ops.relu(ps.ops.mat_mul(images, w["w1"].value()) + w["b1"].value())
    return hidden, ps.ops.mat_mul(hidden, w["w2"].value()) + w["b2"].value()


def gradients(w: dict[str, ps.Variable], worker: int, workers: int) -> list[Any]:
    """Those of the mean loss over a few of this worker's images, drawn anew in each step."""
    own = slice(worker, LEARNT, workers)
    images, labels = ps.constant(IMAGES[own]), ps.constant(LABELS[own])
    seeds = {"seed": 1, "seed2": 100 + worker}
    count = len(LABELS[own])
    drawn = ps.ops.random_uniform_int([BATCH], np.int32(0), np.int32(count), **seeds)
    x, wanted = ps.ops.gather(images, drawn), ps.ops.gather(labels, drawn)
    hidden, logits = hidden_and_logits(w, x)
    _, slope = ps.ops.sparse_softmax_cross_entropy_with_logits(logits, wanted)
    slope = slope / np.float32(BATCH)
    back = ps.ops.mat_mul(slope, w["w2"].value(), transpose_b=True)
    inner = ps.ops.relu_grad(back, hidden)
    return [
        ps.ops.mat_mul(x, inner, transpose_a=True),
        ps.ops.sum(inner, 0),
        ps.ops.mat_mul(hidden, slope, transpose_a=True),
        ps.ops.sum(slope, 0),
    ]


def build(how: str, worker: int, args: argparse.Namespace) -> Replica:
    """The graph of one worker."""
    graph = ps.Graph()
    device = f"/job:worker/task:{worker}"
    with graph.as_default():
        if how == "collectives":
            w = variables(lambda _number: device)
        else:
            w = variables(lambda number: f"/job:ps/task:{number % args.parameter_tasks}")
        with ps.device(device if how == "collectives" else "/job:ps/task:0"):
            step = ps.Variable(np.int64(0), name="global_step")
        with ps.device(device):
            slopes = gradients(w, worker, args.workers)
            _, logits = hidden_and_logits(w, ps.constant(IMAGES[LEARNT:]))
            digits = ps.ops.arg_max(logits, 1)
            train = WAYS[how](w, step, slopes, args)
        init = ps.global_variables_initializer()
    return Replica(graph, init, step, digits, train)


def descend(variable: ps.Variable, slope: Any) -> Any:
    """One step of gradient descent."""
    return variable.assign_sub(RATE * slope)


def asynchronous(w: Any, step: Any, slopes: Any, _args: Any) -> Train:
    """Every worker changes the parameters as soon as it has gradients."""
    moved = [descend(variable, slope) for variable, slope in zip(w.values(), slopes, strict=True)]
    return Train(ps.group(*moved, step.assign_add(np.int64(1))))


def synchronous(w: Any, _step: Any, slopes: Any, args: Any) -> Train:
    """The first gradients for a step are one update; slower workers' are dropped."""
    first = args.workers - args.backup_workers
    sync = SyncReplicas(list(w.values()), first, args.workers, device="/job:ps/task:0")
    worker = sync.worker(slopes)
    return Train(worker, sync.start(), sync.chief(descend), sync.stop())


def by_collectives(w: Any, step: Any, slopes: Any, args: Any) -> Train:
    """Workers add up their gradients in a ring; each changes its own copy, all by the same."""
    moved = []
    for number, (variable, slope) in enumerate(zip(w.values(), slopes, strict=True)):
        total = ps.ops.CollectiveReduce(
            input=slope, group_size=args.workers, group_key=1, instance_key=number,
            merge_op="Add", final_op="Div", subdiv_offsets=[0],
        )  # fmt: skip
        moved.append(descend(variable, total))
    return Train(ps.group(*moved, step.assign_add(np.int64(1))))


WAYS = {"async": asynchronous, "sync": synchronous, "collectives": by_collectives}


def work(cluster: LaunchedCluster, args: argparse.Namespace, worker: int) -> float:
    """One worker's client, until the last step; what part of the other digits it reads."""
    replica = build(args.how, worker, args)
    with cluster.session(replica.graph, task=worker) as session:
        if worker == 0 or args.how == "collectives":
            session.run(replica.init)
        ready(session, replica)
        train = replica.train
        if train.start is not None:
            session.run(train.start)
        led = leading(session, replica, args.steps, leads=worker == 0)
        with led, suppress(ps.errors.OutOfRangeError):
            while session.run(replica.global_step) < args.steps:
                session.run(train.step)
        return right(session, replica)


@contextmanager
def leading(session: Any, replica: Replica, steps: int, *, leads: bool) -> Iterator[None]:
    """Meanwhile make updates of what workers give, and let them go in the end."""
    train = replica.train
    if train.chief is None or not leads:
        yield
        return
    with ThreadPoolExecutor(1) as pool:
        led = pool.submit(lead, session, replica, steps)
        yield
        led.result()


def lead(session: Any, replica: Replica, steps: int) -> None:
    """The first worker's other thread."""
    while session.run(replica.global_step) < steps:
        session.run(replica.train.chief)
    session.run(replica.train.stop)


def ready(session: Any, replica: Replica) -> None:
    """Wait until somebody has initialized the variables, all of which this reads."""
    while True:
        try:
            session.run([replica.global_step, replica.digits])
        except ps.errors.FailedPreconditionError:
            time.sleep(0.05)
        else:
            return


def right(session: Any, replica: Replica) -> float:
    """What part of the digits that nobody learnt is read as what it is."""
    return float(np.mean(session.run(replica.digits) == LABELS[LEARNT:]))


@contextmanager
def launched(args: argparse.Namespace) -> Iterator[tuple[LaunchedCluster, list[int]]]:
    """A cluster, and which of its workers have their clients in this process."""
    jobs = {} if args.how == "collectives" else {"ps": args.parameter_tasks}
    jobs["worker"] = args.workers
    if args.carrier != "environment":
        with launch(jobs, carrier_of(args.carrier)) as cluster:
            cluster.wait_until_ready()
            yield cluster, list(range(args.workers))
        return
    carrier = EnvironmentTasks(bind=args.bind)
    args.workers = carrier.own.cluster.num_tasks("worker")
    with launch(carrier=carrier) as cluster:
        if carrier.own.job == "ps":
            carrier.join()
        cluster.wait_until_ready()
        yield cluster, [carrier.own.task]


def carrier_of(name: str) -> Carrier:
    """What runs the tasks."""
    if name == "ray":
        from penstock.cluster import RayActors

        return RayActors()
    return LocalProcesses()


def main(given: list[str] | None = None) -> list[float]:
    """Train; returns what part of the digits each worker of this process reads."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("how", choices=WAYS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--parameter-tasks", type=int, default=1)
    parser.add_argument("--backup-workers", type=int, default=0)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--carrier", choices=["processes", "ray", "environment"],
                        default="processes")  # fmt: skip
    parser.add_argument("--bind", default="127.0.0.1")
    args = parser.parse_args(given)
    # If one worker fails, the cluster ends first, and with it the waits of the others.
    with ThreadPoolExecutor() as pool, launched(args) as (cluster, workers):
        begin = time.perf_counter()
        found = list(pool.map(lambda worker: work(cluster, args, worker), workers))
        seconds = time.perf_counter() - begin
    shown = ", ".join(f"{part:.1%}" for part in found)
    print(f"{args.steps} steps in {seconds:.1f} s; of the other digits, read: {shown}")
    return found


if __name__ == "__main__":
    main()
