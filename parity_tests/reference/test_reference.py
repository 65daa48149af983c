"""The reference, checked by others than itself.

mpmath with 50 digits for scalar functions, long double for attention, formulas
written out a second time for what is put together from parts.
"""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_contract.config import CHOICES, PLAIN, PRESETS
from transformer_contract.sinusoids import halves_table, interleaved_table
from transformer_contract.weights import probe_weights, select
from parity.check import cases, golden
from reference_numpy import engine, parts
from reference_numpy.attention import (
    MultiHeadAttention, masked_softmax, softmax, softmax_backward)
from reference_numpy.dialects.attention import (
    DialectAttention, rounded_softmax, rounded_softmax_backward)
from reference_numpy.dialects.feed_forward import ACTIVATIONS, gelu
from reference_numpy.dialects.residual import PreNorm
from reference_numpy.embedding import TokenEmbedding
from reference_numpy.layer_norm import LayerNorm
from reference_numpy.linear import Linear
from reference_numpy.loss import cross_entropy
from reference_numpy.masks import causal_mask, padding_mask
from reference_numpy.positional import position_table
from reference_numpy.projection import log_softmax
from reference_numpy.residual import Residual

mpmath.mp.dps = 50
EPS = 2.0**-52


def exactly(row):
    return [mpmath.mpf(float(x)) for x in row]


def off(found, truth, scale=None):
    """The largest error of a row of floats, relative to each or to a scale."""
    return max(abs(float((mpmath.mpf(float(f)) - t) / (scale or t or 1)))
               for f, t in zip(found, truth))


ROWS = [[0.3, -1.2, 5.5, 2.0], [700.0, 710.0, 1.0, -50.0],
        [1e-8, 2e-8, 0.0, -1e-8], [-1e4, -1e4, -1e4 + 1, -1e4]]


@pytest.mark.parametrize("row", ROWS)
def test_softmax_against_mpmath(row):
    terms = [mpmath.exp(x) for x in exactly(row)]
    total = sum(terms)
    truth = [t / total for t in terms]
    assert off(softmax(np.array(row)), truth, scale=1) < 2 * EPS
    logs = [mpmath.log(t) for t in truth]
    largest = max(map(abs, logs))
    assert off(log_softmax(np.array(row)), logs, scale=largest) < 4 * EPS


@pytest.mark.parametrize("row", ROWS)
def test_masked_softmax_against_mpmath(row):
    """As if the masked keys were not there."""
    mask = np.array([True, False, True, True])
    terms = [mpmath.exp(x) if m else 0 for x, m in zip(exactly(row), mask)]
    truth = [t / sum(terms) for t in terms]
    found = masked_softmax(np.array(row), mask)
    assert found[1] == 0
    assert off(found, truth, scale=1) < 2 * EPS


def test_fully_masked_row():
    """Weights 0, context 0, and the output is the output's bias (R2)."""
    config = cases.test_size("complete")
    weights = cases.weights_of(
        cases.Case("", "multi_head_attention", (),
                   path="encoder.layers.0.self_attention"),
        golden.shipped("complete"))
    attention = engine.build("multi_head_attention", config, weights)
    x = cases.values("x", 2, 3, config.d_model)
    mask = np.ones((2, 1, 3, 3), bool)
    mask[1, 0, 2] = False
    y, c = attention.forward(x, x, mask, None)
    assert not c["weights"][1, :, 2].any() and not c["context"][1, :, 2].any()
    np.testing.assert_array_equal(y[1, 2], weights["output.bias"])
    assert np.allclose(c["weights"].sum(axis=-1)[0], 1, rtol=0, atol=4 * EPS)


def test_gelu_against_mpmath():
    """Every element, the left tail too, where 1 + erf would leave nothing."""
    x = np.concatenate([np.linspace(-37, 8, 181), [0.0, 1e-300, -1e-10]])
    truth = [v * mpmath.erfc(-v / mpmath.sqrt(2)) / 2 for v in exactly(x)]
    # erfc's argument is rounded: near -37 that is 37² units of rounding.
    assert off(gelu(x)[x > -5], [t for t, v in zip(truth, x) if v > -5]) < (
        40 * EPS)
    assert off(gelu(x), truth) < 2000 * EPS


ACTIVATIONS_BY_MPMATH = {
    "gelu_tanh": lambda x: x / 2 * (1 + mpmath.tanh(
        mpmath.sqrt(2 / mpmath.pi)
        * (x + mpmath.mpf(0.044715) * x**3))),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
}


@pytest.mark.parametrize("name, values", [
    ("gelu", (0.8413447460685429, -0.00404969409489031)),
    ("gelu_tanh", (0.8411919906082768, -0.0036373920817729943)),
    ("silu", (0.7310585786300049, -0.14227761953270035))])
def test_activations_at_1_and_minus_3(name, values):
    """Those that the field calls by these names (R17, R37)."""
    found = ACTIVATIONS[name](np.array([1.0, -3.0]))
    np.testing.assert_allclose(found, values, rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", ACTIVATIONS_BY_MPMATH)
def test_activations_against_mpmath(name):
    """Every element, the left tail too, and nothing overflows."""
    x = np.concatenate([np.linspace(-20, 20, 161), [0.0, 1e-300, -1e-10]])
    with mpmath.workdps(300):  # 1 + tanh needs them at -20
        truth = [*map(ACTIVATIONS_BY_MPMATH[name], exactly(x))]
    # The argument of exp is rounded: at -20 it is 600 with tanh's cube.
    assert off(ACTIVATIONS[name](x), truth) < 1000 * EPS
    assert off(ACTIVATIONS[name](x[(x > -3)]), [
        t for t, v in zip(truth, x) if v > -3]) < 10 * EPS
    far = np.array([-1e100, -1e4, 1e4, 1e100])
    np.testing.assert_array_equal(
        ACTIVATIONS[name](far), [0, 0, *far[2:]])


@pytest.mark.parametrize("bias", [True, False])
def test_gated_feed_forward(bias):
    """As Llama writes it: down(silu(gate(x)) · up(x))  (R38, R39)."""
    config = cases.test_size("practical").replace(
        gated=True, activation="silu", feed_forward_bias=bias)
    w = select(probe_weights(config), "encoder.layers.0.feed_forward.")
    assert [*w] == [f"{name}.{leaf}" for name in ("gate", "inner", "outer")
                    for leaf in ("kernel", "bias") if bias or leaf != "bias"]
    x = cases.values("x", 2, 3, config.d_model)

    def linear(x, name):
        return x @ w[f"{name}.kernel"] + w.get(f"{name}.bias", 0.0)
    gate, up = linear(x, "gate"), linear(x, "inner")
    truth = linear(gate / (1 + np.exp(-gate)) * up, "outer")
    found, _ = engine.build("feed_forward", config, w).forward(x)
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-13)


def norm_by_mpmath(kind, row, scale, bias, eps):
    row = exactly(row)
    rms = kind.startswith("rms")
    mean = 0 if rms else sum(row) / len(row)
    squares = sum((v - mean)**2 for v in row)
    eps = mpmath.mpf(eps)
    if kind == "rms_float32":
        squares = np.float32(float(squares / len(row))).item() * len(row)
    spread = (mpmath.sqrt(squares / len(row) + eps) if rms or kind == "layer"
              else mpmath.sqrt(squares / (len(row) - 1)) + eps)
    return [(v - mean) / spread * float(s) + float(b)
            for v, s, b in zip(row, scale, bias)]


@pytest.mark.parametrize("kind", parts.NORMS)
@pytest.mark.parametrize("deviation", [1, 1e-3])
@pytest.mark.parametrize("ratio", [0, 100])
def test_norms_against_mpmath(kind, deviation, ratio):
    d, eps = 48, 1e-6
    row = deviation * (cases.values("row", d) + ratio)
    norm = parts.part(parts.NORMS, kind)(d, eps)
    norm.scale = cases.values("scale", *norm.scale.shape)
    norm.bias = (cases.values("bias", *norm.scale.shape)
                 if hasattr(norm, "bias") else np.zeros(d))
    scale, bias = (np.broadcast_to(a, d) for a in (norm.scale, norm.bias))
    found, _ = norm.forward(row[None, None])
    truth = norm_by_mpmath(kind, row, scale, bias, eps)
    assert off(found[0, 0], truth, scale=1) < 10 * EPS * (1 + ratio)


@pytest.mark.parametrize("eps, first", [
    (1e-3, 0.1373606), (1e-5, 0.2731792), (1e-6, 0.2769244),
    (1e-12, 0.2773501)])
def test_what_epsilon_does_to_a_small_row(eps, first):
    """Such rows leave the first layers of trained models (R3)."""
    found, _ = LayerNorm(4, eps).forward(
        np.array([[[0.01, -0.02, 0.03, 0.0]]]))
    assert found[0, 0, 0] == pytest.approx(first, abs=5e-8)


def t5_norm(x, scale, eps):
    """T5's, word by word; all of ``variance`` is float32."""
    variance = np.square(x.astype(np.float32)).mean(-1, keepdims=True)
    return scale * (x * (1 / np.sqrt(variance + np.float32(eps))))


def llama_norm(x, scale, eps):
    """Llama's, word by word; all but the scale is float32."""
    x = x.astype(np.float32)
    variance = np.square(x).mean(-1, keepdims=True)
    return scale * (x * (1 / np.sqrt(variance + np.float32(eps)))).astype(
        np.float64)


@pytest.mark.parametrize("original", [t5_norm, llama_norm])
def test_rms_norms_of_others_round_to_float32(original):
    """In an order of their own: ours is as near as float32 can tell (R41)."""
    x, scale = cases.values("x", 50, 9, 48), cases.values("scale", 48)
    truth = original(x, scale, 1e-6)
    for name in "rms", "rms_float32":
        norm = parts.part(parts.NORMS, name)(48, 1e-6)
        norm.scale = scale
        gap = np.abs(norm.forward(x)[0] / truth - 1).max(axis=-1)
        assert np.median(gap) > 1e-9 and gap.max() < 4 * 2.0**-23


def test_the_three_norms_are_three_functions():
    """They differ by √((D - 1)/D) and by where ε stands."""
    x = cases.values("x", 2, 3, 6) * 1e-3
    layer, std = (parts.part(parts.NORMS, name)(6, 1e-6).forward(x)[0]
                  for name in ("layer", "std"))
    assert np.abs(layer - std).max() > 0.1


@pytest.mark.parametrize("position", [0, 1, 2, 257, 4097, 4999])
@pytest.mark.parametrize("layout", ["paper", "interleaved", "halves"])
def test_position_table_against_mpmath(position, layout):
    d = 48
    angles = [position / mpmath.mpf(10000)**(mpmath.mpf(2 * i) / d)
              for i in range(d // 2)]
    sines, cosines = ([f(a) for a in angles] for f in (mpmath.sin, mpmath.cos))
    truth = (sines + cosines if layout == "halves"
             else [v for pair in zip(sines, cosines) for v in pair])
    table = {"paper": position_table, "interleaved": interleaved_table,
             "halves": halves_table}[layout]
    assert off(table(5000, d)[position], truth, scale=1) < (
        2 * EPS * max(1, position))


def test_why_position_tables_are_not_computed_in_float32():
    d, position = 512, np.arange(5000, dtype=np.float32)
    divisor = np.float32(10000) ** (np.arange(0, d, 2, dtype=np.float32) / d)
    wrong = np.sin(position[:, None] / divisor)
    right = interleaved_table(5000, d)[:, ::2]
    assert 1e-4 < np.abs(wrong - right).max() < 1e-2


def test_embedding_is_scaled():
    module = TokenEmbedding(PLAIN.replace(d_model=6, n_heads=2), 5)
    module.table = cases.values("table", 5, 6)
    found, _ = module.forward(np.array([[3, 0, 3]]))
    truth = [v * mpmath.sqrt(6) for v in exactly(module.table[3])]
    assert off(found[0, 0], truth) < 2 * EPS
    np.testing.assert_array_equal(found[0, 0], found[0, 2])
    assert found[0, 1].any()  # padding has a row like any other


def smoothed(label, vocab, pad_id, epsilon, convention):
    """q, as the convention's words say it."""
    epsilon = mpmath.mpf(epsilon)
    if convention == "uniform":
        spread = {i: epsilon / vocab for i in range(vocab)}
        return {**spread, label: spread[label] + 1 - epsilon}
    to = [i for i in range(vocab) if i != label
          and not (convention == "kl" and i == pad_id)]
    return {**{i: mpmath.mpf(0) for i in range(vocab)},
            **{i: epsilon / len(to) for i in to}, label: 1 - epsilon}


def cross_entropy_by_mpmath(logits, labels, pad_id, epsilon, convention):
    losses = []
    for row, label in zip(logits.reshape(-1, logits.shape[-1]),
                          labels.reshape(-1)):
        if label == pad_id:
            continue
        row = exactly(row)
        total = mpmath.log(sum(mpmath.exp(v) for v in row))
        q = smoothed(label, len(row), pad_id, epsilon, convention)
        losses.append(-sum(q[i] * (v - total) for i, v in enumerate(row)))
        if convention == "kl":
            losses[-1] += sum(p * mpmath.log(p) for p in q.values() if p)
    return sum(losses) / len(losses)


conventions = pytest.mark.parametrize("convention", CHOICES["smoothing"])


@conventions
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_cross_entropy_against_mpmath(epsilon, convention):
    logits = 3 * cases.values("logits", 3, 4, 7)
    labels = np.array([[1, 2, 0, 0], [6, 6, 6, 0], [0, 3, 0, 5]])
    found = cross_entropy(logits, labels, 0, epsilon, convention)
    truth = cross_entropy_by_mpmath(logits, labels, 0, epsilon, convention)
    assert off([found], [truth]) < 8 * EPS


def test_smoothings_differ():
    """What they are told apart by: one loss each, of one prediction."""
    logits = cases.values("logits", 3, 4, 7)
    labels = np.array([[1, 2, 0, 0], [6, 6, 6, 0], [0, 3, 0, 5]])
    losses = [float(cross_entropy(logits, labels, 0, 0.1, convention))
              for convention in CHOICES["smoothing"]]
    assert len({round(loss, 3) for loss in losses}) == 3
    plain = [float(cross_entropy(logits, labels, 0, 0.0, convention))
             for convention in CHOICES["smoothing"]]
    assert np.ptp(plain) < 4 * EPS


@conventions
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_loss_of_padding_alone_is_zero(epsilon, convention):
    found = cross_entropy(np.ones((2, 3, 5)), np.zeros((2, 3), int), 0,
                          epsilon, convention)
    assert found == 0


@conventions
def test_loss_takes_log_probabilities_as_well(convention):
    logits = cases.values("logits", 2, 3, 7)
    labels = np.array([[1, 2, 3], [4, 0, 0]])
    assert np.isclose(
        cross_entropy(logits, labels, 0, 0.1, convention),
        cross_entropy(log_softmax(logits), labels, 0, 0.1, convention),
        rtol=8 * EPS, atol=0)


def test_rounded_softmax():
    """Of scores in float32, in float32; a gradient is rounded with it."""
    scores = cases.values("scores", 2, 3, 5, 7)
    mask = cases.values("mask", 2, 1, 5, 7) > -1
    weights = rounded_softmax(scores, mask)
    single = scores.astype(np.float32)
    e = np.where(mask, np.exp(single.astype(np.float64)), 0)
    truth = (e / e.sum(-1, keepdims=True)).astype(np.float32)
    assert weights.dtype == np.float64
    np.testing.assert_array_equal(weights, truth)
    dweights = cases.values("dweights", *scores.shape)
    found = rounded_softmax_backward(dweights, scores, mask)
    plain = softmax_backward(dweights, masked_softmax(scores, mask))
    assert 0 < np.abs(found - plain).max() < 1e-6
    np.testing.assert_array_equal(found, found.astype(np.float32))


def test_attention_in_long_double():
    q, k, v = (cases.values(name, 2, 3, 5, 8) for name in "qkv")
    mask = causal_mask(5)
    module = MultiHeadAttention(PLAIN.replace(d_model=24, n_heads=3))
    found = module.attend(q, k, v, mask, 0, {})
    q, k, v = (a.astype(np.longdouble) for a in (q, k, v))
    scores = np.einsum("bhtk,bhsk->bhts", q, k) / np.sqrt(np.longdouble(8))
    e = np.where(mask, np.exp(scores), 0)
    truth = np.einsum("bhts,bhsk->bhtk", e / e.sum(-1, keepdims=True), v)
    assert np.abs(found - truth).max() < 4 * EPS


@pytest.mark.parametrize("changes", [
    {}, {"d_head": 10}, {"n_kv_heads": 3}, {"n_kv_heads": 1},
    {"attention_bias": "all_but_key"},
    {"attention_bias": "none", "attention_scale": "none"}])
def test_heads_are_column_slices(changes):
    """Head h is one head on columns h·K to (h + 1)·K (R14, R42)."""
    config = cases.test_size("complete").replace(**changes)
    module = DialectAttention(config, "cross")
    for weight in engine.leaves(module):
        weight.set(cases.values(weight.name, *weight.get().shape))
    x, memory = (cases.values(n, 2, t, config.d_model)
                 for n, t in (("x", 4), ("m", 7)))
    mask = np.ones((2, 1, 1, 7), bool)
    y, c = module.forward(x, memory, mask, None)
    heads = []
    for h in range(config.n_heads):
        shared = h // (config.n_heads // config.kv_heads)
        q, k, v = (head(part, data, number, config.d_k)
                   for part, data, number in (
                       (module.query, x, h), (module.key, memory, shared),
                       (module.value, memory, shared)))
        divided = config.attention_scale == "root"
        weights = softmax(q @ k.mT / (config.d_k**0.5 if divided else 1))
        heads.append(weights @ v)
        np.testing.assert_allclose(
            c["weights"][:, h], weights, rtol=0, atol=1e-14)
    truth = np.concatenate(heads, -1) @ module.output.kernel
    np.testing.assert_allclose(
        y, truth + biases(module.output), rtol=0, atol=1e-12)


def head(part, data, number, d_k):
    """What one head makes of data by its columns of a kernel."""
    own = slice(number * d_k, (number + 1) * d_k)
    return data @ part.kernel[:, own] + biases(part)[own]


def biases(part):
    """A linear map's bias, or zeros where it has none."""
    return getattr(part, "bias", np.zeros(part.kernel.shape[1]))


def test_linear_is_a_sum_of_products():
    module = Linear(5, 3)
    module.kernel, module.bias = cases.values("w", 5, 3), cases.values("b", 3)
    x = cases.values("x", 2, 4, 5)
    truth = np.einsum("bti,io->bto", x, module.kernel) + module.bias
    np.testing.assert_allclose(module(x), truth, rtol=0, atol=8 * EPS)


@given(st.integers(1, 9))
def test_causal_mask(length):
    mask = causal_mask(length)
    assert mask.shape == (1, 1, length, length) and mask.dtype == bool
    for query in range(length):
        for key in range(length):
            assert mask[0, 0, query, key] == (key <= query)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_padding_mask(ids):
    mask = padding_mask(np.array([ids]), 0)
    assert mask.shape == (1, 1, 1, len(ids))
    assert mask[0, 0, 0].tolist() == [i != 0 for i in ids]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.booleans())
def test_decoder_mask(ids, begun):
    """The first token of a target is read, padding or not (R52)."""
    mask = parts.part(parts.DECODER_MASKS, begun)(np.array([ids]), 0)
    assert mask.shape == (1, 1, len(ids), len(ids)) and mask.dtype == bool
    for query in range(len(ids)):
        for key, token in enumerate(ids):
            assert mask[0, 0, query, key] == (
                key <= query and (token != 0 or begun and key == 0))


def test_halves_are_a_permutation_of_interleaved():
    pairs = interleaved_table(50, 8)
    np.testing.assert_array_equal(
        halves_table(50, 8), pairs[:, [0, 2, 4, 6, 1, 3, 5, 7]])


def test_residuals_written_out():
    config = cases.test_size("complete")
    x = cases.values("x", 2, 3, config.d_model)
    norm = parts.norm(config, config.norm_eps)

    def normed(x):
        return norm.forward(x)[0]

    pre = PreNorm(config)
    y, _ = pre.before(x)
    np.testing.assert_array_equal(pre.forward(x, y * y)[0], x + normed(x)**2)
    np.testing.assert_array_equal(
        Residual(config).forward(x, x * x)[0], normed(x + x * x))


def test_components_epsilon_erratum():
    """d_model for ε moves the output by far more than rounding (R19)."""
    config = cases.test_size("components")
    weights, batch = probe_weights(config), cases.padded_batch(config)
    right, wrong = (engine.forward(engine.build(
        "transformer", config.replace(norm_eps=eps), weights), *batch)["output"]
        for eps in (1e-6, config.d_model))
    assert np.linalg.norm(right - wrong) > 0.1 * np.linalg.norm(right)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("preset", PRESETS)
def test_no_step_changes_its_dtype(preset, dtype):
    """A stray np.sqrt(64) would turn float32 into float64."""
    config = cases.test_size(preset)
    weights = {name: array.astype(dtype)
               for name, array in golden.shipped(preset).items()}
    model = engine.build("transformer", config, weights, dtype)
    steps = engine.forward(model, *cases.padded_batch(config))
    assert {step.dtype.name for step in steps.values()} == {dtype}
