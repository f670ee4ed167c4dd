"""Models of layers that go through time, with masks and without."""

from __future__ import annotations

from typing import Any

from keras_models_src.book import Family, Given, branches, generation_of, only

FAMILIES: list[Family] = []


@branches(FAMILIES, x=(6, 3))
def recurrent(k: Any, x: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    made = []
    for kind in (L.LSTM, L.GRU, L.SimpleRNN):
        made += [
            kind(4)(x),
            kind(4, return_sequences=True)(x),
            kind(3, go_backwards=True, return_sequences=True)(x),
            kind(3, use_bias=False, activation="relu")(x),
            kind(2, unroll=True)(x),
            *kind(3, return_state=True)(x),
        ]
    made += [
        L.LSTM(3, recurrent_activation="hard_sigmoid", unit_forget_bias=False)(x),
        L.GRU(3, recurrent_activation="hard_sigmoid")(x),
        L.GRU(3, reset_after=False)(x),
        L.GRU(3, reset_after=False, use_bias=False)(x),
    ]
    return made


@branches(FAMILIES, x=Given((None, 3)), h=(4,), c=(4,))
def initial_states(k: Any, x: Any, h: Any, c: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    return [
        L.LSTM(4)(x, initial_state=[h, c]),
        L.GRU(4, return_sequences=True)(x, initial_state=h),
        L.SimpleRNN(4)(x, initial_state=[h]),
        L.Bidirectional(L.GRU(4))(x, initial_state=[h, c]),
        L.Bidirectional(L.LSTM(4, return_sequences=True))(x, initial_state=[h, c, c, h]),
    ]


@branches(FAMILIES, x=(6, 3))
def wrapped(k: Any, x: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    stack = lambda: L.StackedRNNCells([L.LSTMCell(3), L.GRUCell(4), L.SimpleRNNCell(2)])  # noqa: E731
    modes = ["concat", "sum", "ave", "mul"]
    made = [L.Bidirectional(L.LSTM(2), merge_mode=mode)(x) for mode in modes]
    made += [
        *L.Bidirectional(L.GRU(2, return_sequences=True), merge_mode=None)(x),
        L.Bidirectional(L.LSTM(2, return_sequences=True))(x),
        *L.Bidirectional(L.LSTM(2, return_state=True))(x),
        L.Bidirectional(L.GRU(2), backward_layer=L.LSTM(3, go_backwards=True))(x),
        L.RNN(L.LSTMCell(3))(x),
        L.RNN(stack(), return_sequences=True)(x),
        L.RNN([L.GRUCell(3), L.GRUCell(2)])(x),
        L.TimeDistributed(L.Dense(2))(x),
        L.TimeDistributed(L.Conv1D(2, 2))(L.Reshape((2, 3, 3))(x)),
        L.TimeDistributed(L.LSTM(3))(L.Reshape((2, 3, 3))(x)),
    ]
    return made


@branches(FAMILIES, x=Given((6,), below=9, lengths=(4, 6, 1)), y=Given((6, 3), lengths=(5, 2, 6)))
def masks(k: Any, x: Any, y: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    e = L.Embedding(9, 3, mask_zero=True)(x)
    m = L.Masking()(y)
    made = [L.Embedding(9, 4)(x), e, m]
    for kind in (L.LSTM, L.GRU, L.SimpleRNN):
        made += [
            kind(3)(e),
            kind(3, return_sequences=True)(m),
            kind(3, return_sequences=True, go_backwards=True)(e),
            *kind(2, return_state=True)(m),
            kind(2)(kind(3, return_sequences=True)(e)),
        ]
    both = L.Bidirectional(L.LSTM(2, return_sequences=True))(e)
    made += [
        both,
        L.Bidirectional(L.GRU(2))(m),
        L.Bidirectional(L.GRU(2))(both),
        L.Bidirectional(L.SimpleRNN(2), merge_mode="sum")(L.Dropout(0.2)(e)),
        L.GlobalAveragePooling1D()(e),
        L.GlobalAveragePooling1D()(L.TimeDistributed(L.Dense(2))(m)),
        L.LSTM(2)(L.Activation("tanh")(L.Dense(4)(L.LayerNormalization()(e)))),
        L.LSTM(2)(L.Add()([e, m])),
        L.LSTM(2)(L.Concatenate()([e, m])),
        L.LSTM(2)(L.Concatenate(axis=1)([e, m])),
        L.GRU(2)(L.RNN(L.GRUCell(3), return_sequences=True)(m)),
        L.LSTM(2)(y, mask=L.Embedding(9, 3, mask_zero=True).compute_mask(x))
        if generation_of(k) == 2
        else L.LSTM(2)(L.BatchNormalization()(m)),
    ]
    return made


@branches(FAMILIES, x=Given((4, 5, 5, 2)), y=Given((4, 6, 2)), z=Given((3, 4, 4, 3, 2)))
def convolutional_lstms(k: Any, x: Any, y: Any, z: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    return [
        L.ConvLSTM2D(2, 3)(x),
        L.ConvLSTM2D(3, 2, padding="same", return_sequences=True)(x),
        *L.ConvLSTM2D(2, (2, 3), strides=2, return_state=True, go_backwards=True)(x),
        L.ConvLSTM1D(3, 2, padding="same", return_sequences=True, use_bias=False)(y),
        L.ConvLSTM3D(2, 2)(z),
        L.Bidirectional(L.ConvLSTM2D(2, 2, padding="same"))(x),
    ]


@branches(FAMILIES, x=(4, 6), y=(5, 6), z=(5, 3), t=Given((4,), below=9, lengths=(3, 2)))
def attention(k: Any, x: Any, y: Any, z: Any, t: Any) -> list[Any]:
    L = k.layers  # noqa: N806

    def text() -> Any:
        # Keras 3 forgets the mask of what a MultiHeadAttention has taken, so none is shared.
        return L.Embedding(9, 6, mask_zero=True)(t)

    e = text()
    made = [
        L.Attention()([x, y]),
        L.Attention(use_scale=True)([x, z_like(L, z), y]),
        L.Attention(score_mode="concat", use_scale=True)([x, y]),
        L.AdditiveAttention()([x, y]),
        L.AdditiveAttention(use_scale=False)([x, z_like(L, z), y]),
        L.Attention()([e, e]),
        L.AdditiveAttention()([x, e]),
        L.LSTM(2)(L.Attention()([e, x])),
        L.MultiHeadAttention(2, 3)(x, y),
        L.MultiHeadAttention(2, 3, value_dim=4, use_bias=False)(x, z_like(L, z), y),
        L.MultiHeadAttention(2, 3, output_shape=5)(x, y),
        *L.MultiHeadAttention(2, 2)(x, x, return_attention_scores=True),
        L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True),
        L.MultiHeadAttention(2, 3)(*[text()] * 2),
        L.MultiHeadAttention(3, 2)(x, text()),
        L.GlobalAveragePooling1D()(L.MultiHeadAttention(2, 3)(text(), x)),
        L.Attention()([x, x], use_causal_mask=True),
    ]
    return made + only(
        k,
        3,
        lambda: [
            L.GroupQueryAttention(3, 4, 2)(x, y),
            L.GroupQueryAttention(3, 2, 1, use_bias=False)(x, x, use_causal_mask=True),
            L.GroupQueryAttention(3, 2, 2)(*[text()] * 2),
        ],
    )


def z_like(L: Any, z: Any) -> Any:  # noqa: N803
    """Values of the same steps in other numbers."""
    return L.Dense(6)(z)
