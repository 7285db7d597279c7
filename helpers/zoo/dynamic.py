"""Networks whose shapes or whose course depend on the inputs, in Relay and again in numpy.

Each network is a :class:`Network`: its weights, its Relay function, and a reference in which TVM
has no part. The references follow the definitions, one step, one hypothesis at a time, not the
Relay programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from helpers.zoo.samples import PATTERNS, VOCABULARY
from helpers.zoo.weights import draw

Arrays = Mapping[str, np.ndarray]
Options = Mapping[str, Any]
Shapes = Mapping[str, tuple[int | str, ...]]

HEADS = 2
LONGEST = 512
"""Tokens that the encoder has a position for."""
FEATURES = 64
"""Numbers per step that the LSTM takes in."""
SURE = 0.9
"""The early-exit network leaves early when its first answer is more probable than this."""
WORDS, STATE = 200, 128
"""Tokens that the decoders know, and the size of their state and of each encoded position."""
END, START = 0, 1
"""The tokens that end and begin a decoded text."""
MOST_TOKENS = 40
"""A decoder stops after so many tokens."""
_CLEAR = 8.0
"""How far apart the scores of a pattern and of the others are, about."""
_NEVER = -1e9
"""A logarithm of a probability that no sum makes likely again."""


@dataclass(frozen=True)
class Network:
    """What the zoo needs of a network that is written here.

    ``weights(options)`` draws them by name. ``function(shapes, options, weights)`` is the Relay
    function; it gets the weights as Relay variables, which become its last parameters.
    ``reference(inputs, options, weights)`` computes the outputs in numpy. Inputs are float32,
    unless ``dtypes`` says otherwise.
    """

    weights: Callable[[Options], dict[str, np.ndarray]]
    function: Callable[[Shapes, Options, Mapping[str, Any]], Any]
    reference: Callable[[Arrays, Options, Arrays], list[np.ndarray]]
    dtypes: Mapping[str, str] = field(default_factory=dict)

    def variables(self, shapes: Shapes) -> dict[str, Any]:
        """The inputs as Relay variables; an axis given by its name is ``relay.Any()``."""
        from tvm import relay

        return {
            name: relay.var(
                name,
                shape=[relay.Any() if isinstance(n, str) else n for n in shape],
                dtype=self.dtypes.get(name, "float32"),
            )
            for name, shape in shapes.items()
        }

    def checked(self, inputs: Arrays, shapes: Shapes) -> Arrays:
        """``inputs``, or a ``ValueError``: numpy alone would broadcast what does not fit."""
        if inputs.keys() != shapes.keys():
            raise ValueError("other names")
        lengths: dict[str, int] = {}
        for name, shape in shapes.items():
            value = inputs[name]
            if value.dtype.name != self.dtypes.get(name, "float32") or value.ndim != len(shape):
                raise ValueError("another dtype or rank")
            for wanted, given in zip(shape, value.shape, strict=True):
                if isinstance(wanted, str):
                    wanted = lengths.setdefault(wanted, given)
                if wanted != given:
                    raise ValueError("another shape")
        return inputs


def _matrix(name: str, outputs: int, inputs: int) -> dict[str, np.ndarray]:
    return {name: draw(name, (outputs, inputs), ("Gemm", 1))}


def _layer(name: str, outputs: int, inputs: int) -> dict[str, np.ndarray]:
    bias = f"{name}_bias"
    return _matrix(f"{name}_weight", outputs, inputs) | {bias: draw(bias, (outputs,), ("Gemm", 2))}


def _dense(x: Any, name: str, w: Mapping[str, Any]) -> Any:
    from tvm import relay

    return relay.nn.bias_add(relay.nn.dense(x, w[f"{name}_weight"]), w[f"{name}_bias"])


def _linear(x: np.ndarray, name: str, w: Arrays) -> np.ndarray:
    return x @ w[f"{name}_weight"].T + w[f"{name}_bias"]


def _constant(value: Any, dtype: str = "float32") -> Any:
    from tvm import relay

    return relay.const(np.array(value, dtype), dtype)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.float32(1) / (np.float32(1) + np.exp(-x))


# --- transformer encoder -------------------------------------------------------------------------


def _encoder_weights(options: Options) -> dict[str, np.ndarray]:
    hidden = options["hidden"]
    w = {
        "tokens": draw("tokens", (VOCABULARY, hidden), ("Gather", 0)),
        "positions": draw("positions", (LONGEST, hidden), ("Gather", 0)),
    }
    for layer in range(options["layers"]):
        for part in ("query", "key", "value", "out"):
            w |= _layer(f"layer{layer}_{part}", hidden, hidden)
        w |= _layer(f"layer{layer}_wide", 4 * hidden, hidden)
        w |= _layer(f"layer{layer}_narrow", hidden, 4 * hidden)
        for norm in ("norm1", "norm2"):
            for position, part in ((1, "scale"), (2, "offset")):
                name = f"layer{layer}_{norm}_{part}"
                w[name] = draw(name, (hidden,), ("BatchNormalization", position))
    return w


def _encoder(shapes: Shapes, options: Options, w: Mapping[str, Any]) -> Any:
    """Layers of attention and two dense layers (Vaswani et al., 2017, arXiv:1706.03762).

    Positions are learned; each half of a layer is added to its input and normalised after it.
    """
    from tvm import relay

    hidden = options["hidden"]
    size = hidden // HEADS
    inputs = ENCODER.variables(shapes)
    ids = inputs["ids"]
    if isinstance(shapes["ids"][1], int):
        positions = relay.strided_slice(w["positions"], [0, 0], [shapes["ids"][1], hidden])
    else:
        length = relay.take(relay.shape_of(ids, "int64"), _constant(1, "int64"))
        numbers = relay.arange(_constant(0, "int64"), length, _constant(1, "int64"), dtype="int64")
        positions = relay.take(w["positions"], numbers, axis=0)
    x = relay.take(w["tokens"], ids, axis=0) + relay.expand_dims(positions, 0)
    x = relay.reshape(x, (-1, hidden))

    def heads(y: Any) -> Any:
        return relay.transpose(relay.reshape(y, (-1, HEADS, size)), (1, 0, 2))

    def norm(y: Any, name: str) -> Any:
        return relay.nn.layer_norm(y, w[f"{name}_scale"], w[f"{name}_offset"], epsilon=1e-5)

    for layer in range(options["layers"]):
        name = f"layer{layer}"
        query, key, value = (
            heads(_dense(x, f"{name}_{part}", w)) for part in ("query", "key", "value")
        )
        scores = relay.nn.batch_matmul(query, key) * _constant(size**-0.5)
        if options["masked"]:
            hide = (inputs["mask"] - _constant(1.0)) * _constant(-_NEVER)
            scores = scores + relay.expand_dims(hide, 1)
        seen = relay.nn.batch_matmul(relay.nn.softmax(scores), value, transpose_b=False)
        seen = relay.reshape(relay.transpose(seen, (1, 0, 2)), (-1, hidden))
        x = norm(x + _dense(seen, f"{name}_out", w), f"{name}_norm1")
        wide = relay.nn.relu(_dense(x, f"{name}_wide", w))
        x = norm(x + _dense(wide, f"{name}_narrow", w), f"{name}_norm2")
    return relay.Function([*inputs.values(), *w.values()], relay.expand_dims(x, 0))


def _encoder_reference(inputs: Arrays, options: Options, w: Arrays) -> list[np.ndarray]:
    ids = inputs["ids"][0]
    if len(ids) > LONGEST or ids.min() < 0 or ids.max() >= VOCABULARY:
        raise ValueError("tokens or positions that the model does not know")
    visible = inputs["mask"][0] if options["masked"] else np.ones(len(ids), np.float32)
    size = options["hidden"] // HEADS

    def norm(y: np.ndarray, name: str) -> np.ndarray:
        y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + np.float32(1e-5))
        return y * w[f"{name}_scale"] + w[f"{name}_offset"]

    x = w["tokens"][ids] + w["positions"][: len(ids)]
    for layer in range(options["layers"]):
        name = f"layer{layer}"
        query, key, value = (_linear(x, f"{name}_{p}", w) for p in ("query", "key", "value"))
        seen = np.empty_like(x)
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            scores = query[:, part] @ key[:, part].T / np.float32(np.sqrt(size))
            scores = np.where(visible > 0, scores, np.float32(_NEVER))
            seen[:, part] = _softmax(scores) @ value[:, part]
        x = norm(x + _linear(seen, f"{name}_out", w), f"{name}_norm1")
        wide = np.maximum(_linear(x, f"{name}_wide", w), 0)
        x = norm(x + _linear(wide, f"{name}_narrow", w), f"{name}_norm2")
    return [x[None]]


ENCODER = Network(_encoder_weights, _encoder, _encoder_reference, {"ids": "int64"})


# --- LSTM ----------------------------------------------------------------------------------------


def _lstm_weights(options: Options) -> dict[str, np.ndarray]:
    hidden = options["hidden"]
    return _layer("input", 4 * hidden, FEATURES) | _matrix("state_weight", 4 * hidden, hidden)


def _lstm_step(x: Any, h: Any, c: Any, w: Mapping[str, Any]) -> tuple[Any, Any]:
    from tvm import relay

    gates = _dense(x, "input", w) + relay.nn.dense(h, w["state_weight"])
    i, o, f, g = relay.split(gates, 4, axis=1)
    c = relay.sigmoid(f) * c + relay.sigmoid(i) * relay.tanh(g)
    return relay.sigmoid(o) * relay.tanh(c), c


def _lstm(shapes: Shapes, options: Options, w: Mapping[str, Any]) -> Any:
    """The last hidden state of an LSTM: a loop, or all steps one after another.

    Hochreiter and Schmidhuber (1997, doi:10.1162/neco.1997.9.8.1735), with a forget gate; the gates
    lie in ONNX's order: input, output, forget, cell.
    """
    from tvm import relay
    from tvm.relay.loops import while_loop

    inputs = LSTM.variables(shapes)
    sequence, hidden = inputs["x"], options["hidden"]
    zeros = _constant(np.zeros((1, hidden)))
    if isinstance(shapes["x"][0], int):
        h, c = zeros, zeros
        for step in range(shapes["x"][0]):
            h, c = _lstm_step(relay.take(sequence, _constant(step, "int32"), axis=0), h, c, w)
        return relay.Function([sequence, *w.values()], h)

    i, steps = (relay.var(name, shape=(), dtype="int32") for name in ("i", "steps"))
    h, c = (relay.var(name, shape=(1, hidden)) for name in "hc")

    def body(i: Any, h: Any, c: Any) -> list[Any]:
        return [i + _constant(1, "int32"), *_lstm_step(relay.take(sequence, i, axis=0), h, c, w)]

    loop = while_loop(lambda i, h, c: relay.less(i, steps), [i, h, c], body)
    last = relay.TupleGetItem(loop(_constant(0, "int32"), zeros, zeros), 1)
    # Bound outside of the loop, or each turn would compute it again.
    length = relay.take(relay.shape_of(sequence, "int32"), _constant(0, "int32"))
    return relay.Function([sequence, *w.values()], relay.Let(steps, length, last))


def _lstm_reference(inputs: Arrays, options: Options, w: Arrays) -> list[np.ndarray]:
    h = c = np.zeros((1, options["hidden"]), np.float32)
    for x in inputs["x"]:
        i, o, f, g = np.split(_linear(x, "input", w) + h @ w["state_weight"].T, 4, axis=1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
    return [h]


LSTM = Network(_lstm_weights, _lstm, _lstm_reference)


# --- early exit ----------------------------------------------------------------------------------


def _early_exit_weights(options: Options) -> dict[str, np.ndarray]:
    """Random layers, and two answers that name the nearest of the patterns.

    As in a linear discriminant: the score of class k for features h is a multiple of
    ``h @ h_k - h_k @ h_k / 2``, where h_k are the features of pattern k, all taken from their mean.
    """
    hidden = options["hidden"]
    w = _layer("first", hidden, PATTERNS.shape[1])
    x = np.maximum(_linear(PATTERNS, "first", w), 0)
    w |= _nearest("exit", x)
    for layer in range(options["layers"]):
        w |= _layer(f"layer{layer}", hidden, hidden)
        x = np.maximum(_linear(x, f"layer{layer}", w), 0)
    return w | _nearest("last", x)


def _nearest(name: str, features: np.ndarray) -> dict[str, np.ndarray]:
    mean = features.mean(axis=0)
    away = features - mean
    squares = (away**2).sum(axis=1)
    scale = np.float32(_CLEAR / squares.mean())
    return {f"{name}_weight": scale * away, f"{name}_bias": -scale * (away @ mean + squares / 2)}


def _early_exit(shapes: Shapes, options: Options, w: Mapping[str, Any]) -> Any:
    """A classifier that gives its first answer when it is sure of it, and else computes on.

    The idea of BranchyNet (Teerapittayanon et al., 2016, arXiv:1709.01686). With
    ``options["both"]`` it always computes both answers and chooses one: a static graph.
    """
    from tvm import relay

    inputs = EARLY_EXIT.variables(shapes)

    def answer(x: Any, name: str) -> Any:
        return relay.nn.softmax(_dense(x, name, w))

    x = relay.nn.relu(_dense(inputs["x"], "first", w))
    early = answer(x, "exit")
    sure = relay.greater(relay.max(early), _constant(SURE))
    for layer in range(options["layers"]):
        x = relay.nn.relu(_dense(x, f"layer{layer}", w))
    late = answer(x, "last")
    chosen = relay.where(sure, early, late) if options["both"] else relay.If(sure, early, late)
    return relay.Function([*inputs.values(), *w.values()], chosen)


def _early_exit_reference(inputs: Arrays, options: Options, w: Arrays) -> list[np.ndarray]:
    x = np.maximum(_linear(inputs["x"], "first", w), 0)
    early = _softmax(_linear(x, "exit", w))
    if early.max() > SURE:
        return [early]
    for layer in range(options["layers"]):
        x = np.maximum(_linear(x, f"layer{layer}", w), 0)
    return [_softmax(_linear(x, "last", w))]


EARLY_EXIT = Network(_early_exit_weights, _early_exit, _early_exit_reference)


# --- decoding: one recurrent step, and two searches ----------------------------------------------


def _decoder_weights(options: Options) -> dict[str, np.ndarray]:
    w = {"words": draw("words", (WORDS, STATE), ("Gather", 0)) * np.float32(10)}
    w |= _layer("input", 3 * STATE, STATE) | _layer("state", 3 * STATE, STATE)
    w |= _matrix("attention", STATE, STATE) | _layer("score", WORDS, 2 * STATE)
    w["score_bias"][END] = 1.5  # else a text of random weights would hardly ever end
    return w


def _decoder_step(tokens: Any, h: Any, states: Any, w: Mapping[str, Any]) -> tuple[Any, Any]:
    """(logits, new state) of one step for each row of ``tokens`` (rows,) and ``h`` (rows, STATE).

    A gated recurrent unit (Cho et al., 2014, arXiv:1406.1078) that attends to ``states``, the
    encoded source, by scalar products (Luong et al., 2015, arXiv:1508.04025).
    """
    from tvm import relay

    gx = _dense(relay.take(w["words"], tokens, axis=0), "input", w)
    gh = _dense(h, "state", w)
    (xr, xz, xn), (hr, hz, hn) = relay.split(gx, 3, axis=1), relay.split(gh, 3, axis=1)
    z = relay.sigmoid(xz + hz)
    new = relay.tanh(xn + relay.sigmoid(xr + hr) * hn)
    h = (_constant(1.0) - z) * new + z * h
    source = relay.expand_dims(states, 0)
    query = relay.expand_dims(relay.nn.dense(h, w["attention"]), 0)
    weights = relay.nn.softmax(relay.nn.batch_matmul(query, source))
    context = relay.squeeze(relay.nn.batch_matmul(weights, source, transpose_b=False), axis=[0])
    return _dense(relay.concatenate([h, context], axis=1), "score", w), h


def _reference_step(
    token: int, h: np.ndarray, states: np.ndarray, w: Arrays
) -> tuple[np.ndarray, np.ndarray]:
    """The same step for one hypothesis: ``h`` is a vector, and so are the logits."""
    xr, xz, xn = np.split(_linear(w["words"][token], "input", w), 3)
    hr, hz, hn = np.split(_linear(h, "state", w), 3)
    z = _sigmoid(xz + hz)
    h = (1 - z) * np.tanh(xn + _sigmoid(xr + hr) * hn) + z * h
    context = _softmax(states @ (w["attention"] @ h)) @ states
    return _linear(np.concatenate([h, context]), "score", w), h


def _written_at(texts: Any, place: Any, tokens: Any) -> Any:
    """``texts`` (..., MOST_TOKENS + 1) with ``tokens`` in the column ``place``."""
    from tvm import relay

    columns = _constant(np.arange(MOST_TOKENS + 1), "int32")
    return relay.where(relay.equal(columns, place), tokens, texts)


def _greedy(shapes: Shapes, options: Options, w: Mapping[str, Any]) -> Any:
    """The most probable token at each step, until it is the end: (tokens of the text,)."""
    from tvm import relay
    from tvm.relay.loops import while_loop

    states = GREEDY.variables(shapes)["states"]
    one = _constant(1, "int32")
    i = relay.var("i", shape=(), dtype="int32")
    token = relay.var("token", shape=(1,), dtype="int32")
    h = relay.var("h", shape=(1, STATE))
    text = relay.var("text", shape=(MOST_TOKENS + 1,), dtype="int32")

    def unfinished(i: Any, token: Any, h: Any, text: Any) -> Any:
        running = relay.not_equal(relay.squeeze(token), _constant(END, "int32"))
        return relay.logical_and(relay.less(i, _constant(MOST_TOKENS, "int32")), running)

    def body(i: Any, token: Any, h: Any, text: Any) -> list[Any]:
        logits, h = _decoder_step(token, h, states, w)
        token = relay.cast(relay.argmax(logits, axis=1), "int32")
        return [i + one, token, h, _written_at(text, i + one, token)]

    loop = while_loop(unfinished, [i, token, h, text], body)
    start = _constant([START], "int32")
    begin = _constant([START] + [END] * MOST_TOKENS, "int32")
    end = loop(_constant(0, "int32"), start, _constant(np.zeros((1, STATE))), begin)
    length = relay.reshape(relay.TupleGetItem(end, 0) + _constant(1, "int32"), (1,))
    text = relay.strided_slice(relay.TupleGetItem(end, 3), [0], length, [1])
    return relay.Function([states, *w.values()], text)


def _greedy_reference(inputs: Arrays, options: Options, w: Arrays) -> list[np.ndarray]:
    text, h = [START], np.zeros(STATE, np.float32)
    while len(text) <= MOST_TOKENS and text[-1] != END:
        logits, h = _reference_step(text[-1], h, inputs["states"], w)
        text.append(int(logits.argmax()))
    return [np.array(text, np.int32)]


GREEDY = Network(_decoder_weights, _greedy, _greedy_reference)


def _beam(shapes: Shapes, options: Options, w: Mapping[str, Any]) -> Any:
    """The most probable texts, ``options["beams"]`` of them kept at each step.

    Gives the tokens (beams, MOST_TOKENS + 1), best text first and filled up with the end, and the
    logarithm of each text's probability (beams,).
    """
    from tvm import relay
    from tvm.relay.loops import while_loop

    beams = options["beams"]
    states = BEAM.variables(shapes)["states"]
    i = relay.var("i", shape=(), dtype="int32")
    tokens = relay.var("tokens", shape=(beams,), dtype="int32")
    h = relay.var("h", shape=(beams, STATE))
    scores = relay.var("scores", shape=(beams,))
    texts = relay.var("texts", shape=(beams, MOST_TOKENS + 1), dtype="int32")
    ended = np.full((1, WORDS), _NEVER)
    ended[0, END] = 0  # a finished text goes on with the end, at no cost
    one = _constant(1, "int32")

    def unfinished(i: Any, tokens: Any, h: Any, scores: Any, texts: Any) -> Any:
        running = relay.greater(relay.max(tokens), _constant(END, "int32"))
        return relay.logical_and(relay.less(i, _constant(MOST_TOKENS, "int32")), running)

    def body(i: Any, tokens: Any, h: Any, scores: Any, texts: Any) -> list[Any]:
        logits, h = _decoder_step(tokens, h, states, w)
        finished = relay.expand_dims(relay.equal(tokens, _constant(END, "int32")), 1)
        steps = relay.where(finished, _constant(ended), relay.nn.log_softmax(logits))
        totals = relay.reshape(relay.expand_dims(scores, 1) + steps, (-1,))
        scores, best = relay.topk(totals, k=beams, ret_type="both", dtype="int32")
        row = relay.floor_divide(best, _constant(WORDS, "int32"))
        tokens = relay.floor_mod(best, _constant(WORDS, "int32"))
        texts = _written_at(relay.take(texts, row, axis=0), i + one, relay.expand_dims(tokens, 1))
        return [i + one, tokens, relay.take(h, row, axis=0), scores, texts]

    begin = np.full((beams, MOST_TOKENS + 1), END)
    begin[:, 0] = START
    loop = while_loop(unfinished, [i, tokens, h, scores, texts], body)
    end = loop(
        _constant(0, "int32"),
        _constant([START] * beams, "int32"),
        _constant(np.zeros((beams, STATE))),
        _constant([0.0] + [_NEVER] * (beams - 1)),  # all rows begin alike: only the first counts
        _constant(begin, "int32"),
    )
    result = relay.Tuple([relay.TupleGetItem(end, 4), relay.TupleGetItem(end, 3)])
    return relay.Function([states, *w.values()], result)


def _beam_reference(inputs: Arrays, options: Options, w: Arrays) -> list[np.ndarray]:
    kept = [(np.float32(0), [START], np.zeros(STATE, np.float32))]
    for _ in range(MOST_TOKENS):
        if all(text[-1] == END for _, text, _ in kept):
            break
        found = []
        for score, text, h in kept:
            if text[-1] == END:
                found.append((score, text, h))
                continue
            logits, h = _reference_step(text[-1], h, inputs["states"], w)
            steps = np.log(_softmax(logits))
            found += [(score + steps[t], [*text, t], h) for t in range(WORDS)]
        kept = sorted(found, key=lambda entry: -entry[0])[: options["beams"]]
    texts = np.full((len(kept), MOST_TOKENS + 1), END, np.int32)
    for row, (_, text, _) in zip(texts, kept, strict=True):
        row[: len(text)] = text
    return [texts, np.array([score for score, _, _ in kept], np.float32)]


BEAM = Network(_decoder_weights, _beam, _beam_reference)
