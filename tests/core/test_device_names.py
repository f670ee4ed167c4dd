"""Names of devices: reading, printing, comparing, merging."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.device_names import ANY, DeviceName, MergeMode
from penstock.errors import InvalidArgumentError

FULL = DeviceName("worker", 1, 2, "GPU", 3)
NAMES = st.builds(
    DeviceName,
    job=st.none() | st.sampled_from(["a", "b_2"]),
    replica=st.none() | st.integers(0, 2),
    task=st.none() | st.integers(0, 2),
    type=st.none() | st.sampled_from(["CPU", "GPU"]),
    id=st.none() | st.integers(0, 2),
)
MODES = st.sampled_from(MergeMode)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", ANY),
        ("/", ANY),
        ("/job:worker/replica:1/task:2/device:GPU:3", FULL),
        ("/device:GPU:3/task:2/replica:1/job:worker", FULL),
        ("/job:worker/replica:1/task:2/gpu:3", FULL),
        ("/job:*/replica:*/task:*/device:*:*", ANY),
        ("/cpu:1", DeviceName(type="CPU", id=1)),
        ("/CPU:1", DeviceName(type="CPU", id=1)),
        ("/GPU:*", DeviceName(type="GPU")),
        ("/device:CPU", DeviceName(type="CPU")),
        ("/device:CPU:*", DeviceName(type="CPU")),
        ("/device:*:4", DeviceName(id=4)),
        ("/device:XLA_CPU:0", DeviceName(type="XLA_CPU", id=0)),
        ("/device:cpu:0", DeviceName(type="CPU", id=0)),
        ("/device:CPU:007", DeviceName(type="CPU", id=7)),
        ("/job:a_1/task:0", DeviceName(job="a_1", task=0)),
    ],
)
def test_read(text: str, name: DeviceName) -> None:
    """New and old spellings, stars, and pieces in any order are understood."""
    assert DeviceName.parse(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("/cpu:1/cpu:2", DeviceName(type="CPU", id=2)),
        ("/job:a/job:b", DeviceName(job="b")),
        ("/job:a/job:*/cpu:1", DeviceName(type="CPU", id=1)),
        ("/device:CPU:1/device:GPU", DeviceName(type="GPU")),
    ],
)
def test_later_pieces_win(text: str, name: DeviceName) -> None:
    """A piece that is said twice counts as said last; a star unsays it."""
    assert DeviceName.parse(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "//", "foo", "CPU:0", "/cpu", "/Cpu:0", "/tpu:0", "/job:", "/job:_a", "/job:1a",
        "/job:a-b", "/job:a/", "/task:-1", "/task:x", "/replica:1x", "/device:CPU:",
        "/device:CPU:+1", "/device:1CPU:0", "/device:C-PU:0", "/job:*x", " /cpu:0", "/cpu:0 ",
        "/cpu:0\n", "/cpu:٣",
    ],
)  # fmt: skip
def test_anything_else_is_no_name(text: str) -> None:
    """What is not read whole is not read at all."""
    assert DeviceName.try_parse(text) is None
    with pytest.raises(InvalidArgumentError, match="Malformed device specification"):
        DeviceName.parse(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (ANY, ""),
        (FULL, "/job:worker/replica:1/task:2/device:GPU:3"),
        (DeviceName(type="CPU"), "/device:CPU:*"),
        (DeviceName(task=0, type="CPU", id=0), "/task:0/device:CPU:0"),
    ],
)
def test_print(name: DeviceName, text: str) -> None:
    """Names are printed in the new spelling and in one order."""
    assert str(name) == text


@given(NAMES)
def test_printed_names_are_read_back(name: DeviceName) -> None:
    """Printing loses nothing but an id without a type, which has no spelling of its own."""
    expected = name if name.type is not None else name.process
    assert DeviceName.parse(str(name)) == expected


@given(NAMES, NAMES)
def test_specialisation_implies_compatibility(one: DeviceName, other: DeviceName) -> None:
    """Who says all that another says does not contradict it; everyone specialises nothing."""
    assert one.is_specialization_of(ANY)
    assert one.is_specialization_of(one)
    if one.is_specialization_of(other):
        assert one.is_compatible_with(other)
    assert one.is_compatible_with(other) == other.is_compatible_with(one)


def test_comparison() -> None:
    """A missing field fits everything but specialises nothing that is said."""
    cpu, cpu_1 = DeviceName(type="CPU"), DeviceName(type="CPU", id=1)
    assert cpu_1.is_specialization_of(cpu)
    assert not cpu.is_specialization_of(cpu_1)
    assert cpu.is_compatible_with(cpu_1)
    assert not cpu_1.is_compatible_with(DeviceName(type="CPU", id=2))


@given(NAMES, NAMES, MODES)
def test_names_that_fit_merge_alike_in_all_modes(
    one: DeviceName, other: DeviceName, mode: MergeMode
) -> None:
    """Where there is no conflict, the merged name specialises both."""
    if not one.is_compatible_with(other):
        return
    merged = one.merge(other, mode)
    assert merged.is_specialization_of(one)
    assert merged.is_specialization_of(other)
    assert merged == other.merge(one, mode)


@pytest.mark.parametrize("mode", MergeMode)
@pytest.mark.parametrize("field", ["job", "replica", "task"])
def test_other_processes_never_merge(mode: MergeMode, field: str) -> None:
    """No mode gives up the process."""
    one, other = DeviceName(**{field: 1}), DeviceName(**{field: 2})  # type: ignore[arg-type]
    with pytest.raises(
        InvalidArgumentError,
        match=f"Cannot merge devices with incompatible {field}s: '/{field}:1' and '/{field}:2'",
    ):
        one.merge(other, mode)


@pytest.mark.parametrize(
    ("mode", "types", "ids"),
    [
        (MergeMode.SOFT, "/job:a/task:1", "/job:a/task:1/device:CPU:*"),
        (MergeMode.OVERRIDE, "/job:a/task:1/device:GPU:0", "/job:a/task:1/device:CPU:2"),
    ],
)
def test_conflicting_types_and_ids(mode: MergeMode, types: str, ids: str) -> None:
    """Softly both are given up, or the id alone; overriding takes the other's."""
    one = DeviceName.parse("/job:a/device:CPU:0")
    assert str(one.merge(DeviceName.parse("/task:1/device:GPU:0"), mode)) == types
    assert str(one.merge(DeviceName.parse("/task:1/device:CPU:2"), mode)) == ids


@pytest.mark.parametrize(("other", "what"), [("/gpu:0", "types"), ("/cpu:1", "ids")])
def test_strict_merge_refuses(other: str, what: str) -> None:
    """The strict mode names what does not fit."""
    with pytest.raises(InvalidArgumentError, match=f"incompatible {what}: '/device:CPU:0' and"):
        DeviceName.parse("/cpu:0").merge(DeviceName.parse(other))


@given(NAMES, NAMES)
def test_narrowing_takes_the_other_first(one: DeviceName, other: DeviceName) -> None:
    """What the other says holds, and what only this one says stays."""
    narrowed = one.narrowed_to(other)
    assert narrowed.is_specialization_of(other)
    if one.is_compatible_with(other):
        assert narrowed.is_specialization_of(one)


def test_spellings() -> None:
    """A device is found by its full, its old and its local names."""
    assert list(FULL.spellings()) == [
        "/job:worker/replica:1/task:2/device:GPU:3",
        "/job:worker/replica:1/task:2/gpu:3",
        "/device:GPU:3",
        "GPU:3",
    ]
    assert list(DeviceName("a", 0, 0, "XPU", 1).spellings()) == [
        "/job:a/replica:0/task:0/device:XPU:1",
        "/device:XPU:1",
        "XPU:1",
    ]
