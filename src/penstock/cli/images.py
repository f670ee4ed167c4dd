"""Images as feeds.

In:   an image file, and the type and shape of the tensor that it is fed to.
Out:  an array in the range and with the dimensions that are expected; or the file itself,
      where a graph decodes images by itself.
Not:  resizes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Array
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.exceptions import shown_cause
from penstock.kernels.api.extras import require

#: Names that end so are images.
SUFFIXES: Final = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
#: Kinds of image that hold no samples, and what they are turned into.
_PLAIN_MODE_OF: Final = {"1": "L", "P": "RGB", "PA": "RGBA", "CMYK": "RGB"}


def is_image(name: str) -> bool:
    """Whether a file of this name is read as an image."""
    return name.lower().endswith(SUFFIXES)


def read_image(path: Path, dtype: DType, shape: TensorShape) -> Any:
    """An image as a tensor expects it: its bytes for a string, otherwise its samples.

    For a floating-point input, 0 to 255 becomes 0 to 1; where the shape has a batch
    dimension in front, or one channel at the end, it is added.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is no image, or an animation.
        UnimplementedError: Pillow is not installed.

    """
    if not path.is_file():
        raise NotFoundError(f"There is no file {path}")
    if dtype is dtypes.string:
        return path.read_bytes()
    array = _samples(path)
    if dtype.is_floating:
        array = (array / np.iinfo(array.dtype).max).astype(dtype.numpy)
    dims = shape.dims or ()
    if array.ndim == 2 and (len(dims) == 4 or (len(dims) == 3 and dims[-1] == 1)):
        array = array[..., np.newaxis]
    return array[np.newaxis] if len(dims) == array.ndim + 1 else array


def _samples(path: Path) -> Array:
    """Rows, columns and, unless the image is grey, channels."""
    image_module = require("PIL.Image", "images", f"Reading {path}")
    try:
        with image_module.open(path) as image:
            frames = getattr(image, "n_frames", 1)
            if frames > 1:
                raise InvalidArgumentError(
                    f"{path} is an animation of {frames} images",
                    next_step="feed one of them as an image, or all of them as a .npy file",
                )
            plain = _PLAIN_MODE_OF.get(image.mode)
            return np.asarray(image.convert(plain) if plain else image)
    except (OSError, ValueError, SyntaxError) as cause:
        raise InvalidArgumentError(f"{path} is not an image: {cause}") from shown_cause(cause)
