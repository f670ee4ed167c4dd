"""A cluster is jobs with numbered tasks, each at an address of its own."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.cluster import ClusterSpec
from penstock.errors import InvalidArgumentError, NotFoundError


def test_tasks_have_names_and_addresses() -> None:
    """Tasks are numbered from 0, or as the dictionary says; jobs keep their order."""
    spec = ClusterSpec({"ps": ["a:1", "b:2"], "worker": {3: "[::1]:9", 1: "c.d:7"}})
    assert list(spec) == [
        "/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1",
        "/job:worker/replica:0/task:1", "/job:worker/replica:0/task:3",
    ]  # fmt: skip
    assert spec.address("/job:worker/replica:0/task:3") == "[::1]:9"
    assert spec.task_address("ps", 1) == "b:2"
    assert (len(spec), spec.jobs, spec.num_tasks("worker")) == (4, ("ps", "worker"), 2)
    assert (spec.num_tasks("none"), spec.task_indices("worker")) == (0, (1, 3))


def test_it_travels_as_a_message() -> None:
    """The same comes back from a ClusterDef, whatever the numbers are."""
    spec = ClusterSpec({"ps": ["a:1"], "worker": {7: "b:2"}})
    assert ClusterSpec.of(spec.to_proto()) == spec
    assert ClusterSpec.of(spec) is spec


def test_command_lines_spell_it() -> None:
    """Jobs are parted by semicolons, tasks by commas."""
    spec = ClusterSpec.parse("worker=a:1, b:2;ps=c:3")
    assert spec.as_dict() == {"worker": {0: "a:1", 1: "b:2"}, "ps": {0: "c:3"}}


@pytest.mark.parametrize(
    ("jobs", "complaint"),
    [
        (["a:1"], "not a list"),
        ({"0job": ["a:1"]}, "no name of a job"),
        ({"a b": ["a:1"]}, "no name of a job"),
        ({"job": "a:1"}, "tasks of job 'job' are a str"),
        ({"job": ["a"]}, "'a' is no address"),
        ({"job": ["a:70000"]}, "is no address"),
        ({"job": ["a:1:2"]}, "is no address"),
        ({"job": [None]}, "is no address"),
        ({"job": {-1: "a:1"}}, "no number of a task"),
        ({"job": {"0": "a:1"}}, "no number of a task"),
        ({"a": ["h:1"], "b": ["h:1"]}, "Two tasks of the cluster listen at h:1"),
    ],
)
def test_what_is_no_cluster_is_refused(jobs: Any, complaint: str) -> None:
    """Mistakes are told when they are made, and not when somebody is to be called."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        ClusterSpec(jobs)


@pytest.mark.parametrize("text", ["worker", "worker=a", "a=h:1;a=h:2"])
def test_what_is_no_cluster_on_a_command_line_is_refused(text: str) -> None:
    """So are mistakes in the short form."""
    with pytest.raises(InvalidArgumentError):
        ClusterSpec.parse(text)


def test_tasks_that_are_not_there_are_named() -> None:
    """Who asks for a stranger is told who there is."""
    with pytest.raises(NotFoundError, match=r"no task /job:b[\s\S]*/job:a/replica:0/task:0"):
        ClusterSpec({"a": ["h:1"]}).address("/job:b/task:0")
