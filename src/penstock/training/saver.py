"""``Saver``: the variables of a graph into checkpoints, some of which are kept, and back.

In:   variables, a session, a folder.
Out:  checkpoints that TensorFlow's own Saver restores; the file ``checkpoint`` beside them.
Not:  does not know when; ``checkpoint_hook`` does.

Values are fetched and fed, so the files are where this process is, whatever machine runs the steps.

The law of the files: at every moment ``checkpoint`` names a checkpoint that is whole, if it is
there at all.  A new checkpoint is complete before it is named, and old ones are removed when they
are named no longer; a process that is killed in between leaves files that nobody names.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from penstock.builder import Variable, default_graph
from penstock.checkpoint import load as open_checkpoint
from penstock.checkpoint import read_state, save, write_state
from penstock.core.files import DurableFiles
from penstock.errors import InvalidArgumentError, NotFoundError, OpError
from penstock.session import Session

_GLOBAL_STEP: Final = "global_step"
_FILES: Final = DurableFiles()
#: What the names of a checkpoint's files end with.
_ENDINGS: Final = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})", re.ASCII)


def global_step_of(variable: Variable | None = None) -> Variable:
    """The variable that counts steps: the one given, or the one that is called ``global_step``.

    Raises:
        InvalidArgumentError: the default graph has none.

    """
    if variable is not None:
        return variable
    for known in default_graph().variables:
        if known.name == _GLOBAL_STEP:
            return known
    raise InvalidArgumentError(
        "Global step should be created: the graph has no variable 'global_step'",
        next_step="make one: penstock.Variable(numpy.int64(0), name='global_step'), and add 1 to "
        "it in each step",
    )


class Saver:
    """Saves and restores variables; keeps the last few checkpoints of a folder."""

    def __init__(
        self,
        var_list: Iterable[Variable] | Mapping[str, Variable] | None = None,
        *,
        max_to_keep: int = 5,
    ) -> None:
        """Choose variables.

        Args:
            var_list: variables, or variables by the names under which they are saved; None means
                all of the default graph.
            max_to_keep: so many checkpoints stay; 0 keeps all.

        Raises:
            InvalidArgumentError: two variables have one name, or the number is negative.

        """
        given = default_graph().variables if var_list is None else var_list
        named = given if isinstance(given, Mapping) else {one.name: one for one in given}
        if len(named) != len(list(given)):
            raise InvalidArgumentError("Two of the variables to be saved have the same name")
        if max_to_keep < 0:
            raise InvalidArgumentError(f"max_to_keep must not be negative, but is {max_to_keep}")
        self._variables: Final = dict(named)
        self._most: Final = max_to_keep
        # So that the graph need not change when it is run.
        self._values: Final = {name: one.value() for name, one in self._variables.items()}
        #: Prefixes that are kept, oldest first, with the times when they were written.
        self._kept: list[tuple[str, float]] = []

    @property
    def last_checkpoints(self) -> list[str]:
        """The prefixes of the checkpoints that are kept, oldest first."""
        return [prefix for prefix, _ in self._kept]

    def save(
        self, session: Session, save_path: str | os.PathLike[str], global_step: int | None = None
    ) -> str:
        """Write a checkpoint, and note it in the folder's file ``checkpoint``.

        Args:
            session: one in which the variables have values.
            save_path: the prefix, such as ``folder/model.ckpt``.
            global_step: is appended to it: ``folder/model.ckpt-7``.

        Returns:
            The prefix with the step.

        Raises:
            FailedPreconditionError: a variable has no value.
            OpError: the step or the file system fails.

        """
        prefix = os.fsdecode(save_path) + ("" if global_step is None else f"-{global_step}")
        return self.write(session.run(self._values), prefix)

    def write(self, values: Mapping[str, Any], prefix: str) -> str:
        """Write values that were fetched already, by name; else like ``save``."""
        folder = os.path.dirname(prefix) or "."
        save(prefix, values, files=_FILES)
        kept = [pair for pair in self._kept if pair[0] != prefix] + [(prefix, time.time())]
        # Those that are dropped are named no longer before they are gone.
        dropped = kept[: -self._most] if self._most else []
        self._kept = kept[len(dropped) :]
        write_state(
            folder,
            prefix,
            [name for name, _ in self._kept],
            timestamps=[at for _, at in self._kept],
            files=_FILES,
        )
        for name, _ in dropped:
            _remove(name)
        return prefix

    def restore(self, session: Session, prefix: str | os.PathLike[str]) -> None:
        """Give the variables the values of a checkpoint.

        Raises:
            NotFoundError: it is not there, or lacks a variable.
            OpError: it is damaged, or a value does not fit.

        """
        found = open_checkpoint(prefix)
        feeds = {}
        for name, variable in self._variables.items():
            if name not in found:
                raise NotFoundError(f"Key {name} not found in checkpoint {found.prefix}")
            feeds[variable.initial_value] = found[name]
        if feeds:
            session.run([one.initializer for one in self._variables.values()], feeds)

    def recover(self, folder: str) -> None:
        """Go on keeping the checkpoints that an earlier process left in a folder."""
        try:
            state = read_state(folder)
        except NotFoundError:
            return
        times = state.timestamps or (0.0,) * len(state.all)
        paths = [os.path.join(folder, os.path.basename(path)) for path in state.all]
        known = zip(paths, times, strict=False)
        self._kept = [(path, at) for path, at in known if _FILES.exists(f"{path}.index")]


def _remove(prefix: str) -> None:
    """Remove a checkpoint: the index first, without which the rest is nothing."""
    folder, name = os.path.split(prefix)
    names = [one for one in _FILES.names(folder or ".") if _ENDINGS.fullmatch(one, len(name))]
    ours = [one for one in names if one.startswith(name)]
    for one in sorted(ours, key=lambda one: not one.endswith(".index")):
        try:
            _FILES.remove(os.path.join(folder, one))
        except OpError:
            continue  # somebody else has removed it, or keeps it
