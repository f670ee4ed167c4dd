"""Names of devices: ``/job:worker/replica:0/task:1/device:CPU:0``, whole or in part.

In:   strings from graphs and callers, in the new spelling or the old one (``/cpu:0``).
Out:  ``DeviceName``, which says which devices are meant; names compared and merged.
Not:  knows no devices; whether one of that name exists is for others to say.
"""

from __future__ import annotations

import enum
import functools
import re
from typing import Final, TypeVar

from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError

_T = TypeVar("_T")

# One piece of a name.  Pieces follow each other in any order; later ones win.
_PIECE: Final = re.compile(
    r"/job:(?:\*|(?P<job>[A-Za-z]\w*))"
    r"|/replica:(?:\*|(?P<replica>\d+))"
    r"|/task:(?:\*|(?P<task>\d+))"
    r"|/device:(?:\*|(?P<type>[A-Za-z]\w*))(?::(?:\*|(?P<id>\d+)))?"
    r"|/(?P<old_type>cpu|CPU|gpu|GPU):(?:\*|(?P<old_id>\d+))",
    re.ASCII,
)
#: Types that may be written in lower case, and that have names in the old spelling.
_OLD_TYPES: Final = {"cpu": "CPU", "gpu": "GPU"}


class MergeMode(enum.Enum):
    """What to do when two names disagree on the device's type or id."""

    #: Refuse.
    STRICT = enum.auto()
    #: Leave open what they disagree on.
    SOFT = enum.auto()
    #: Take the other's.
    OVERRIDE = enum.auto()


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A device, or all devices that agree in what is not None."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    type: str | None = None
    id: int | None = None

    @staticmethod
    def parse(text: str) -> DeviceName:
        """Read a name; raises InvalidArgumentError if it is none."""
        found = DeviceName.try_parse(text)
        if found is None:
            raise InvalidArgumentError(
                f"Malformed device specification '{text}'",
                next_step="write it like /job:worker/replica:0/task:0/device:CPU:0",
            )
        return found

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def try_parse(text: str) -> DeviceName | None:
        """Read a name; None if it is none."""
        return ANY if text in ("", "/") else _parse(text)

    def __str__(self) -> str:
        parts = [
            f"/{field}:{value}"
            for field, value in (("job", self.job), ("replica", self.replica), ("task", self.task))
            if value is not None
        ]
        if self.type is not None:
            parts.append(f"/device:{self.type}:{'*' if self.id is None else self.id}")
        return "".join(parts)

    @property
    def is_any(self) -> bool:
        """Whether it says nothing, and so means every device."""
        return self == ANY

    @property
    def process(self) -> DeviceName:
        """The same name without type and id."""
        return DeviceName(self.job, self.replica, self.task)

    @property
    def of_any_id(self) -> DeviceName:
        """The same name without id."""
        return DeviceName(self.job, self.replica, self.task, self.type)

    def is_specialization_of(self, other: DeviceName) -> bool:
        """Whether it says all that ``other`` says."""
        return (
            (other.id is None or self.id == other.id)
            and (other.type is None or self.type == other.type)
            and (other.task is None or self.task == other.task)
            and (other.job is None or self.job == other.job)
            and (other.replica is None or self.replica == other.replica)
        )

    def is_compatible_with(self, other: DeviceName) -> bool:
        """Whether some device could have both names."""
        return not (
            _differ(self.job, other.job)
            or _differ(self.replica, other.replica)
            or _differ(self.task, other.task)
            or _differ(self.type, other.type)
            or _differ(self.id, other.id)
        )

    def merge(self, other: DeviceName, mode: MergeMode = MergeMode.STRICT) -> DeviceName:
        """The name that says what both say.

        Raises:
            InvalidArgumentError: they name different processes; or, in strict mode, different
                types or ids.

        """
        if other is ANY or other is self:
            return self
        self._check(other, mode)
        both = self.narrowed_to(other)
        if mode is MergeMode.SOFT:
            if _differ(self.type, other.type):
                return both.process
            if _differ(self.id, other.id):
                return both.of_any_id
        return both

    def _check(self, other: DeviceName, mode: MergeMode) -> None:
        """Raise if the mode does not bear how the names differ."""
        must_agree = [
            ("jobs", self.job, other.job),
            ("replicas", self.replica, other.replica),
            ("tasks", self.task, other.task),
        ]
        if mode is MergeMode.STRICT:
            must_agree += [("types", self.type, other.type), ("ids", self.id, other.id)]
        for what, mine, theirs in must_agree:
            if _differ(mine, theirs):
                raise InvalidArgumentError(
                    f"Cannot merge devices with incompatible {what}: '{self}' and '{other}'"
                )

    def narrowed_to(self, other: DeviceName) -> DeviceName:
        """What ``other`` says, and what only this name says; specialises ``other``."""
        if other is ANY or other is self:
            return self
        if self is ANY:
            return other
        return DeviceName(
            _first(other.job, self.job),
            _first(other.replica, self.replica),
            _first(other.task, self.task),
            _first(other.type, self.type),
            _first(other.id, self.id),
        )

    @functools.lru_cache(maxsize=4096)  # noqa: B019  (names are few, and small)
    def spellings(self) -> tuple[str, ...]:
        """All names by which this device may be looked up, the full one first."""
        full = [str(self)]
        if self.type is not None and self.type in _OLD_TYPES.values():
            full.append(f"{self.process}/{self.type.lower()}:{self.id}")
        return (*full, f"/device:{self.type}:{self.id}", f"{self.type}:{self.id}")


#: The name that says nothing.
ANY: Final = DeviceName()


def _parse(text: str) -> DeviceName | None:
    name, position = ANY, 0
    while position < len(text):
        match = _PIECE.match(text, position)
        if match is None:
            return None
        name = _replace_piece(name, match)
        position = match.end()
    return name


def _replace_piece(name: DeviceName, match: re.Match[str]) -> DeviceName:
    """The name with one piece put in; a star takes what was said before away."""
    job, replica, task, kind, index = name.job, name.replica, name.task, name.type, name.id
    match match[0][1 : match[0].index(":")]:
        case "job":
            job = match["job"]
        case "replica":
            replica = _number(match["replica"])
        case "task":
            task = _number(match["task"])
        case "device":
            kind, index = match["type"], _number(match["id"])
        case old:
            kind, index = old, _number(match["old_id"])
    return DeviceName(job, replica, task, _OLD_TYPES.get(kind or "", kind), index)


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _differ(mine: object, theirs: object) -> bool:
    return mine is not None and theirs is not None and mine != theirs


def _first(preferred: _T | None, other: _T | None) -> _T | None:
    return other if preferred is None else preferred
