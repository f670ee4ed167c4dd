"""Layers of Keras: what is known of each class, and one of them with its weights.

In:   functions that are marked ``@layer("Dense")``; configurations; a source of weights.
Out:  ``Layer``, which makes its nodes when it is called with symbols.
Not:  reads no files, and knows no single class.

A class is one function from a layer and its inputs to its outputs, and what has to be known
before: which weights it has, in the order in which Keras makes them, and which layers are inside
of it.  Both layouts of files are read by that order.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.builder import control_dependencies, name_scope, ops
from penstock.builder.tensor import Tensor
from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.errors import AlreadyExistsError, OpError, ResourceExhaustedError
from penstock.formats.keras.config import Config
from penstock.formats.keras.symbol import Nest, Symbol, each, flatten

#: Makes the nodes of a layer: takes the layer, its inputs, and what else a call may bring.
Build: TypeAlias = Callable[..., Nest]


class Masking(enum.Enum):
    """What becomes of the mask of a layer's first input."""

    #: It is its outputs' as well.
    PASSES = "passes"
    #: It ends here.
    ENDS = "ends"
    #: The layer's function says what the masks of its outputs are.
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Weight:
    """One array of a layer's own."""

    name: str
    #: Whether training changes it while the layer is trained; old files list those first.
    is_trained: bool = True
    #: Whether files name it, where they number others; HDF5 files with flat lists do not have it.
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class LayerKind:
    """What is known of a class."""

    build: Build
    weights: Callable[[Config], Sequence[Weight]]
    #: The layers inside, by the attribute that has them in Keras, in the order of their weights.
    parts: Callable[[Config], Mapping[str, Config]]
    masking: Masking
    #: Whether inputs of another real type are converted to the layer's.
    converts: bool
    #: The files beside the weights that the layer reads, such as ``vocabulary.txt``.
    assets: Sequence[str]


_KINDS: Final[dict[str, LayerKind]] = {}


def layer(
    *names: str,
    weights: Callable[[Config], Sequence[Weight]] = lambda _: (),
    parts: Callable[[Config], Mapping[str, Config]] = lambda _: {},
    masking: Masking = Masking.ENDS,
    converts: bool = True,
    assets: Sequence[str] = (),
) -> Callable[[Build], Build]:
    """Say that a function makes the layers of some classes of Keras.

    Raises:
        AlreadyExistsError: one of them is made already.

    """

    def register(build: Build) -> Build:
        for name in names:
            if name in _KINDS:
                raise AlreadyExistsError(f"Keras' {name} has a function already")
            _KINDS[name] = LayerKind(build, weights, parts, masking, converts, assets)
        return build

    return register


def find_kind(config: Config) -> LayerKind | None:
    """What is known of the class of a layer, if anything is."""
    if config.module.startswith(("keras.src.ops", "keras.ops")):
        return _KINDS.get(f"ops.{config.class_name}")
    own = operation_kind(config)
    if own is not None and "newshape" in config.settings:
        return own
    return _KINDS.get(config.class_name, own)


def operation_kind(config: Config) -> LayerKind | None:
    """What is known of a function of the class's name, if that may be meant.

    HDF5 files of Keras 3 do not say whether ``Multiply`` is the layer, which takes a list, or the
    function, which takes two arguments.
    """
    is_open = config.is_keras_3 and not config.module
    return _KINDS.get(f"ops.{config.class_name}") if is_open else None


def known_layers() -> list[str]:
    """The names of all classes that are known, sorted; operations begin with ``ops.``."""
    return sorted(_KINDS)


@dataclass(slots=True, eq=False)
class Layer:
    """One layer of a model, which may be called several times."""

    config: Config
    kind: LayerKind
    parts: Mapping[str, Layer]
    #: Its own arrays; filled in by whoever reads the file, before the first call.
    arrays: dict[str, Array] = field(default_factory=dict)
    #: Its own files, of those that the archive has; filled in together with ``arrays``.
    assets: dict[str, bytes] = field(default_factory=dict)
    #: Arrays as nodes; made when first asked for, and shared by all calls.
    _constants: dict[str, Tensor] = field(default_factory=dict)

    def own_weights(self) -> Sequence[Weight]:
        """What arrays it has, in the order in which Keras makes them."""
        return self.kind.weights(self.config)

    def array(self, name: str, shape: Sequence[int | None] | None = None) -> Array:
        """One of its arrays.

        Raises:
            InvalidArgumentError: its shape is another than ``shape``.

        """
        array = self.arrays[name]
        if shape is not None and not _fits(array.shape, shape):
            wanted = "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"
            raise self.config.error(
                f"its weight '{name}' has the shape {array.shape}, but must have {wanted}",
                "the weights belong to another model than the layers",
            )
        return array

    def weight(self, name: str, shape: Sequence[int | None] | None = None) -> Tensor:
        """One of its arrays as a constant of the type it computes in."""
        array = self.array(name, shape)
        return self.kept(name, lambda: array)

    def kept(self, name: str, make: Callable[[], Array]) -> Tensor:
        """A constant that is made of its arrays once, and shared by all calls."""
        if name not in self._constants:
            self._constants[name] = self.constant(name, make())
        return self._constants[name]

    def kept_as_is(self, name: str, values: Array) -> Tensor:
        """The same of numbers or words of any type, which stays."""
        if name not in self._constants:
            with control_dependencies(None):
                self._constants[name] = ops.constant(values, name=name)
        return self._constants[name]

    def constant(self, name: str, value: Any) -> Tensor:
        """A constant of the type it computes in, outside of all loops."""
        wanted = self.config.dtype.numpy
        with control_dependencies(None):
            return ops.constant(np.asarray(value).astype(wanted, copy=False), name=name)

    def part(self, name: str) -> Layer:
        """A layer inside of it."""
        return self.parts[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Nest:
        """Make its nodes once more, for these inputs."""
        # Damaged weights are numbers, too: what is computed of them overflows in silence.
        quiet = np.errstate(all="ignore")
        with sound(self.config), name_scope(node_name(self.config.name)), quiet:
            if self.kind.converts:
                args = each(self._converted, args)
                kwargs = each(self._converted, kwargs)
            outputs = self.kind.build(self, *args, **kwargs)
            return self._with_masks(args, kwargs, outputs)

    def _converted(self, x: Symbol) -> Symbol:
        wanted = self.config.dtype
        if not x.tensor.dtype.is_floating or not wanted.is_floating or x.tensor.dtype is wanted:
            return x
        return Symbol(ops.cast(x.tensor, wanted), x.shape, x.mask)

    def _with_masks(self, args: Any, kwargs: Any, outputs: Nest) -> Nest:
        if self.kind.masking is Masking.OWN:
            return outputs
        inputs = flatten(args) or flatten(kwargs)
        mask = inputs[0].mask if inputs and self.kind.masking is Masking.PASSES else None
        return each(lambda y: y.masked(mask), outputs)


@contextmanager
def sound(config: Config) -> Iterator[None]:
    """A block in which whatever does not fit is the fault of a file.

    Files say how layers are called and with what; the functions of layers rely on it, and Python
    says where it is not so.
    """
    try:
        yield
    except OpError:
        raise
    except (TypeError, AttributeError, LookupError, ValueError, ArithmeticError) as cause:
        raise config.error(f"it cannot be built as the file says: {cause}") from cause
    except (RecursionError, MemoryError) as cause:
        raise ResourceExhaustedError(f"{config} is too large or nested too deeply") from cause


def _fits(shape: Sequence[int], wanted: Sequence[int | None]) -> bool:
    return len(shape) == len(wanted) and all(
        size is None or size == own for own, size in zip(shape, wanted, strict=True)
    )


def node_name(name: str) -> str:
    """What stands for a stranger's name where only letters, digits and ``._-/`` may be."""
    legal = re.sub(r"[^A-Za-z0-9_.\-]", "_", name)[:200]
    return legal if legal[:1].isalnum() or legal[:1] == "." else f"layer{legal}"
