"""Shapes of random numbers.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  draws nothing.
"""

from __future__ import annotations

from penstock.kernels.api.shape_rules import shape_signatures

shape_signatures({
    "Multinomial": "[b,?], [] -> [b,#1]",
    "NonDeterministicInts RandomStandardNormal RandomUniform TruncatedNormal": "[?] -> :0",
    "ParameterizedTruncatedNormal": "[?], *, *, *, * -> :0",
    "RandomGamma RandomPoisson RandomPoissonV2": "[?], [...] -> [:0,...]",
    "RandomShuffle": "s -> s",
    "RandomUniformInt": "[?], [], [] -> :0",
    "RngReadAndSkip": "*, [], [] -> [3]",
    """
    StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt
    """: "*, [], [?] -> :2",
    "StatefulUniformInt": "*, [], [?], [], [] -> :2",
    "StatelessMultinomial": "[b,?], [], [2] -> [b,#1]",
    "StatelessParameterizedTruncatedNormal": "[?], [2], *, *, *, * -> :0",
    "StatelessRandomBinomial": "[?], [2], *, * -> :0",
    "StatelessRandomGammaV2 StatelessRandomPoisson": "[?], [2], * -> :0",
    "StatelessRandomGammaV3": "[?], *, *, *, * -> :0",
    "StatelessRandomGetAlg": "-> []",
    "StatelessRandomGetKeyCounter": "[2] -> [1], [2]",
    "StatelessRandomGetKeyCounterAlg": "[2] -> [1], [2], []",
    """
    StatelessRandomNormal StatelessRandomUniform StatelessRandomUniformFullInt
    StatelessTruncatedNormal
    """: "[?], [2] -> :0",
    """
    StatelessRandomNormalV2 StatelessRandomUniformFullIntV2 StatelessRandomUniformV2
    StatelessTruncatedNormalV2
    """: "[?], *, *, * -> :0",
    "StatelessRandomUniformInt": "[?], [2], [], [] -> :0",
    "StatelessRandomUniformIntV2": "[?], *, *, *, [], [] -> :0",
    "StatelessShuffle": "s, *, *, * -> s",
})  # fmt: skip
