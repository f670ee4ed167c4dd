"""Random ops: bit for bit with a seed; without one, shape, type and mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import (
    bf16,
    f16,
    f32,
    f64,
    graph,
    i32,
    i64,
    op,
    u32,
    u64,
)

_SEEDS = {"seed": 7, "seed2": 11}
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_ALG = {"key": u64([3]), "counter": u64([5, 9]), "alg": i32(1)}
_EXACT = {"tol": (1e-6, 1e-7)}


def mean(tf: Any, name: str, low: float, high: float, **args: Any) -> Any:
    """Whether the mean of many unseeded numbers lies where it must, and their shape and type."""
    values = getattr(tf.raw_ops, name)(**args)
    average = tf.raw_ops.Mean(
        input=tf.raw_ops.Cast(x=values, DstT="float64"), axis=list(range(values.shape.rank))
    )
    inside = tf.raw_ops.LogicalAnd(
        x=tf.raw_ops.Less(x=np.float64(low), y=average),
        y=tf.raw_ops.Less(x=average, y=np.float64(high)),
    )
    return [tf.raw_ops.Shape(input=values), inside, tf.raw_ops.Size(input=values)]


def unseeded(tf: Any, name: str) -> Any:
    """Numbers without a seed."""
    shape = i32([50, 40])
    match name:
        case "RandomUniform":
            return mean(tf, name, 0.4, 0.6, shape=shape, dtype="float32")
        case "RandomStandardNormal" | "TruncatedNormal":
            return mean(tf, name, -0.2, 0.2, shape=shape, dtype="float32")
        case "RandomUniformInt":
            return mean(tf, name, 7, 12, shape=shape, minval=i32(0), maxval=i32(20))
        case "RandomGamma":
            return mean(tf, name, 2.7, 3.3, shape=shape, alpha=f32(3))
        case "RandomPoissonV2":
            return mean(tf, name, 3.7, 4.3, shape=shape, rate=f32(4), dtype="int64")
        case "Multinomial":
            logits = f32([[0, 0], [0, 50.0]])
            return mean(tf, name, 0.6, 0.9, logits=logits, num_samples=i32(500))
        case _:
            return mean(tf, name, 9.4, 9.6, value=np.arange(20, dtype=np.float32))


def key_of_seed(tf: Any) -> Any:
    """A seed's key and counter; the algorithm is the device's choice."""
    made = tf.raw_ops.StatelessRandomGetKeyCounterAlg(seed=i64([3, 4]))
    return [made.key, made.counter, made.alg]


CASES = [
    *(op("RandomUniform", shape=i32([3, 5]), dtype=d, runs=2, **_SEEDS) for d in _FLOATS),
    op("RandomUniform", shape=i64([]), dtype="float32", **_SEEDS),
    op("RandomUniform", shape=i64([2, 0, 3]), dtype="float32", **_SEEDS),
    op(
        "RandomUniform",
        shape=i32([2, -1]),
        dtype="float32",
        says="Dimension -1 must be >= 0",
        **_SEEDS,
    ),
    *(op("RandomStandardNormal", shape=i32([7]), dtype=d, runs=2, **_SEEDS) for d in _FLOATS),
    op("RandomStandardNormal", shape=i32([0]), dtype="float32", **_SEEDS),
    *(op("TruncatedNormal", shape=i32([9]), dtype=d, runs=2, **_SEEDS) for d in _FLOATS),
    *(
        op("RandomUniformInt", shape=i32([11]), minval=t(low), maxval=t(high), runs=2, **_SEEDS)
        for t in (i32, i64)
        for low, high in [(0, 10), (-5, 6), (-(2**31), 2**31 - 1)]
    ),
    op(
        "RandomUniformInt",
        shape=i32([2]),
        minval=i32(3),
        maxval=i32(3),
        says="Need minval < maxval",
        **_SEEDS,
    ),
    op("RandomUniformInt", shape=i32([0]), minval=i32(3), maxval=i32(3), **_SEEDS),
    *(op("RandomShuffle", value=v, runs=2, **_SEEDS) for v in (i32(range(9)), f32(range(4)))),
    op("RandomShuffle", value=i32(np.arange(12).reshape(4, 3)), **_SEEDS),
    op("RandomShuffle", value=f32([]), **_SEEDS),
    op("RandomShuffle", value=f32(3), **_SEEDS),
    *(
        op("Multinomial", logits=t([[0.1, 2, -1], [3, 0, 0]]), num_samples=i32(6), runs=2, **_SEEDS)
        for t in (f32, f64, f16, bf16)
    ),
    op("Multinomial", logits=f32([[1, 2.0]]), num_samples=i32(4), output_dtype="int32", **_SEEDS),
    op("Multinomial", logits=f32([[1, 2.0]]), num_samples=i32(0), **_SEEDS),
    op("Multinomial", logits=f32([1, 2.0]), num_samples=i32(1), says="logits", **_SEEDS),
    op("Multinomial", logits=f32([[1.0]]), num_samples=i32(-1), says="num_samples", **_SEEDS),
    *(op("RandomGamma", shape=i32([4]), alpha=t([0.5, 2.0]), **_SEEDS) for t in (f32, f64, f16)),
    *(
        op("RandomPoissonV2", shape=i32([5]), rate=t([0.5, 20.0]), dtype="int64", runs=2, **_SEEDS)
        for t in (f32, f64)
    ),
    op("RandomPoissonV2", shape=i32([3]), rate=i32([4]), dtype="float32", **_SEEDS),
    op("RandomPoisson", shape=i32([4]), rate=f32([3.0]), producer=20, **_SEEDS),
    *(
        graph(unseeded, name)
        for name in (
            "RandomUniform",
            "RandomStandardNormal",
            "TruncatedNormal",
            "RandomUniformInt",
            "RandomGamma",
            "RandomPoissonV2",
            "Multinomial",
            "RandomShuffle",
        )
    ),
    op("StatelessRandomGetAlg"),
    graph(key_of_seed),
    *(op("StatelessRandomNormalV2", shape=i32([7]), dtype=d, **_ALG) for d in _FLOATS),
    *(op("StatelessRandomUniformV2", shape=i32([7]), dtype=d, **_ALG) for d in _FLOATS),
    *(op("StatelessTruncatedNormalV2", shape=i32([7]), dtype=d, **_ALG) for d in _FLOATS),
    *(
        op("StatelessRandomUniformFullIntV2", shape=i64([9]), dtype=d, **_ALG)
        for d in ("int32", "int64", "uint32", "uint64")
    ),
    *(
        op(
            "StatelessRandomUniformIntV2",
            shape=i32([9]),
            minval=t(2),
            maxval=t(90),
            **_ALG,
            says=says,
        )
        for t, says in [(i32, ""), (i64, ""), (u32, "No OpKernel"), (u64, "No OpKernel")]
    ),
    op(
        "StatelessRandomNormalV2",
        shape=i32([3]),
        dtype="float32",
        key=u64([3, 4]),
        counter=u64([5, 9]),
        alg=i32(1),
        says="key",
    ),
    op("StatelessRandomGammaV2", shape=i32([3, 2]), seed=i64([1, 2]), alpha=f32([0.4, 3])),
    op("StatelessRandomGammaV3", shape=i32([3, 2]), alpha=f32([0.4, 3]), **_ALG),
    op("StatelessShuffle", value=i32(range(9)), **_ALG),
    op("RandomGammaGrad", alpha=f32([0.5, 1, 30]), sample=f32([0.1, 2, 28]), tol=(1e-4, 1e-5)),
    op("RandomGammaGrad", alpha=f64([0.5, 1, 30]), sample=f64(1.5), tol=(1e-3, 1e-4)),
]
