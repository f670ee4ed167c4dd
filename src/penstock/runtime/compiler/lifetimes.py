"""How long names are needed, and where they can be dropped.

In:   what each statement reads and makes, in the order of the text.
Out:  for each branch, the names to be dropped in it.
Not:  writes nothing.

A name is dropped in the branch in which it came to be, as soon as the text is there again
after its last use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from penstock.runtime.compiler.program import Body, Var
from penstock.runtime.compiler.schedule import Path


class Lifetimes:
    """The names of one body."""

    def __init__(self, body: Body, kept: set[Var]) -> None:
        #: Names that are not to be dropped: others need them.  A condition is a single boolean,
        #: and not worth dropping.
        self.kept = kept | set(body.conditions)
        #: Uses that are still to come.
        self._uses: Counter[Var] = Counter()
        #: Names that have been used.
        self._seen: set[Var] = set()
        #: The branches in which names are known.
        self._home: dict[Var, Path] = {}
        #: Names that get their value in one of several branches.
        self._moved: set[Var] = set()
        #: Names to be dropped when their branch is reached again, by branch.
        self._doomed: dict[Path, dict[Var, None]] = {}

    def expect(self, variables: Iterable[Var]) -> None:
        """Names that will be used, each as often as it stands there."""
        self._uses.update(variables)

    def expect_no_more(self, variables: Iterable[Var]) -> None:
        """Take an expectation back."""
        self._uses.subtract(variables)

    def settle(self, var: Var, path: Path) -> None:
        """Note in which branch a name is known; one with several moves, in all of them."""
        home = self._home.get(var)
        if home is not None and home != path:
            self._moved.add(var)
            path = common_path(home, path)
        self._home[var] = path

    def used(self, variables: Sequence[Var]) -> None:
        """One use of each name is written."""
        for var in variables:
            self._uses[var] -= 1
        self._seen.update(variables)
        self.check(variables)

    def check(self, variables: Sequence[Var]) -> None:
        """Doom those of the names that are not used any more."""
        for var in variables:
            home = self._home.get(var)
            if not self._uses[var] and home is not None and var not in self.kept:
                self._doomed.setdefault(home, {})[var] = None

    def is_only_use(self, var: Var) -> bool:
        """Whether the next use of a name is the only one ever.

        Being the last is not enough: who used it before may have kept it, or a view of it.
        """
        return self._uses[var] == 1 and var not in self.kept and var not in self._seen

    def may_be_unset(self, var: Var) -> bool:
        """Whether a name may have got no value at all, which "del" would not forgive."""
        return var in self._moved

    def is_doomed(self, path: Path) -> bool:
        """Whether some name is to be dropped in a branch."""
        return path in self._doomed

    def take_doomed(self, path: Path) -> list[Var]:
        """The names to be dropped in a branch, for the last time."""
        return list(self._doomed.pop(path, ()))


def common_path(a: Path, b: Path) -> Path:
    """The beginning that two paths share."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return a[:count]
