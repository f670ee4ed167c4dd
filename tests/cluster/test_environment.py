"""What launchers put into the environment says which task a process is."""

from __future__ import annotations

import json

import pytest

from penstock.cluster.environment import expanded_hosts, place_of
from penstock.errors import FailedPreconditionError, InvalidArgumentError


def test_tf_config() -> None:
    """TensorFlow's own variable, as its documentation has it."""
    text = json.dumps(
        {
            "cluster": {"worker": ["h1:12345", "h2:23456"], "ps": {"0": "h3:1"}},
            "task": {"type": "worker", "index": 1},
        }
    )
    cluster, job, index = place_of({"TF_CONFIG": text})
    assert (job, index) == ("worker", 1)
    assert cluster.as_dict() == {"worker": {0: "h1:12345", 1: "h2:23456"}, "ps": {0: "h3:1"}}


def test_slurm() -> None:
    """Tasks are numbered over the hosts as SLURM numbers them, ports within each host."""
    cluster, job, index = place_of(
        {
            "SLURM_STEP_NODELIST": "n[08-09],login",
            "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
            "SLURM_PROCID": "3",
            "PENSTOCK_PORT": "9000",
        }
    )
    addresses = ["n08:9000", "n08:9001", "n09:9000", "n09:9001", "login:9000"]
    assert cluster.as_dict() == {"worker": dict(enumerate(addresses))}
    assert (job, index) == ("worker", 3)


def test_stateful_set() -> None:
    """A pod's name ends with its number; the headless service names all of them."""
    cluster, job, index = place_of(
        {"PENSTOCK_WORKERS": "2", "PENSTOCK_SERVICE": "pen", "HOSTNAME": "pen-w-1"}
    )
    assert cluster.as_dict() == {"worker": {0: "pen-w-0.pen:8470", 1: "pen-w-1.pen:8470"}}
    assert (job, index) == ("worker", 1)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", ["a"]),
        ("a,b-1", ["a", "b-1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[001-002,7]x", ["n001x", "n002x", "n7x"]),
        ("a[1],b[2-3],c", ["a1", "b2", "b3", "c"]),
    ],
)
def test_lists_of_hosts(text: str, hosts: list[str]) -> None:
    """SLURM's short form, as its manual describes it."""
    assert list(expanded_hosts(text)) == hosts


@pytest.mark.parametrize("text", ["n[", "n[]", "n[a-b]", "n[1-99999999]", "[1]"])
def test_lists_that_are_none(text: str) -> None:
    """What is no list is refused, and so is one without end."""
    with pytest.raises(InvalidArgumentError, match="list of hosts"):
        list(expanded_hosts(text))


@pytest.mark.parametrize(
    "environ",
    [
        {"TF_CONFIG": "{"},
        {"TF_CONFIG": "[]"},
        {"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}}'},
        {"TF_CONFIG": '{"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}}'},
        {"PENSTOCK_WORKERS": "x", "PENSTOCK_SERVICE": "s", "HOSTNAME": "a-0"},
        {"PENSTOCK_WORKERS": "1", "HOSTNAME": "a-0"},
        {"SLURM_STEP_NODELIST": "a", "SLURM_STEP_TASKS_PER_NODE": "many", "SLURM_PROCID": "0"},
        {"SLURM_STEP_NODELIST": "a"},
    ],
)
def test_environments_that_say_it_wrongly(environ: dict[str, str]) -> None:
    """The variable that is wrong is named."""
    with pytest.raises(InvalidArgumentError):
        place_of(environ)


def test_environments_that_say_nothing() -> None:
    """Then a cluster must be given."""
    with pytest.raises(FailedPreconditionError, match="describes no cluster"):
        place_of({"HOSTNAME": "a-0"})
