"""Sessions that recover; the order of calls is the one that TensorFlow 2.21 was seen to have."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.training import (
    CheckpointSaverHook,
    MonitoredSession,
    Saver,
    Scaffold,
    SessionRunArgs,
    SessionRunHook,
    StopAtStepHook,
)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    """Losses are expected here."""
    logging.getLogger("penstock.training").setLevel(logging.ERROR)


class Model:
    """A variable that grows by 2 in each step, and the steps counted."""

    def __init__(self) -> None:
        self.graph = ps.Graph()
        with self.graph.as_default():
            self.step = ps.Variable(np.int64(0), name="global_step")
            self.w = ps.Variable(np.float32(0), name="w")
            self.train = ps.group(self.step.assign_add(np.int64(1)), self.w.assign_add(2.0))
            with ps.control_dependencies([self.train]):
                self.after = self.w.read_value()
                self.step_after = self.step.read_value()


class Recorder(SessionRunHook):
    """Writes down what is called, and with what; raises or stops where it is told to."""

    def __init__(self, model: Model, events: list[Any], name: str = "a", **when: Any) -> None:
        self.model, self.events, self.name, self.when, self.count = model, events, name, when, 0

    def begin(self) -> None:
        self.events.append((self.name, "begin"))

    def after_create_session(self, session: ps.Session, coord: object) -> None:
        self.events.append((self.name, "created", int(session.run(self.model.step))))

    def before_run(self, run_context: Any) -> SessionRunArgs:
        self.count += 1
        self.events.append((self.name, "before", self.count))
        if self.when.get("before") == self.count:
            raise self.when["error"]
        return SessionRunArgs({"g": self.model.step_after})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.events.append((self.name, "after", int(run_values.results["g"])))
        if self.when.get("after") == self.count:
            raise self.when["error"]
        if self.when.get("stop") == self.count:
            run_context.request_stop()

    def end(self, session: ps.Session) -> None:
        self.events.append((self.name, "end", int(session.run(self.model.step))))


def trained(
    folder: Path,
    steps: int,
    *hooks: Callable[[Model, list[Any]], SessionRunHook],
    then: Callable[[MonitoredSession], Any] = lambda _s: None,
    **options: Any,
) -> list[Any]:
    """What is called, and what ``w`` is after each of some steps."""
    model, events = Model(), list[Any]()
    options = {"save_checkpoint_steps": 2, **options}
    made = [hook(model, events) for hook in hooks]
    with MonitoredSession(model.graph, checkpoint_dir=folder, hooks=made, **options) as sess:
        for _ in range(steps):
            if sess.should_stop():
                events.append("stopped")
                break
            events.append(float(sess.run(model.after)))
        then(sess)
    return events


def saved(folder: Path) -> list[str]:
    return [Path(path).name for path in ps.checkpoint.read_state(folder).all]


def test_hooks_are_called_in_order(tmp_path: Path) -> None:
    """Those of one kind in the order in which they were given."""
    events = trained(tmp_path, 2, Recorder, lambda m, e: Recorder(m, e, "b"))
    assert events == [
        ("a", "begin"), ("b", "begin"), ("a", "created", 0), ("b", "created", 0),
        ("a", "before", 1), ("b", "before", 1), ("a", "after", 1), ("b", "after", 1), 2.0,
        ("a", "before", 2), ("b", "before", 2), ("a", "after", 2), ("b", "after", 2), 4.0,
        ("a", "end", 2), ("b", "end", 2),
    ]  # fmt: skip
    assert saved(tmp_path) == ["model.ckpt-0", "model.ckpt-2"]


def test_training_goes_on_where_it_ended(tmp_path: Path) -> None:
    """A second session restores the last checkpoint; the last step is saved whatever its number."""
    trained(tmp_path, 2)
    events = trained(tmp_path, 1, Recorder, save_checkpoint_steps=100)
    assert events[1:] == [("a", "created", 2), ("a", "before", 1), ("a", "after", 3), 6.0,
                          ("a", "end", 3)]  # fmt: skip
    assert saved(tmp_path) == ["model.ckpt-0", "model.ckpt-2", "model.ckpt-3"]
    names = {path.name for path in tmp_path.iterdir()}
    assert "model.ckpt-2.data-00000-of-00001" in names, "what was restored is not written anew"


@pytest.mark.parametrize("kind", [errors.AbortedError, errors.UnavailableError])
def test_a_loss_before_a_step_rebuilds_the_session(tmp_path: Path, kind: Any) -> None:
    """The last checkpoint is restored, and the same call is made again; ``begin`` is not."""
    events = trained(
        tmp_path, 4, lambda m, e: Recorder(m, e, before=3, error=kind("a worker died"))
    )
    assert events == [
        ("a", "begin"), ("a", "created", 0), ("a", "before", 1), ("a", "after", 1), 2.0,
        ("a", "before", 2), ("a", "after", 2), 4.0,
        ("a", "before", 3), ("a", "created", 2), ("a", "before", 4), ("a", "after", 3), 6.0,
        ("a", "before", 5), ("a", "after", 4), 8.0, ("a", "end", 4),
    ]  # fmt: skip
    assert saved(tmp_path) == ["model.ckpt-0", "model.ckpt-2", "model.ckpt-4"]


def test_a_loss_after_a_step_undoes_it(tmp_path: Path) -> None:
    """What was done since the last checkpoint is done anew, once."""
    lost = errors.AbortedError("a worker died")
    events = trained(tmp_path, 4, lambda m, e: Recorder(m, e, after=3, error=lost))
    assert events[8:15] == [
        ("a", "before", 3), ("a", "after", 3), ("a", "created", 2), ("a", "before", 4),
        ("a", "after", 3), 6.0, ("a", "before", 5),
    ]  # fmt: skip
    assert events[-1] == ("a", "end", 4)


def test_other_errors_end_training_without_a_word_to_hooks(tmp_path: Path) -> None:
    """Nothing is saved either; what is saved stays."""
    wrong = errors.InternalError("injected")
    events: list[Any] = []
    with pytest.raises(errors.InternalError, match="injected"):
        trained(tmp_path, 3, lambda m, _: Recorder(m, events, before=2, error=wrong),
                save_checkpoint_steps=10)  # fmt: skip
    assert ("a", "end", 1) not in events
    assert saved(tmp_path) == ["model.ckpt-0"]


@pytest.mark.parametrize("end", [errors.OutOfRangeError("no more"), StopIteration()])
def test_the_end_of_the_data_is_no_error(tmp_path: Path, end: BaseException) -> None:
    """Hooks are told, and the last step is saved."""
    events: list[Any] = []
    trained(tmp_path, 3, lambda m, _: Recorder(m, events, before=2, error=end),
            save_checkpoint_steps=10)  # fmt: skip
    assert events[-1] == ("a", "end", 1)
    assert saved(tmp_path) == ["model.ckpt-0", "model.ckpt-1"]


def test_a_hook_may_stop_training(tmp_path: Path) -> None:
    """After its step, and nothing may be run any more."""

    def too_much(sess: MonitoredSession) -> None:
        with pytest.raises(RuntimeError, match="even after should_stop requested"):
            sess.run([])

    events = trained(tmp_path, 5, lambda m, e: Recorder(m, e, stop=2), then=too_much)
    assert events[-2:] == ["stopped", ("a", "end", 2)]
    assert trained(tmp_path, 9, lambda *_: StopAtStepHook(num_steps=3)) == [6, 8, 10, "stopped"]
    assert trained(tmp_path, 9, lambda *_: StopAtStepHook(last_step=7)) == [12, 14, "stopped"]


def test_the_last_five_checkpoints_are_kept(tmp_path: Path) -> None:
    """Of all others no file stays; TensorFlow's names."""
    trained(tmp_path, 9, save_checkpoint_steps=1)
    assert saved(tmp_path) == [f"model.ckpt-{step}" for step in range(5, 10)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["checkpoint"]
        + [f"model.ckpt-{n}.{end}" for n in range(5, 10)
           for end in ("index", "data-00000-of-00001")]
    )  # fmt: skip
    trained(tmp_path, 1, save_checkpoint_steps=1)
    assert saved(tmp_path) == [f"model.ckpt-{step}" for step in range(6, 11)]


def test_seconds_between_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is looked at after each step; one that comes too early is not saved."""
    now = [100.0]
    monkeypatch.setattr("penstock.training.checkpoint_hook.monotonic", lambda: now[0])
    model = Model()
    options = {"checkpoint_dir": tmp_path, "save_checkpoint_secs": 10}
    with MonitoredSession(model.graph, **options) as sess:
        for seconds in (4, 4, 4, 4, 4, 4):
            now[0] += seconds
            sess.run(model.train)
    assert saved(tmp_path) == ["model.ckpt-0", "model.ckpt-3", "model.ckpt-6"]


def test_a_step_function_runs_anew(tmp_path: Path) -> None:
    """All of it: with and without hooks."""
    losses = [errors.UnavailableError("gone")]
    model, events = Model(), list[Any]()
    hooks = [Recorder(model, events)]
    options = {"checkpoint_dir": tmp_path, "hooks": hooks, "save_checkpoint_steps": 100}

    def two_steps(context: Any) -> float:
        context.session.run(model.train)
        if losses:
            raise losses.pop()
        return float(context.run_with_hooks(model.after))

    with MonitoredSession(model.graph, **options) as sess:
        assert sess.run_step_fn(two_steps) == 4.0
        sess.run_step_fn(lambda context: context.request_stop())
        assert sess.should_stop()
    assert [event[1] for event in events] == [
        *("begin", "created", "created", "before", "after", "end")
    ]


# -- sessions that are lost ----------------------------------------------------------------------


class Losing:
    """Makes sessions that fail in the middle of what they run, at random places."""

    def __init__(self, graph: ps.Graph, chance: float, seed: int) -> None:
        self.graph, self.chance, self.losses = graph, chance, 0
        self.rng = np.random.default_rng(seed)

    def __call__(self) -> ps.Session:
        self._perhaps_lose()
        session = ps.Session(self.graph)
        run = session.run

        def losing(*args: Any, **options: Any) -> Any:
            self._perhaps_lose()
            result = run(*args, **options)
            self._perhaps_lose()
            return result

        session.run = losing  # type: ignore[method-assign]
        return session

    def _perhaps_lose(self) -> None:
        if self.rng.random() < self.chance:
            self.losses += 1
            kinds = (errors.AbortedError, errors.UnavailableError)
            raise kinds[self.losses % 2](f"loss {self.losses}")


@pytest.mark.parametrize("seed", range(5))
def test_no_update_is_lost_or_doubled(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is lost, before or after it was done: 30 steps end where 30 steps end."""
    monkeypatch.setattr("penstock.training.monitored_session.sleep", lambda _seconds: None)
    graph = ps.Graph()
    with graph.as_default():
        step = ps.Variable(np.int64(0), name="global_step")
        w = ps.Variable(np.float64(1), name="w")
        moved = w.assign(w.value() * 1.5 + ps.ops.cast(step.value(), "float64"))
        with ps.control_dependencies([moved]):
            train = step.assign_add(np.int64(1))
    losing = Losing(graph, 0.1, seed)
    options = {"checkpoint_dir": tmp_path, "save_checkpoint_steps": 3, "session_factory": losing}
    with MonitoredSession(graph, hooks=[StopAtStepHook(last_step=30)], **options) as sess:
        while not sess.should_stop():
            sess.run(train)
    expected = 1.0
    for number in range(30):
        expected = expected * 1.5 + number
    assert losing.losses > 3
    prefix = ps.checkpoint.latest(tmp_path)
    assert prefix is not None
    last = ps.checkpoint.load(prefix)
    # The session may be lost when it is closed; then the steps since the last checkpoint are.
    done = int(last["global_step"])
    if done == 30:
        assert float(last["w"]) == expected
    with MonitoredSession(graph, checkpoint_dir=tmp_path, save_checkpoint_steps=3) as sess:
        for _ in range(30 - done):
            sess.run(train)
        assert float(sess.run(w)) == expected


def test_no_session_in_time_is_an_error(tmp_path: Path) -> None:
    """It says what went wrong last."""

    def never() -> ps.Session:
        raise errors.UnavailableError("nobody there")

    with pytest.raises(errors.DeadlineExceededError, match="No session was ready") as caught:
        MonitoredSession(
            Model().graph, checkpoint_dir=tmp_path, session_factory=never, max_wait_secs=0.1
        )
    assert "nobody there" in str(caught.value.__cause__)


def test_workers_wait_for_the_chief() -> None:
    """They initialize nothing, and begin when what they share has values."""
    model, made = Model(), list[ps.Session]()
    with ps.Session(model.graph) as shared:

        class View:
            """The session that all share, which nobody of them closes."""

            def run(self, *args: Any, **options: Any) -> Any:
                made.append(shared)
                if len(made) == 3:
                    with model.graph.as_default():
                        shared.run([v.initializer for v in model.graph.variables])
                return shared.run(*args, **options)

            def close(self) -> None:
                pass

        factory: Any = View
        with MonitoredSession(model.graph, is_chief=False, session_factory=factory) as sess:
            assert sess.run(model.after) == 2.0
        with (
            MonitoredSession(model.graph, is_chief=False, session_factory=factory) as sess,
            pytest.raises(errors.NotFoundError, match="nothing:0"),
        ):
            sess.run("nothing:0")


# -- getting ready ---------------------------------------------------------------------------


def test_what_a_scaffold_is_given_is_used(tmp_path: Path) -> None:
    """First values by ``init_op`` and ``init_fn``; local ones in every session."""
    model = Model()
    with model.graph.as_default():
        local = ps.Variable(np.float32(0), name="local")
        start = ps.placeholder("float32", [], name="start")
        init = ps.group(model.step.initializer, model.w.assign(start))
        seen: list[float] = []
        scaffold = Scaffold(
            init_op=init,
            init_feed_dict={start: 40.0},
            init_fn=lambda _scaffold, session: seen.append(float(session.run(model.w))),
            local_init_op=local.initializer,
            saver=Saver([model.w, model.step], max_to_keep=1),
        )
    options = {"checkpoint_dir": tmp_path, "scaffold": scaffold, "save_checkpoint_steps": 1}
    with MonitoredSession(model.graph, **options) as sess:
        assert sess.run(model.after) == 42.0
    assert seen == [40.0]
    assert saved(tmp_path) == ["model.ckpt-1"]
    assert list(ps.checkpoint.load(tmp_path / "model.ckpt-1")) == ["global_step", "w"]


def test_what_nobody_initializes_is_named() -> None:
    """Before the first step, not in it."""
    model = Model()
    with model.graph.as_default():
        scaffold = Scaffold(init_op=model.step.initializer)
    with pytest.raises(errors.FailedPreconditionError, match="Variables not initialized: w"):
        MonitoredSession(model.graph, scaffold=scaffold)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda m, d: MonitoredSession(ps.Graph(), checkpoint_dir=d), "Global step should be"),
        (
            lambda m, d: MonitoredSession(
                m.graph, checkpoint_dir=d, save_checkpoint_secs=1, save_checkpoint_steps=1
            ),
            "cannot both be given",
        ),
        (lambda m, d: CheckpointSaverHook(d), "Exactly one of save_secs and save_steps"),
        (lambda m, d: CheckpointSaverHook(d, save_steps=0), "must be positive"),
        (lambda m, d: StopAtStepHook(), "Exactly one of num_steps and last_step"),
        (lambda m, d: Saver([m.w], max_to_keep=-1), "must not be negative"),
        (lambda m, d: Saver([m.w, m.w]), "the same name"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, says: str, tmp_path: Path) -> None:
    """At once."""
    with pytest.raises(errors.InvalidArgumentError, match=says):
        make(Model(), tmp_path)


def test_two_feeds_of_one_tensor_are_refused() -> None:
    """A hook must not change what the caller feeds."""
    model = Model()
    with model.graph.as_default():
        x = ps.placeholder("float32", [], name="x")

    class Feeding(SessionRunHook):
        def before_run(self, run_context: Any) -> SessionRunArgs:
            return SessionRunArgs(None, {x: 1.0})

    with MonitoredSession(model.graph, hooks=[Feeding()]) as sess:
        assert sess.run(x) == 1.0
        with pytest.raises(errors.InvalidArgumentError, match="Same tensor is fed"):
            sess.run(x, {x: 2.0})
