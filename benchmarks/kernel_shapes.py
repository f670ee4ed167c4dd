"""More of single ops: shapes and types that the table of ``kernel_cases`` has none of.

In:   the table below.
Out:  cases like those.
Not:  runs nothing.

Rows of few numbers, images as cameras give them, numbers of 16 bits, and what belongs to graphs
and to point clouds: where numpy begins anew with each row, an op that is fast on one shape may take
twenty times as long on another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.kernel_cases import Cases, Fixed, KernelFamily, f32, fixed, ints, one, positive

_ROWS, _CLASSES = 100_000, 21


def _short_rows() -> Cases:
    case, scores, few = KernelFamily("short rows"), f32(1, 512, 512, _CLASSES), f32(_ROWS, 4)
    for op in ("Max", "Sum", "Mean", "Prod"):
        yield case(op, "21 classes", scores, fixed(3))
    yield case("ArgMax", "21 classes", scores, Fixed(np.int32(3)))
    yield case("Softmax", "21 classes", scores)
    for op in ("Softmax", "LogSoftmax"):
        yield case(op, "1e5x4", few)
    yield case("Sum", "1e6x3", f32(1_000_000, 3), fixed(1))
    yield case("Sum", "1e5x4 int", ints(9, _ROWS, 4), fixed(1))
    yield case("Sum", "1e5x4 float64", few.astype(np.float64), fixed(1))
    yield case("Any", "1e5x4", few > 1, fixed(1))
    yield case("TopKV2", "1 of 21", f32(10_000, _CLASSES), Fixed(np.int32(1)), outputs=2)
    yield case("OneHot", "21 classes", ints(_CLASSES, 512 * 512), Fixed(np.int32(_CLASSES)),
               one(1), one(0))  # fmt: skip
    yield case("SparseSoftmaxCrossEntropyWithLogits", "21 classes", f32(65_536, _CLASSES),
               ints(_CLASSES, 65_536), outputs=2)  # fmt: skip
    yield case("SelectV2", "or 0", f32(1000, 1000) > 0, f32(1000, 1000), one(0))
    yield case("Sub", "1e5x3 by rows", f32(_ROWS, 3), f32(_ROWS, 1))
    yield case("Pack", "4 columns", [f32(_ROWS)] * 4, axis=1)
    yield case("Unpack", "4 columns", few, num=4, axis=1, outputs=4)


def _camera_images() -> Cases:
    case, image = KernelFamily("images"), f32(1, 1080, 1920, 3)
    bytes_ = (positive(1, 1080, 1920, 3) * 20).astype(np.uint8)
    colors = positive(1, 540, 960, 3) / np.float32(9)
    size = fixed(224, 224)
    yield case("Cast", "bytes to float", bytes_, DstT=np.float32)
    yield case("Mul", "by 1/255", image, one(1 / 255))
    yield case("Sub", "means of channels", image, Fixed(np.float32([1, 2, 3])))
    for op in ("Bilinear", "Bicubic", "Area", "NearestNeighbor"):
        yield case(f"Resize{op}", "1080 to 224", image, size)
    yield case("ResizeBilinear", "1080 to 224, bytes", bytes_, size)
    yield case("ScaleAndTranslate", "480 to 300", f32(1, 480, 640, 3), fixed(300, 300),
               Fixed(np.float32([0.6, 0.5])), Fixed(np.float32([0, 0])),
               kernel_type="lanczos3")  # fmt: skip
    boxes = np.abs(f32(100, 4)) / np.float32(3)
    yield case("CropAndResize", "100 of 14x14", f32(1, 50, 50, 256), boxes,
               np.zeros(100, np.int32), fixed(14, 14))  # fmt: skip
    yield case("AdjustContrastv2", "1080", image, one(1.5))
    for op, amount in (("AdjustHue", 0.1), ("AdjustSaturation", 1.5)):
        yield case(op, "540", colors, one(amount))
    for op in ("RGBToHSV", "HSVToRGB"):
        yield case(op, "540", colors)
    yield case("ReverseV2", "left to right", image, fixed(2))
    yield case("Transpose", "channels first", image, fixed(0, 3, 1, 2))
    yield case("MirrorPad", "8 around", image,
               Fixed(np.int32([[0, 0], [8, 8], [8, 8], [0, 0]])), mode="REFLECT")  # fmt: skip


def _halves() -> Cases:
    case, x = KernelFamily("float16"), f32(1000, 1000).astype(np.float16)
    for op in ("AddV2", "Mul"):
        yield case(op, "half 1e6", x, x)
    yield case("Relu", "half 1e6", x)
    yield case("BiasAdd", "half 1e6", x, x[0])
    yield case("MatMul", "half 256", x[:256, :256].copy(), x[:256, :256].copy())


def _graphs_and_points() -> Cases:
    case, rows = KernelFamily("segments"), f32(_ROWS, 8)
    ids = np.sort(ints(1000, _ROWS))
    for op in ("SegmentSum", "SegmentMean"):
        yield case(op, "1e5x8", rows, ids)
    yield case("UnsortedSegmentSum", "8192x64", f32(8192, 64), ints(10_000, 8192),
               Fixed(np.int32(10_000)))  # fmt: skip
    places: Any = np.stack([np.sort(ints(1000, 10_000)), ints(1000, 9_999 + 1)], 1)
    yield case("SparseTensorDenseMatMul", "1e4 of 1e6", places.astype(np.int64), f32(10_000),
               Fixed(np.int64([1000, 1000])), f32(1000, 64))  # fmt: skip
    yield case("Max", "points", f32(8, 1024, 64), fixed(1))
    yield case("Conv3DBackpropInputV2", "up to 32", fixed(1, 32, 32, 32, 8),
               f32(3, 3, 3, 8, 16) / 9, f32(1, 16, 16, 16, 16), strides=[1, 2, 2, 2, 1],
               padding="SAME")  # fmt: skip
    yield case("Conv2DBackpropInput", "up to 128", fixed(1, 128, 128, 16),
               f32(4, 4, 16, 32) / 9, f32(1, 64, 64, 32), strides=[1, 2, 2, 1],
               padding="SAME")  # fmt: skip


FAMILIES = (_short_rows, _camera_images, _halves, _graphs_and_points)
