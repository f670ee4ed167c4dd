"""How long a SavedModel takes to its first result, and how much memory it adds.

    python -m benchmarks.load_models FOLDER…                       of Penstock
    python -m benchmarks.load_models FOLDER… --tensorflow PYTHON   and of the TensorFlow of a Python
    python tools/make_saved_models.py --folder DIR keras_vgg16     makes such a model

Every measurement is a process of its own; the sides take turns, and the best of three rounds
counts.  Inputs are ones, with 1 for every size that is open.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

_ROUNDS = 3


def measure(path: str, side: str) -> dict[str, float]:
    """Seconds and bytes of one process: this one."""
    times = [time.perf_counter()]
    load = _penstock if side == "penstock" else _tensorflow
    call = load(path, times)
    before = times.pop()
    call()
    times.append(time.perf_counter())
    call()
    times.append(time.perf_counter())
    start, imported, loaded, first, second = times
    return {
        "import": imported - start,
        "load": loaded - imported,
        "first": first - loaded,
        "second": second - first,
        "MB added": (_anonymous() - before) / 1e6,
        "MB mapped": _shared() / 1e6,
    }


def _penstock(path: str, times: list[float]) -> Any:
    import numpy as np  # noqa: PLC0415  (its time is measured)

    import penstock as ps  # noqa: PLC0415

    times.append(time.perf_counter())
    before = _anonymous()
    model = ps.saved_model.load(path)
    times.append(time.perf_counter())
    signature = model.signatures["serving_default"]
    given = {
        name: np.ones([size or 1 for size in spec.shape.dims], spec.dtype.numpy)
        for name, spec in signature.inputs.items()
    }
    times.append(before)
    return lambda: signature(**given)


def _tensorflow(path: str, times: list[float]) -> Any:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf  # noqa: PLC0415

    times.append(time.perf_counter())
    before = _anonymous()
    model = tf.saved_model.load(path)
    times.append(time.perf_counter())
    signature = model.signatures["serving_default"]
    given = {
        name: tf.ones([size or 1 for size in spec.shape], spec.dtype)
        for name, spec in signature.structured_input_signature[1].items()
    }
    times.append(before)
    return lambda: (model, signature(**given))


def _anonymous() -> float:
    """Bytes of this process's own memory."""
    return _status("RssAnon")


def _shared() -> float:
    """Bytes of files that are mapped, and that processes share."""
    return _status("RssFile")


def _status(key: str) -> float:
    with open("/proc/self/status", encoding="ascii") as file:
        [line] = [line for line in file if line.startswith(f"{key}:")]
    return int(line.split()[1]) * 1024.0


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--tensorflow", metavar="PYTHON", help="a Python that has TensorFlow")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        sys.stdout.write(json.dumps(measure(args.folders[0], args.one)) + "\n")
        return
    sides = {"penstock": sys.executable}
    if args.tensorflow:
        sides["tensorflow"] = args.tensorflow
    for folder in args.folders:
        rounds: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for _ in range(_ROUNDS):
            for side, python in sides.items():
                command = [python, "-m", "benchmarks.load_models", folder, "--one", side]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                rounds[side].append(json.loads(done.stdout.splitlines()[-1]))
        for side, found in rounds.items():
            best = {key: min(one[key] for one in found) for key in found[0]}
            words = [f"{key} {value:.2f}" for key, value in best.items()]
            print(f"{os.path.basename(folder)}  {side}: {', '.join(words)}")


if __name__ == "__main__":
    main()
