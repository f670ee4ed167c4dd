"""Write the files of records in tests/records/files.  Needs TensorFlow.

    python tools/make_records.py

``tests/support/record_values.py`` says what is in them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.record_values import CONTEXT, EXAMPLES, RECORDS, STEPS  # noqa: E402

FILES = ROOT / "tests" / "records" / "files"


def feature(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.hasobject:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=list(array)))
    if array.dtype.kind == "f":
        return tf.train.Feature(float_list=tf.train.FloatList(value=array))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=array))


def features(values: dict[str, Any]) -> Any:
    return tf.train.Features(feature={name: feature(value) for name, value in values.items()})


def main() -> None:
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir(parents=True)
    for method in ("", "GZIP", "ZLIB"):
        with tf.io.TFRecordWriter(str(FILES / f"records{method.lower()}"), method) as writer:
            for record in RECORDS:
                writer.write(record)
    with tf.io.TFRecordWriter(str(FILES / "examples")) as writer:
        for example in EXAMPLES:
            writer.write(tf.train.Example(features=features(example)).SerializeToString())
    lists = {
        name: tf.train.FeatureList(feature=[feature(value) for value in values])
        for name, values in STEPS.items()
    }
    sequence = tf.train.SequenceExample(
        context=features(CONTEXT), feature_lists=tf.train.FeatureLists(feature_list=lists)
    )
    (FILES / "sequence").write_bytes(sequence.SerializeToString())


if __name__ == "__main__":
    main()
