"""What is true of ops beyond their signatures, said once for whoever asks.

In:   an op's name.
Out:  ``OpTraits``; and how large results may be that nobody has computed.
Not:  knows no kernels: what is true of these is said where they are registered.

An op that is in no table has none of the traits.  Nearly all of them allow something, so what is
new, or somebody's own, is treated with more care than it needs.  The exceptions forbid something:
``is_impure``, which for ops of users the flag ``stateful`` says, and a test asks of ours that
touch files; ``writes_input``; and ``calls_user_code``.
"""

from __future__ import annotations

import enum
from dataclasses import fields
from typing import Final

from penstock.dataclass import dataclass


class ResultSize(enum.Enum):
    """What says how many elements an op's results have at most."""

    #: The shapes of the inputs.
    BY_SHAPES = enum.auto()
    #: The values of the inputs: some of them are sizes.
    BY_VALUES = enum.auto()
    #: One input's number of elements, squared.
    SQUARED = enum.auto()
    #: Two ends and a step.
    RANGE = enum.auto()
    #: Nobody knows before it has run, or nobody said.
    UNKNOWN = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTraits:
    """What is true of an op, whoever computes it."""

    #: Its two operands may change places where they are numbers; of TensorFlow's own flag Add
    #: has nothing, since it joins strings as well.
    commutes: bool = False
    #: Neither stateful by declaration nor told by the inputs alone: files, arguments that are
    #: written into, handles that are strings.
    is_impure: bool = False
    #: The first output is the first input, and the node means nothing else.
    hands_on: bool = False
    #: Writes into the memory of its first input, in TensorFlow.
    writes_input: bool = False
    #: Makes a resource that nobody has seen yet, or finds it; nothing else.
    makes_handle: bool = False
    #: Hands on what is given to it, so that resources among its inputs may lie elsewhere.
    exempt_from_colocation: bool = False
    #: Stateful by declaration, though its values live no longer than the step.
    of_the_step: bool = False
    #: Has state of its own, or an effect, but keeps no value that it gets.
    keeps_nothing: bool = False
    #: Gives a variable's own array, which is read-only; an object is not.
    reads_variable: bool = False
    #: Does nothing but raise an error where something does not hold, however often it is run.
    only_checks: bool = False
    #: Its outputs are never memory of its inputs, nor any part of it.
    makes_new: bool = False
    #: Calls the user's code, which may keep what it gets.
    calls_user_code: bool = False
    #: Its output stands for the resource that its input is a handle of.
    stands_for_input: bool = False


#: The ops that have each trait.
_TABLES: Final = {
    "commutes": "Add AddV2 Mul",
    "is_impure": """
    Abort GenerateVocabRemapping ImmutableConst InplaceAdd InplaceSub InplaceUpdate MatchingFiles
    ReadFile TensorArrayClose TensorArrayCloseV2 TensorArrayConcat TensorArrayConcatV2
    TensorArrayGather TensorArrayGatherV2 TensorArrayPack TensorArrayRead TensorArrayReadV2
    TensorArrayScatter TensorArrayScatterV2 TensorArraySize TensorArraySizeV2
    TensorArraySplit TensorArraySplitV2 TensorArrayUnpack TensorArrayWrite
    TensorArrayWriteV2
    """,
    "hands_on": """
    GuaranteeConst Identity PlaceholderWithDefault PreventGradient Snapshot StopGradient
    """,
    "writes_input": "InplaceAdd InplaceSub InplaceUpdate",
    "makes_handle": """
    AnonymousHashTable AnonymousIterator AnonymousIteratorV3 AnonymousMultiDeviceIteratorV3
    AnonymousMutableHashTable AnonymousMutableHashTableOfTensors
    BoostedTreesEnsembleResourceHandleOp BoostedTreesQuantileStreamResourceHandleOp
    DummyIterationCounter DummyMemoryCache DummySeedGenerator
    ExperimentalStatsAggregatorHandle ExperimentalThreadPoolHandle FIFOQueueV2
    FixedLengthRecordReaderV2 HashTableV2 IdentityReaderV2 Iterator IteratorV2
    MultiDeviceIterator MutableHashTableOfTensorsV2 MutableHashTableV2 MutexV2
    OneShotIterator PaddingFIFOQueueV2 PriorityQueueV2 RandomShuffleQueueV2
    ResourceConditionalAccumulator StatsAggregatorHandle StatsAggregatorHandleV2
    StubResourceHandleOp SummaryWriter TFRecordReaderV2 TextLineReaderV2 ThreadPoolHandle
    VarHandleOp WholeFileReaderV2 _XlaAotOnlyVarHandleOp
    """,
    "exempt_from_colocation": """
    FilterDataset FlatMapDataset GeneratorDataset GroupByReducerDataset GroupByWindowDataset
    IdentityN InterleaveDataset LegacyParallelInterleaveDatasetV2 MapAndBatchDataset
    MapDataset ParallelFilterDataset ParallelInterleaveDataset ParallelInterleaveDatasetV2
    ParallelInterleaveDatasetV3 ParallelInterleaveDatasetV4 ParallelMapDataset
    ParallelMapDatasetV2 PartitionedCall ReduceDataset RpcServerRegister ScanDataset
    StatefulPartitionedCall TakeWhileDataset
    """,
    "of_the_step": """
    Stack StackClose StackCloseV2 StackPop StackPopV2 StackPush StackPushV2 StackV2
    TensorArray TensorArrayClose TensorArrayCloseV2 TensorArrayCloseV3 TensorArrayConcat
    TensorArrayConcatV2 TensorArrayConcatV3 TensorArrayGather TensorArrayGatherV2
    TensorArrayGatherV3 TensorArrayGrad TensorArrayGradV2 TensorArrayGradV3
    TensorArrayGradWithShape TensorArrayPack TensorArrayRead TensorArrayReadV2
    TensorArrayReadV3 TensorArrayScatter TensorArrayScatterV2 TensorArrayScatterV3
    TensorArraySize TensorArraySizeV2 TensorArraySizeV3 TensorArraySplit TensorArraySplitV2
    TensorArraySplitV3 TensorArrayUnpack TensorArrayV2 TensorArrayV3 TensorArrayWrite
    TensorArrayWriteV2 TensorArrayWriteV3
    """,
    "keeps_nothing": """
    Assert Print PrintV2 RandomCrop RandomGamma RandomGammaGrad RandomIndexShuffle
    RandomPoisson RandomPoissonV2 RandomShuffle RandomStandardNormal RandomUniform
    RandomUniformInt TruncatedNormal
    """,
    "reads_variable": "ReadVariableOp Variable VariableV2",
    "only_checks": "Assert",
    "makes_new": """
    BatchMatMul BatchMatMulV2 BatchMatMulV3 Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D
    Conv3DBackpropFilterV2 Conv3DBackpropInputV2 DepthwiseConv2dNative
    DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput MatMul _FusedConv2D
    _FusedMatMul
    """,
    "calls_user_code": "PyFuncStateless",
    "stands_for_input": "MutexLock",
}
#: Ops with arguments of whole numbers, or of any types, that say how large results are; or that
#: do not, and are listed as ``BY_SHAPES``.
_SIZES: Final = {
    ResultSize.BY_SHAPES: """
    All Any ArgMax ArgMin Batch BatchMatrixBandPart BatchToSpace BatchToSpaceND BitwiseAnd
    BitwiseOr BitwiseXor BlockLSTM BlockLSTMGrad BlockLSTMGradV2 BlockLSTMV2 BroadcastArgs
    BroadcastGradientArgs CTCGreedyDecoder CTCLoss ComputeAccidentalHits Concat ConcatOffset
    ConcatV2 ConjugateTranspose Cumprod Cumsum CumulativeLogsumexp DataFormatDimMap
    DataFormatVecPermute DenseToSparseSetOperation DynamicPartition EncodeJpeg
    EncodeJpegVariableQuality EncodePng EncodeWav EuclideanNorm ExpandDims
    FractionalMaxPoolGrad Gather GatherNd GatherV2 IdentityN InTopK InTopKV2 Invert
    InvertPermutation KMC2ChainInitialization KmeansPlusPlusInitialization LeftShift
    MatrixBandPart MatrixSetDiagV2 MatrixSetDiagV3 Max MaxPoolGradGradV2 MaxPoolGradV2
    MaxPoolGradWithArgmax MaxPoolV2 Mean Mfcc Min NearestNeighbors NonMaxSuppression
    NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionWithOverlaps NthElement
    PopulationCount Prod PyFuncStateless QuantizeAndDequantizeV3 ReduceJoin Reshape
    ReverseSequence ReverseV2 RightShift Roll SerializeSparse ShardedFilename
    ShardedFilespec Slice Split SplitV StridedSlice StringFormat Substr Sum TensorScatterAdd
    TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate
    TensorStridedSliceUpdate TopKV2 Transpose Unbatch UnbatchGrad UnicodeEncode
    UnicodeScript UniformDequantize UniformQuantize UniformQuantizedAdd
    UniformQuantizedClipByValue UniformQuantizedDot UniformQuantizedDotHybrid
    UniformRequantize UniqueV2 UniqueWithCountsV2 UnravelIndex XlaDynamicSlice
    XlaDynamicUpdateSlice XlaOptimizationBarrier XlaSetBound XlaSetDynamicDimensionSize
    _LayerNorm _ListToArray _Moments _SliceAt
    """,
    ResultSize.BY_VALUES: """
    AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad Bincount BroadcastTo
    CombinedNonMaxSuppression Conv Conv2D Conv2DBackpropFilter Conv2DBackpropFilterV2
    Conv2DBackpropInput Conv2DBackpropInputV2 Conv3D Conv3DBackpropFilter
    Conv3DBackpropFilterV2 Conv3DBackpropInput Conv3DBackpropInputV2
    ConvertToListOfSparseCoreCooTensors ConvertToSparseCoreCsrWrappedCooTensor CropAndResize
    CropAndResizeGradBoxes CropAndResizeGradImage DenseBincount DepthwiseConv2dNative
    DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput EditDistance
    ExtractGlimpse ExtractGlimpseV2 Fill FractionalAvgPoolGrad FusedPadConv2D
    FusedResizeAndPadConv2D HistogramFixedWidth HistogramSummary IRFFT IRFFT2D IRFFT3D
    IRFFTND ImageProjectiveTransformV2 ImageProjectiveTransformV3 LinSpace MatrixDiag
    MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MirrorPad
    MirrorPadGrad NonMaxSuppressionV4 NonMaxSuppressionV5 OneHot Pad PadV2 QuantizedAdd
    QuantizedAvgPool QuantizedBatchNormWithGlobalNormalization QuantizedBiasAdd
    QuantizedConcat QuantizedConcatV2 QuantizedConv2D QuantizedConv2DAndRelu
    QuantizedConv2DAndReluAndRequantize QuantizedConv2DAndRequantize
    QuantizedConv2DPerChannel QuantizedConv2DWithBias QuantizedConv2DWithBiasAndRelu
    QuantizedConv2DWithBiasAndReluAndRequantize QuantizedConv2DWithBiasAndRequantize
    QuantizedConv2DWithBiasSignedSumAndReluAndRequantize QuantizedConv2DWithBiasSumAndRelu
    QuantizedConv2DWithBiasSumAndReluAndRequantize QuantizedDepthwiseConv2D
    QuantizedDepthwiseConv2DWithBias QuantizedDepthwiseConv2DWithBiasAndRelu
    QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize QuantizedInstanceNorm
    QuantizedMatMul QuantizedMatMulWithBias QuantizedMatMulWithBiasAndDequantize
    QuantizedMatMulWithBiasAndRelu QuantizedMatMulWithBiasAndReluAndRequantize
    QuantizedMatMulWithBiasAndRequantize QuantizedMaxPool QuantizedMul QuantizedRelu
    QuantizedRelu6 QuantizedReluX QuantizedReshape QuantizedResizeBilinear RFFT RFFT2D
    RFFT3D RFFTND ResizeArea ResizeBicubic ResizeBicubicGrad ResizeBilinear
    ResizeBilinearGrad ResizeNearestNeighbor ResizeNearestNeighborGrad ScaleAndTranslate
    ScaleAndTranslateGrad ScatterNd ScatterNdNonAliasingAdd SegmentMax SegmentMaxV2
    SegmentMean SegmentMin SegmentMinV2 SegmentProd SegmentProdV2 SegmentSum SegmentSumV2
    SerializeManySparse SetSize SobolSample SpaceToBatch SpaceToBatchND SparseAdd
    SparseAddGrad SparseBincount SparseConcat SparseCountSparseOutput SparseCross
    SparseCrossHashed SparseCrossV2 SparseDenseCwiseAdd SparseDenseCwiseDiv
    SparseDenseCwiseMul SparseFillEmptyRows SparseFillEmptyRowsGrad SparseMatMul
    SparseReduceMax SparseReduceMaxSparse SparseReduceSum SparseReduceSumSparse
    SparseReorder SparseReshape SparseSegmentMean SparseSegmentMeanGrad
    SparseSegmentMeanGradV2 SparseSegmentMeanWithNumSegments SparseSegmentSqrtN
    SparseSegmentSqrtNGrad SparseSegmentSqrtNGradV2 SparseSegmentSqrtNWithNumSegments
    SparseSegmentSum SparseSegmentSumGrad SparseSegmentSumGradV2
    SparseSegmentSumWithNumSegments SparseSlice SparseSliceGrad SparseSoftmax
    SparseSoftmaxCrossEntropyWithLogits SparseSparseMaximum SparseSparseMinimum SparseSplit
    SparseTensorDenseAdd SparseTensorDenseMatMul SparseToDense SparseToSparseSetOperation
    StridedSliceGrad StringNGrams Tile TileGrad UniformQuantizedConvolution
    UniformQuantizedConvolutionHybrid UnsortedSegmentJoin UnsortedSegmentMax
    UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum XlaBroadcastHelper XlaConv
    XlaConvV2 XlaGather XlaPad XlaRngBitGenerator _FusedConv2D
    _FusedConv3D
    """,
    ResultSize.SQUARED: """
    BatchMatrixDiag BatchMatrixDiagPart BatchSvd Diag DiagPart Einsum Qr SelfAdjointEig
    SelfAdjointEigV2 Svd
    """,
    ResultSize.RANGE: "Range",
    ResultSize.UNKNOWN: """
    DecodeAndCropJpeg DecodeBase64 DecodeBmp DecodeCSV DecodeCompressed DecodeGif
    DecodeImage DecodeJSONExample DecodeJpeg DecodeJxl DecodePaddedRaw DecodePng
    DecodeProtoV2 DecodeRaw DecodeWav DecodeWebP DynamicStitch ParallelDynamicStitch
    ParseExample ParseExampleV2 ParseSequenceExample ParseSequenceExampleV2
    ParseSingleExample ParseSingleSequenceExample ParseTensor RaggedBincount
    RaggedCountSparseOutput RaggedCross RaggedFillEmptyRows RaggedFillEmptyRowsGrad
    RaggedGather RaggedRange RaggedTensorToSparse RaggedTensorToTensor StatelessMultinomial
    StatelessParameterizedTruncatedNormal StatelessRandomBinomial StatelessRandomGammaV2
    StatelessRandomGammaV3 StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg
    StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomPoisson
    StatelessRandomUniform StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2
    StatelessRandomUniformInt StatelessRandomUniformIntV2 StatelessRandomUniformV2
    StatelessSampleDistortedBoundingBox StatelessShuffle StatelessTruncatedNormal
    StatelessTruncatedNormalV2
    _NativeLoop _NativeRegion _OnnxRegion
    """,
}
_NOTHING: Final = OpTraits()


def _by_op() -> dict[str, OpTraits]:
    """The traits of all ops that have any."""
    found: dict[str, dict[str, bool]] = {}
    for trait in fields(OpTraits):
        for op in _TABLES[trait.name].split():
            found.setdefault(op, {})[trait.name] = True
    return {op: OpTraits(**traits) for op, traits in found.items()}


_TRAITS: Final = _by_op()
_SIZE_OF: Final = {op: size for size, ops in _SIZES.items() for op in ops.split()}


def traits_of(op: str) -> OpTraits:
    """What is true of an op of TensorFlow."""
    return _TRAITS.get(op, _NOTHING)


def stated_size(op: str) -> ResultSize | None:
    """What says how large an op's results are; None if nobody said."""
    return _SIZE_OF.get(op)


def ops_with_traits() -> frozenset[str]:
    """All ops of which something is said here."""
    return frozenset(_TRAITS.keys() | _SIZE_OF.keys())
