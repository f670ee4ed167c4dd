"""A million handwritten digits, read by the network of this folder on Dask or on Ray.

    pip install 'penstock[dask]' distributed     # or 'penstock[ray]'
    python examples/digits_over_data.py dask     # or ray, or alone: one process, no engine
    python examples/digits_over_data.py dask --images 10000 --workers 4

The images are those of ``digits_test.npz`` over and over, each time somewhat darker or brighter,
and are made where they are read.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.cluster import map_batches

FOLDER = Path(__file__).parent
MODEL = FOLDER / "digits_cnn.pb"
with np.load(FOLDER / "digits_test.npz") as _file:
    IMAGES, LABELS = _file["images"], _file["labels"]
#: Images that are computed at a time, and those of one part of the data.
BATCH, PART = 500, 10_000


def images(numbers: Any) -> Any:
    """Images by their numbers: no two of a million are equal."""
    brightness = 0.8 + 0.4 * (numbers * 0.6180339887 % 1)
    return IMAGES[numbers % len(IMAGES)] * brightness.astype(np.float32)[:, None, None]


def labels(numbers: Any) -> Any:
    """The digits that they really are."""
    return LABELS[numbers % len(LABELS)]


def alone(count: int, workers: int) -> tuple[float, float]:
    """One process, and no engine; what part of the digits is right, and the seconds it took."""
    right = 0
    with ps.load_model(MODEL, config=ps.Config(intra_op_parallelism_threads=workers)) as model:
        read = model.session.make_callable("digit:0", ["images:0"])
        begin = time.perf_counter()
        for start in range(0, count, BATCH):
            numbers = np.arange(start, min(start + BATCH, count))
            right += int((read(images(numbers)) == labels(numbers)).sum())
    return right / count, time.perf_counter() - begin


def by_dask(count: int, workers: int) -> tuple[float, float]:
    """A Dask array of images becomes one of digits."""
    from dask import array as da

    with _dask(workers):
        numbers = da.arange(count, chunks=PART)
        pictures = numbers.map_blocks(
            images, dtype=np.float32, chunks=(numbers.chunks[0], 8, 8), new_axis=[1, 2]
        )
        digits = map_batches(MODEL, pictures, outputs="digit:0", batch_size=BATCH)
        right = digits == numbers.map_blocks(labels, dtype=np.int32)
        begin = time.perf_counter()
        return float(right.mean().compute()), time.perf_counter() - begin


@contextmanager
def _dask(workers: int) -> Iterator[None]:
    """Processes of this machine; a Client of another cluster does as well."""
    from distributed import Client

    with Client(n_workers=workers, threads_per_worker=1, dashboard_address=None):
        yield


def by_ray(count: int, workers: int) -> tuple[float, float]:
    """A Ray Dataset of numbers gets a column of images, then one of digits."""
    import ray

    ray.init(num_cpus=workers + 1, log_to_driver=False, include_dashboard=False)
    try:
        data = ray.data.range(count).map_batches(
            lambda batch: {"images": images(batch["id"]), "label": labels(batch["id"])},
            batch_size=PART,
        )
        pool = ray.data.ActorPoolStrategy(size=workers)
        read = map_batches(MODEL, data, outputs="digit:0", batch_size=BATCH, compute=pool)
        checked = read.map_batches(
            lambda batch: {"right": batch["digit"] == batch["label"]}, batch_size=PART
        )
        begin = time.perf_counter()
        return float(checked.mean("right")), time.perf_counter() - begin
    finally:
        ray.shutdown()


def main() -> None:
    """Read the digits, and say how many were right, and how long it took."""
    ways = {"alone": alone, "dask": by_dask, "ray": by_ray}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("engine", choices=ways)
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    begin = time.perf_counter()
    right, seconds = ways[args.engine](args.images, args.workers)
    whole = time.perf_counter() - begin
    print(
        f"{args.engine}: {args.images} images in {seconds:.1f} s, {args.images / seconds:.0f} per "
        f"second, {right:.2%} right; {whole:.1f} s with all that starts and ends"
    )


if __name__ == "__main__":
    main()
