"""Shapes of datasets, iterators, and what comes out of them.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  asks no dataset what it holds; attributes say it.
"""

from __future__ import annotations

from penstock.kernels.api.shape_rules import shape_signatures

shape_signatures({
    """
    AnonymousIterator AnonymousIteratorV3 AssertCardinalityDataset BatchDataset BatchDatasetV2
    CacheDataset CacheDatasetV2 ConcatenateDataset DummySeedGenerator
    ExperimentalMapAndBatchDataset ExperimentalMapDataset ExperimentalScanDataset
    ExperimentalTakeWhileDataset FilterDataset FinalizeDataset FlatMapDataset InterleaveDataset
    Iterator IteratorFromStringHandle IteratorFromStringHandleV2 IteratorGetNextAsOptional
    IteratorToStringHandle IteratorV2 MapAndBatchDataset MapDataset ModelDataset OneShotIterator
    OptimizeDataset OptimizeDatasetV2 OptionsDataset PaddedBatchDataset PaddedBatchDatasetV2
    ParallelBatchDataset ParallelFilterDataset ParallelInterleaveDatasetV2
    ParallelInterleaveDatasetV3 ParallelInterleaveDatasetV4 ParallelMapDataset ParallelMapDatasetV2
    PrefetchDataset RandomDataset RangeDataset RepeatDataset RewriteDataset ScanDataset
    ShardDataset ShuffleAndRepeatDataset ShuffleDataset ShuffleDatasetV2
    ShuffleDatasetV3 SkipDataset TakeDataset TakeWhileDataset TensorDataset TensorSliceDataset
    UnbatchDataset UniqueDataset WindowDataset ZipDataset
    """: "-> []",
    "SerializeIterator": "-> [?]",
    "AnonymousIteratorV2 AnonymousRandomSeedGenerator AnonymousSeedGenerator": "-> [], []",
    """
    DatasetToSingleElement IteratorGetNext IteratorGetNextSync ReduceDataset
    """: "-> @output_shapes",
})  # fmt: skip
