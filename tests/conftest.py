"""How thorough the tests are.

``pytest`` leaves out what takes long: tests that are marked ``slow``, and most examples of random
tests.  ``pytest --all`` runs all of them, ``pytest --rest`` those that ``pytest`` left out, and
``HYPOTHESIS_PROFILE=thorough`` 2,000 examples of each random test.  A test that is named as
``file::test`` is run in any case.

The examples of ``pytest`` are the same each time; those of ``--all``, ``--rest`` and ``thorough``
are others each time.  One that fails is printed with the line ``@reproduce_failure(...)`` that
brings it back, and is tried first by the next run.  A generator of random numbers that belongs to
a module gives each test the same ones, whichever tests ran before it in the same process.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from penstock.core.limits import DEFAULT_LIMITS, Limits

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
#: Examples of each random test, by profile.
_EXAMPLES = {"short": 10, "quick": 60, "thorough": 2000}
for _name, _count in _EXAMPLES.items():
    settings.register_profile(
        _name,
        max_examples=_count,
        # Everyday runs try the same examples each time; longer ones explore.
        derandomize=_name == "short",
        print_blob=_name != "short",
        deadline=None,
        suppress_health_check=_QUIET,
    )


# A shell starts what it puts into the background so that Ctrl-C does not reach it; tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--all`` and ``--rest``."""
    parser.addoption("--all", action="store_true", help="run the tests that take long, too")
    parser.addoption(
        "--rest", action="store_true", help="run what pytest leaves out without an option"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: many tests wait for processes that they start."""
    is_known = hasattr(os, "sched_getaffinity")
    return (len(os.sched_getaffinity(0)) if is_known else os.cpu_count() or 1) + 1


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples random tests try, and have all requests compiled at once.

    Most tests run a request once, and those of the dataflow tier say so: the others are about what
    comes of later steps.  What becomes of the first ones is for tests that ask for them.
    """
    assert Limits.__init__.__kwdefaults__ is not None
    Limits.__init__.__kwdefaults__["uncompiled_steps"] = 0
    object.__setattr__(DEFAULT_LIMITS, "uncompiled_steps", 0)
    default = "quick" if config.getoption("--all") or config.getoption("--rest") else "short"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", default))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests, unless all are wanted or some are named; or the others."""
    if config.getoption("--all") or any("::" in arg for arg in config.args):
        return
    is_wanted = _is_more if config.getoption("--rest") else _is_quick
    config.hook.pytest_deselected(items=[item for item in items if not is_wanted(item)])
    items[:] = filter(is_wanted, items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have no garbage collected while tests are: none of them is."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Have the garbage collector pass over the tests, which stay to the end.

    There are so many that looking at them again took it a fifth of a run's time.
    """
    _note_generators(session.items)
    gc.collect()
    gc.freeze()


#: The generators of random numbers that the tests of a module use, and how each begins.
_generators: dict[ModuleType, list[tuple[np.random.Generator, Any]]] = {}


def _note_generators(items: list[pytest.Item]) -> None:
    """Look for those of modules that have tests, and of what is there for all of them."""
    support = [module for name, module in sys.modules.items() if name.startswith("support.")]
    shared = [begun for module in support for begun in _generators_in(module)]
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        _generators[module] = [*shared, *_generators_in(module)]


def _generators_in(module: ModuleType) -> list[tuple[np.random.Generator, Any]]:
    return [
        (one, one.bit_generator.state)
        for one in vars(module).values()
        if isinstance(one, np.random.Generator)
    ]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have the random numbers of a module begin anew."""
    if isinstance(item, pytest.Function):
        for generator, state in _generators[item.module]:
            generator.bit_generator.state = state


def _is_quick(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is None


def _is_more(item: pytest.Item) -> bool:
    """Whether a test is left out otherwise, or tries more examples now."""
    return not _is_quick(item) or is_hypothesis_test(getattr(item, "obj", None))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that this was not all."""
    options = terminalreporter.config
    if not options.getoption("--all") and not options.getoption("--rest"):
        terminalreporter.write_line("Tests that take long were left out; pytest --all runs them.")
