"""What a file of Keras holds: a description, and weights.

In:   the path of a ``.keras`` or ``.h5`` file, or its bytes.
Out:  ``Archive``: the description of the outermost model, the Keras that wrote it, and a way to its
      weights.
Not:  knows no layers.

A ``.keras`` file is a ZIP archive of ``metadata.json``, ``config.json``, ``model.weights.h5`` and,
below ``assets``, vocabularies.  Nothing of it is unpacked to disk: its names are only looked up.
What a file is, its first bytes say, not its name.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from typing import Any, Final

from penstock.core.files import FileSystem
from penstock.core.memory import fits_memory
from penstock.dataclass import dataclass
from penstock.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from penstock.formats.keras.config import Config, Generation, read_config
from penstock.formats.keras.h5 import H5File, open_h5
from penstock.formats.keras.hdf5_bytes import SIGNATURE
from penstock.formats.keras.layer import Layer
from penstock.formats.keras.weights import FindAsset, read_lists, read_tree
from penstock.formats.strict_json import MAX_BYTES, parse_object

_ZIP: Final = b"PK\x03\x04"
_WEIGHTS: Final = "model.weights.h5"
_ASSETS: Final = "assets"
#: How many times as large as its packed form a part of an archive may be.
_EXPANSION: Final = 1100
_AGAIN: Final = "get the file again, or save the model again with Keras"
_WHOLE: Final = "save the whole model, by model.save, or give the file that has its layers, too"


@dataclass(frozen=True, slots=True)
class Archive:
    """One file of Keras."""

    config: Config
    #: Such as ``3.8.0`` or ``2.2.4-tf``.
    version: str
    #: Its weights, or the part of the file that has them.
    weights: H5File
    #: Whether those are numbered in a tree, as in ``.keras`` files.
    is_tree: bool
    #: The files beside the weights.
    find_asset: FindAsset = lambda _: None

    def read_weights(self, model: Layer) -> None:
        """Give each layer its arrays."""
        if self.is_tree:
            read_tree(model, self.weights, self.find_asset)
        else:
            read_lists(model, self.weights)


def open_archive(source: str | bytes, origin: str = "") -> Archive:
    """What a file holds.

    Raises:
        InvalidArgumentError: it is no model of Keras, or only its weights.
        DataLossError: it is damaged.
        UnimplementedError: it takes h5py, which is not installed; or it is older than Keras 2.

    """
    content = source if isinstance(source, bytes) else FileSystem().read(source)
    name = origin or (source if isinstance(source, str) else "the file")
    if content.startswith(_ZIP):
        return _open_zip(content, name)
    if content.startswith(SIGNATURE):
        return _open_h5(content, name)
    raise InvalidArgumentError(
        f"{name} is no model of Keras: it is neither a ZIP archive nor an HDF5 file",
        next_step="penstock show says what a file is",
    )


# -- .keras ---------------------------------------------------------------------------------------


def _open_zip(content: bytes, origin: str) -> Archive:
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, EOFError) as cause:
        raise DataLossError(f"{origin} is a damaged archive: {cause}", next_step=_AGAIN) from None
    if "config.json" not in names:
        raise InvalidArgumentError(
            f"{origin} is an archive without config.json, so no model of Keras",
            next_step="unpack it, and give the model that is in it",
        )
    if "metadata.json" not in names:
        # The same settings mean other things in other versions.
        raise DataLossError(
            f"{origin} does not say which Keras wrote it: metadata.json is missing",
            next_step=_AGAIN,
        )
    found = parse_object(_member(archive, "metadata.json", origin), f"{origin}/metadata.json")
    version = _text(found.get("keras_version")) or "(none)"
    entry = parse_object(_member(archive, "config.json", origin), f"{origin}/config.json")
    if _WEIGHTS not in names:
        what = (
            "in several pieces"
            if any(n.endswith(".weights.json") for n in names)
            else "not as HDF5"
        )
        raise UnimplementedError(
            f"{origin} has its weights {what}",
            next_step="save the model again with Keras, by model.save('model.keras')",
        )
    weights = _member(archive, _WEIGHTS, origin)

    def find_asset(path: str) -> bytes | None:
        name = f"{_ASSETS}/{path}"
        return _member(archive, name, origin) if name in names else None

    config = _outermost(entry, version, origin)
    file = open_h5(weights, f"{origin}/{_WEIGHTS}")
    return Archive(config, version, file, is_tree=True, find_asset=find_asset)


def _member(archive: zipfile.ZipFile, name: str, origin: str) -> bytes:
    """A part of an archive, whole; the archive's word on its size is checked while it is read."""
    try:
        info = archive.getinfo(name)
        limit = info.file_size
        if (limit > MAX_BYTES and limit > _EXPANSION * info.compress_size) or not fits_memory(
            limit
        ):
            raise ResourceExhaustedError(
                f"{origin}: '{name}' of {limit} bytes is packed in {info.compress_size}"
            )
        with archive.open(info) as member:
            found = member.read(limit + 1)
    except OpError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as cause:
        raise DataLossError(f"{origin}: '{name}' is damaged: {cause}", next_step=_AGAIN) from None
    except (NotImplementedError, RuntimeError) as cause:  # unknown compression, encryption
        raise UnimplementedError(f"{origin}: '{name}' cannot be read: {cause}") from None
    except MemoryError:
        raise ResourceExhaustedError(f"{origin}: there is no memory for '{name}'") from None
    if len(found) != limit:
        raise DataLossError(f"{origin}: '{name}' is damaged", next_step=_AGAIN)
    return found


# -- .h5 ------------------------------------------------------------------------------------------


def _open_h5(content: bytes, origin: str) -> Archive:
    file = open_h5(content, origin)
    text = file.attribute("model_config")
    if text is None:
        raise _only_weights(file, origin)
    if not isinstance(text, str):
        raise DataLossError(f"{origin}: its description is damaged", next_step=_AGAIN)
    weights = file.below("model_weights")
    if weights is None:
        raise NotFoundError(f"{origin} has a description of a model, but no weights")
    entry = parse_object(text.encode("utf-8", "replace"), f"{origin}/model_config")
    version = _text(file.attribute("keras_version")) or _text(weights.attribute("keras_version"))
    return Archive(_outermost(entry, version, origin), version, weights, is_tree=False)


def _only_weights(file: H5File, origin: str) -> OpError:
    has_weights = "layers" in file or file.attribute("layer_names") is not None
    if has_weights or "_layer_checkpoint_dependencies" in file:
        what = f"{origin} holds the weights of a model, but not its layers"
        return InvalidArgumentError(what, next_step=_WHOLE)
    return InvalidArgumentError(
        f"{origin} is an HDF5 file, but no model of Keras", next_step=_WHOLE
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _outermost(entry: dict[str, Any], version: str, origin: str) -> Config:
    """The description of the model, with the generation of the Keras that wrote it.

    Raises:
        UnimplementedError: that was Keras 1, which named itself in no file at first.
        DataLossError: the version is none.

    """
    if version.startswith(("0.", "1.")) or not version:
        raise UnimplementedError(
            f"The model was saved by Keras {version or '1'}",
            next_step="load and save it with Keras 2.2 to 2.15, which convert it",
        )
    if not re.match(r"\d+\.\d", version):
        raise DataLossError(f"{origin} says that Keras {version} wrote it", next_step=_AGAIN)
    is_new = not version.startswith("2.")
    return read_config(entry, Generation.KERAS_3 if is_new else Generation.KERAS_2)
