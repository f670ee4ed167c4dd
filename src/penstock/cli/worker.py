"""``penstock worker``: one task of a cluster, until it is told to end."""

from __future__ import annotations

import logging
import os
import signal
import sys
from threading import Event, Thread
from types import FrameType
from typing import Any

import click

from penstock.config import Config
from penstock.errors import InvalidArgumentError
from penstock.printable import printable

_LOOPBACK = "127.0.0.1"


@click.command(short_help="Serve one task of a cluster.")
@click.option(
    "--cluster",
    metavar="SPEC",
    help="All tasks: 'worker=host:2222,host:2223;ps=host:2224'.  Without it, the environment "
    "says: TF_CONFIG, SLURM's variables, or those of a StatefulSet (docs/cluster.md).",
)
@click.option("--job", default="", help="This task's job; may be left out if there is but one.")
@click.option("--task", type=click.IntRange(min=0), help="This task's number in its job.")
@click.option(
    "--bind",
    default=_LOOPBACK,
    show_default=True,
    help="The address to listen at; 0.0.0.0 lets other machines in.",
)
@click.option("--devices", type=click.IntRange(1, 1024), default=1, help="How many CPU devices.")
@click.option("--threads", type=click.IntRange(0, 1024), default=0,
              help="For single heavy ops; 0, the default, is one for each core.")  # fmt: skip
@click.option("--no-files", is_flag=True, help="Let no graph touch files or call Python.")
@click.option("--tls-ca", default="", metavar="FILE", help="Certificates that peers must have.")
@click.option("--tls-certificate", default="", metavar="FILE", help="This task's own certificate.")
@click.option("--tls-key", default="", metavar="FILE", help="Its key.")
@click.option(
    "--token-file", type=click.File("r"), help="A file with the token that callers must bring."
)
@click.option("--status-port", type=int, help="Serve /healthz, /readyz and /metrics by HTTP here.")
@click.option(
    "--session-gc-seconds", type=float, default=0, help="End sessions unused for so long."
)
@click.option("--heartbeat-seconds", type=float, default=10, show_default=True,
              help="How often to ask tasks that one waits for whether they are there.")  # fmt: skip
@click.option("--grace-seconds", type=float, default=5, show_default=True,
              help="How long calls may take to end when it is told to.")  # fmt: skip
@click.option(
    "--until-stdin-ends",
    is_flag=True,
    help="Stop also when standard input ends, as it does with who started this.",
)
@click.option("--max-message-bytes", type=click.IntRange(1, (1 << 31) - 1),
              default=(1 << 31) - 1, show_default=True,
              help="Refuse larger requests.")  # fmt: skip
def worker(cluster: str | None, job: str, task: int | None, **options: Any) -> None:
    """Serve one task of a cluster: a master and a worker that speak TensorFlow's protocol.

    It runs until SIGTERM or Ctrl-C, and then lets calls end.

    \b
    Examples:
      penstock worker --cluster 'worker=127.0.0.1:2222'
      penstock worker --cluster 'ps=a:2222;worker=b:2222' --job ps --task 0 --bind 0.0.0.0
    """
    # Before gRPC is imported, which few commands need.
    from penstock.cluster.security import Security  # noqa: PLC0415
    from penstock.cluster.server import Server  # noqa: PLC0415

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    spec, job, index = _place(cluster, job, task)
    token_file = options["token_file"]
    security = Security(
        tls_ca=options["tls_ca"],
        tls_certificate=options["tls_certificate"],
        tls_key=options["tls_key"],
        token=token_file.read().strip() if token_file is not None else "",
    )
    server = Server(
        spec,
        job,
        index,
        config=Config(
            device_count={"CPU": options["devices"]},
            intra_op_parallelism_threads=options["threads"],
            allow_files=not options["no_files"],
        ),
        bind=options["bind"],
        security=security,
        session_gc_seconds=options["session_gc_seconds"],
        heartbeat_seconds=options["heartbeat_seconds"],
        grace_seconds=options["grace_seconds"],
        max_message_bytes=options["max_message_bytes"],
    )
    told = Event()
    if options["until_stdin_ends"]:
        Thread(target=_tell_at_end_of_input, args=(told,), daemon=True).start()
    _serve(server, options["bind"], options["status_port"], told)


def _place(cluster: str | None, job: str, task: int | None) -> tuple[Any, str, int | None]:
    """The cluster, and the task of it that this is to be."""
    from penstock.cluster.cluster_spec import ClusterSpec  # noqa: PLC0415
    from penstock.cluster.environment import place_of  # noqa: PLC0415

    if cluster is not None:
        return ClusterSpec.parse(cluster), job, task
    if job or task is not None:
        raise InvalidArgumentError(
            "--job and --task say nothing without --cluster", next_step="give --cluster as well"
        )
    place = place_of(os.environ)
    return place.cluster, place.job, place.task


def _tell_at_end_of_input(told: Event) -> None:
    while sys.stdin.buffer.read(1 << 16):
        pass
    told.set()


def _serve(server: Any, bind: str, status_port: int | None, told: Event) -> None:
    """Wait to be told to end, by a signal or otherwise; then stop."""
    from penstock.cluster.status_pages import StatusPages  # noqa: PLC0415

    def tell(_number: int, _frame: FrameType | None) -> None:
        told.set()

    with server:
        pages = StatusPages(server, bind, status_port) if status_port is not None else None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, tell)
        ready = f"{server.task.name} is ready at {server.target}"
        if pages is not None:
            ready += f", status pages at http://{bind}:{pages.port}/metrics"
        click.echo(printable(ready))
        while not told.wait(1.0):
            pass
        click.echo("stopping")
        if pages is not None:
            pages.close()
