"""Every graph of the corpus gives TensorFlow's answers as it is, too: nothing relies on passes.

That it gives them when it is optimised is what ``tests/test_corpus.py`` says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.config import GraphOptions
from support.corpus import Case, all_cases, check_error, run_case
from support.sampling import sampled


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", sampled(all_cases(), every=4), ids=str)
def test_optimising_makes_no_answer(case: Case, tmp_path: Path) -> None:
    """Values, types, shapes and errors are TensorFlow's without the optimiser."""
    config = ps.Config(
        device_count=case.device_count,
        allow_soft_placement=bool(case.meta.get("allow_soft_placement", False)),
        tier=ps.Tier.DATAFLOW,
        graph_options=GraphOptions.nothing(),
    )
    folder = case.folder(tmp_path)
    try:
        session = ps.Session(case.graph_bytes, config=config)
    except ps.errors.OpError as error:
        check_error(error, case.steps[0]["expect"])
        return
    with session:
        run_case(session, case, folder)
