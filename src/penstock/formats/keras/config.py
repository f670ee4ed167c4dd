"""The description of one layer, as any Keras wrote it.

In:   an object of a model's JSON: class, module, name, settings.
Out:  ``Config``: its settings by name and kind, with the defaults of the Keras that wrote it.
Not:  knows no layer; trusts nothing, so that a setting of another kind is an error that names it.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError, OpError, UnimplementedError

#: More than this many items of a setting are no layer's.
_MANY: Final = 20_000
_REQUIRED: Final = object()
#: Sizes beyond these cannot be meant; they are refused before anything is made of them.
MAX_SIZE: Final = 2**31 - 1


class Generation(enum.Enum):
    """Which Keras wrote a file; some functions differ between them."""

    KERAS_2 = 2
    KERAS_3 = 3


@dataclass(frozen=True, slots=True)
class Config:
    """What a file says of a layer."""

    class_name: str
    #: Such as ``keras.layers``; empty in files of Keras 2.
    module: str
    name: str
    settings: Mapping[str, Any]
    generation: Generation
    #: The layers around it, such as ``model/encoder``.
    within: str = ""

    @property
    def path(self) -> str:
        """Where it stands in the model."""
        return f"{self.within}/{self.name}" if self.within else self.name

    @property
    def is_keras_3(self) -> bool:
        """Whether it was written by Keras 3."""
        return self.generation is Generation.KERAS_3

    def named(self, name: str) -> Config:
        """The same under another name."""
        return replace(self, name=name)

    # -- errors ------------------------------------------------------------------------------

    def error(self, problem: str, next_step: str = "") -> InvalidArgumentError:
        """What is wrong with this layer."""
        return InvalidArgumentError(f"{self}: {problem}", next_step=next_step or _DAMAGED)

    def unsupported(self, what: str) -> UnimplementedError:
        """What this layer asks for, and Penstock does not have."""
        return UnimplementedError(f"{self} has {what}, which is not supported", next_step=EXPORT)

    def _wrong(self, key: str, wanted: str) -> InvalidArgumentError:
        return self.error(f"'{key}' must be {wanted}, not {shown(self.settings.get(key))}")

    def __str__(self) -> str:
        return f"Layer '{self.path}' ({self.class_name})"

    # -- settings by kind --------------------------------------------------------------------

    def get(self, key: str, default: Any = _REQUIRED) -> Any:
        """A setting of any kind; what is null is as good as absent where there is a default."""
        value = self.settings.get(key)
        if value is None:
            if default is _REQUIRED:
                raise self.error(f"'{key}' is missing")
            return default
        return value

    def flag(self, key: str, default: Any = _REQUIRED) -> bool:
        """A truth value."""
        value = self.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def text(self, key: str, default: Any = _REQUIRED) -> str:
        """A word."""
        value = self.get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "text")
        return value

    def choice(self, key: str, choices: Sequence[str], default: Any = _REQUIRED) -> str:
        """One of a few words."""
        value = self.text(key, default).lower()
        if value not in choices:
            raise self._wrong(key, " or ".join(repr(choice) for choice in choices))
        return value

    def integer(self, key: str, default: Any = _REQUIRED, at_least: int = 0) -> int:
        """A whole number; one of a list of its own, as old files have it."""
        value = self.get(key, default)
        if isinstance(value, (list, tuple)) and len(value) == 1:
            value = value[0]
        if not is_whole(value) or not at_least <= value <= MAX_SIZE:
            raise self._wrong(key, f"a whole number from {at_least} on")
        return int(value)

    def number(self, key: str, default: Any = _REQUIRED) -> float:
        """A finite number; Keras 2 wraps some as numpy arrays."""
        value = self.get(key, default)
        if isinstance(value, dict) and value.get("type") == "ndarray":
            value = value.get("value")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(key, "a number")
        if not math.isfinite(value):
            raise self._wrong(key, "a finite number")
        return float(value)

    def integers(
        self, key: str, count: int, default: Any = _REQUIRED, at_least: int = 1
    ) -> tuple[int, ...]:
        """So many whole numbers; one stands for all."""
        value = self.get(key, default)
        items = value if isinstance(value, (list, tuple)) else [value] * count
        if len(items) != count or not all(is_whole(i) and at_least <= i <= MAX_SIZE for i in items):
            raise self._wrong(key, f"{count} whole numbers from {at_least} on")
        return tuple(int(item) for item in items)

    def items(self, key: str, default: Any = _REQUIRED) -> list[Any]:
        """A list of anything."""
        value = self.get(key, default)
        if not isinstance(value, (list, tuple)) or len(value) > _MANY:
            raise self._wrong(key, "a list")
        return list(value)

    def axes(self, key: str, rank: int, default: Any = _REQUIRED) -> tuple[int, ...]:
        """Dimensions, none negative; a single one may come without a list."""
        value = self.get(key, default)
        items = value if isinstance(value, (list, tuple)) else [value]
        if len(items) > rank or not all(is_whole(i) and -rank <= i < rank for i in items):
            raise self._wrong(key, f"dimensions of an input of rank {rank}")
        return tuple(int(item) % rank for item in items)

    def axis(self, key: str, rank: int, default: Any = _REQUIRED) -> int:
        """One dimension, not negative."""
        found = self.axes(key, rank, default)
        if len(found) != 1:
            raise self._wrong(key, "one dimension")
        return found[0]

    def shape(self, key: str, default: Any = _REQUIRED) -> tuple[int | None, ...]:
        """Sizes, null for those that are not known."""
        value = self.get(key, default)
        items = value if isinstance(value, (list, tuple)) else None
        if items is None or len(items) > _MANY:
            raise self._wrong(key, "a shape")
        if not all(i is None or (is_whole(i) and 0 <= i <= MAX_SIZE) for i in items):
            raise self._wrong(key, "a shape")
        return tuple(None if item is None else int(item) for item in items)

    @property
    def is_channels_first(self) -> bool:
        """Whether the channels stand before the dimensions of space."""
        words = ("channels_last", "channels_first")
        return self.choice("data_format", words, "channels_last") == "channels_first"

    # -- types -------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """The type in which the layer computes."""
        return self._type(policy_name(self.settings.get("dtype")) or "float32")

    def type_of(self, key: str, default: str) -> DType:
        """A setting that is the name of a type."""
        return self._type(policy_name(self.get(key, default)) or default)

    def named_type(self, value: Any) -> DType:
        """The type of a name, of a policy, or of one of TensorFlow's own numbers."""
        return self._type(policy_name(value) or "float32")

    def _type(self, policy: str) -> DType:
        name = _COMPUTES_IN.get(policy, policy)
        try:
            return dtypes.as_dtype(name)
        except (OpError, TypeError, ValueError):
            raise self.unsupported(f"the type {shown(policy)}") from None

    # -- layers inside of it -----------------------------------------------------------------

    def nested(self, key: str) -> Config:
        """The description of a layer that this one wraps."""
        return self.inner(self.get(key), key)

    def inner(self, entry: Any, key: str) -> Config:
        """A description inside of this one's settings."""
        return read_config(entry, self.generation, self.path, default_name=key)


#: Policies whose name is not the type they compute in.
_COMPUTES_IN: Final = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
_DAMAGED: Final = "the file is damaged, or was made by hand; save the model again with Keras"
EXPORT: Final = (
    "where Keras and this layer are installed, model.export('folder') writes a SavedModel, "
    "which Penstock runs"
)


def policy_name(value: Any) -> str | None:
    """The name of a type or of a policy of types, in any of its forms; None if there is none."""
    if isinstance(value, dict):
        inner = value.get("config")
        value = inner.get("name") if isinstance(inner, dict) else inner
    return value if isinstance(value, str) else None


def read_config(
    entry: Any, generation: Generation, within: str = "", default_name: str = "layer"
) -> Config:
    """The description of one layer.

    Raises:
        InvalidArgumentError: it is none.

    """
    if not isinstance(entry, dict) or not isinstance(entry.get("class_name"), str):
        where = f" in '{within}'" if within else ""
        raise InvalidArgumentError(
            f"The model has no layer{where} where one should be, but {shown(entry)}",
            next_step=_DAMAGED,
        )
    settings = entry.get("config")
    if isinstance(settings, list):  # Sequential models before Keras 2.2.3 are only their layers
        settings = {"layers": settings}
    settings = settings if isinstance(settings, dict) else {}
    name = next((n for n in (entry.get("name"), settings.get("name")) if isinstance(n, str)), "")
    module = entry.get("module")
    return Config(
        class_name=entry["class_name"].rpartition(">")[2],
        module=module if isinstance(module, str) else "",
        name=name or default_name,
        settings=settings,
        generation=generation,
        within=within,
    )


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, also if it was written as 2.0."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def shown(value: Any) -> str:
    """A value of a file, short enough for an error."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
