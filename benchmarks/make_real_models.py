"""Write benchmark graphs of real models with trained weights, frozen by Penstock.

    python tools/fetch_models.py
    python -m benchmarks.make_real_models [NAME ...]

In:   models below ``models/``, and the input that tests feed them.
Out:  a case for each in ``build/benchmark_graphs``, of the group ``real``.
Not:  asks nobody for answers: engines are compared with each other, and tests with TensorFlow's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.cases import FOLDERS, ROOT, TOLERANCE, stored
from penstock.saved_model.freeze import freeze, freeze_tensors
from penstock.saved_model.loaded_model import load_model

sys.path.append(str(ROOT / "tests"))

from support.real_models import CASES, MODELS, Case


def make(case: Case, into: Path = FOLDERS[-1]) -> Path:
    """Write a case; returns its folder."""
    with load_model(MODELS / case.path) as model:
        if model.signatures:
            frozen = freeze(model, case.signature or "serving_default")
        else:
            frozen = freeze_tensors(model, case.fetches)
    folder = into / case.name.replace("-", "_")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.pb").write_bytes(frozen.graph_def.SerializeToString())
    feeds = {frozen.inputs.get(name, name): stored(fed) for name, fed in case.feeds().items()}
    keys = {tensor: str(number) for number, tensor in enumerate(feeds)}
    np.savez_compressed(folder / "feeds.npz", **{keys[name]: fed for name, fed in feeds.items()})
    meta = {
        "group": "real",
        "units": 1,
        "devices": 1,
        "feeds": keys,
        "fetches": [frozen.outputs.get(name, name) for name in case.fetches],
        "init_op": frozen.init,
        "tolerance": max(TOLERANCE, 10 * case.tolerance),
    }
    (folder / "case.json").write_text(json.dumps(meta, indent=2), "utf-8")
    return folder


def main(names: list[str]) -> None:
    """Write what is there, or what is named."""
    for case in CASES:
        if names and case.name not in names:
            continue
        if not (MODELS / case.path).parent.exists():
            print(f"{case.name}: python tools/fetch_models.py {case.name} brings it")
            continue
        make(case)
        print(case.name)


if __name__ == "__main__":
    main(sys.argv[1:])
