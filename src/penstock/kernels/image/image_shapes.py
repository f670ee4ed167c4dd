"""Shapes of images: what is decoded, resized, cropped, coloured and boxed.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  looks into no file.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.kernels.api.partial_shapes import dim, shape, with_rank
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

_DISTORTED = "-> [3], [3], [1,1,4]"

shape_signatures({
    "AdjustContrast": "s, [], [], [] -> s",
    "AdjustContrastv2 AdjustHue AdjustSaturation": "s, [] -> s",
    "CropAndResize": "[?,?,?,c], [n,4], [n], [2] -> [n,:3,c]",
    "CropAndResizeGradBoxes": "*, *, [n,4], [n] -> [n,4]",
    "CropAndResizeGradImage": "[?,?,?,?], [n,4], [n], [4] -> :3",
    "DecodeGif": "[] -> [?,?,?,3]",
    "DrawBoundingBoxes": "s, * -> s",
    "DrawBoundingBoxesV2": "s, *, * -> s",
    "EncodeJpeg": "[?,?,?] -> []",
    "EncodeJpegVariableQuality": "[?,?,?], * -> []",
    "EncodePng": "[...,?,?,?] -> [...]",
    "ExtractGlimpse ExtractGlimpseV2": "[b,?,?,c], [2], [b,2] -> [b,:1,c]",
    "ExtractJpegShape": "[] -> [3]",
    "HSVToRGB RGBToHSV": "[...,3] -> [...,3]",
    "ImageProjectiveTransformV2": "[b,?,?,c], *, [2] -> [b,:2,c]",
    "ImageProjectiveTransformV3": "[b,?,?,c], *, [2], * -> [b,:2,c]",
    "NonMaxSuppression": "[n,4], [n], [] -> [?]",
    "NonMaxSuppressionV2": "[n,4], [n], [], [] -> [?]",
    "NonMaxSuppressionV3": "[n,4], [n], [], [], [] -> [?]",
    "NonMaxSuppressionWithOverlaps": "[n,n], [n], [], [], [] -> [?]",
    "RandomCrop": "[?,?,c], [2] -> [:1,c]",
    """
    ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor ResizeNearestNeighborGrad
    """: "[b,?,?,c], [2] -> [b,:1,c]",
    "ResizeBicubicGrad ResizeBilinearGrad": "*, s -> s",
    "SampleDistortedBoundingBox": _DISTORTED,
    "SampleDistortedBoundingBoxV2 StatelessSampleDistortedBoundingBox": _DISTORTED,
    "ScaleAndTranslate": "[b,?,?,c], [2], *, * -> [b,:1,c]",
    "ScaleAndTranslateGrad": "*, s, *, * -> s",
})  # fmt: skip


@shape_rule("DecodeAndCropJpeg", "DecodeBmp", "DecodeJpeg", "DecodePng")
def decoded(node: ShapeContext) -> TensorShape:
    """Nobody knows how large the image is; how many channels it gets may be asked for.

    That the file is of another kind, and holds several images, TensorFlow leaves out of account.
    """
    with_rank(node.input(0), 0)
    channels = node.attrs.int("channels") or None
    if node.attrs.op.name == "DecodeAndCropJpeg":
        window = node.numbers(1)
        if window is not None and len(window) == 4:
            return shape(window[2], window[3], channels)
    return shape(None, None, channels)


@shape_rule("DecodeImage")
def decode_image(node: ShapeContext) -> TensorShape:
    """One image; several, if the file may be animated."""
    with_rank(node.input(0), 0)
    if node.attrs.bool("expand_animations"):
        return UNKNOWN
    return shape(None, None, node.attrs.int("channels") or None)


@shape_rule("NonMaxSuppressionV4")
def padded_suppression(node: ShapeContext) -> Sequence[TensorShape]:
    """The indices, of which there are as many as asked for if they are padded."""
    count = node.count(2) if node.attrs.bool("pad_to_max_output_size") else None
    return shape(count), shape()


@shape_rule("NonMaxSuppressionV5")
def soft_suppression(node: ShapeContext) -> Sequence[TensorShape]:
    """The indices and their scores."""
    count = node.count(2) if node.attrs.bool("pad_to_max_output_size") else None
    return shape(count), shape(count), shape()


@shape_rule("CombinedNonMaxSuppression")
def combined_suppression(node: ShapeContext) -> Sequence[TensorShape]:
    """As many boxes as asked for, for each image."""
    boxes, scores = with_rank(node.input(0), 4), with_rank(node.input(1), 3)
    batch, count = dim(boxes, 0), node.count(3)
    if node.attrs.bool("pad_per_class"):
        each, classes = node.count(2), dim(scores, 2)
        is_known = count is not None and each is not None and classes is not None
        count = min(count, each * classes) if is_known else None  # type: ignore[operator,type-var]
    return shape(batch, count, 4), shape(batch, count), shape(batch, count), shape(batch)
