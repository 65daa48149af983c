"""ONNX's own node tests, run against the reference.

They were written by others, for other implementations, and cover masks,
causality, ranks and axes. Their outputs are rounded to float32, so the limit is
16 ε of float32, on float64 runs of the reference.
"""

import functools
import math
import warnings

import numpy as np
import pytest

from transformer_contract.config import PLAIN
from parity.numerics.comparator import MATCH, compare
from parity.numerics.dtypes import EPS
from reference_numpy.attention import MultiHeadAttention, softmax
from reference_numpy.dialects.feed_forward import gelu
from reference_numpy.layer_norm import LayerNorm
from reference_numpy.projection import log_softmax

LIMIT = 16 * EPS["float32"]

#: How many cases of each operator say something that the reference can say.
#: Left out are caches, grouped heads, windows, soft caps, 16-bit inputs, and
#: GELU by tanh.
EXPECTED = {"Attention": 36, "LayerNormalization": 19, "Softmax": 7,
            "LogSoftmax": 7, "Gelu": 2}

NOT_OURS = {"softcap": 0.0, "left_window_size": -1, "right_window_size": -1,
            "softmax_precision": 0}


@functools.cache
def cases():
    """Every node test of one node: {operator: {name: (node, attributes,
    inputs, outputs)}}."""
    onnx = pytest.importorskip("onnx", reason="not checked: no onnx here")
    from onnx.backend.test.case.node import collect_testcases
    found = {operator: {} for operator in EXPECTED}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected = collect_testcases(None)
    for case in collected:
        node = case.model.graph.node[0]
        if len(case.model.graph.node) > 1 or node.op_type not in EXPECTED:
            continue
        attributes = {a.name: onnx.helper.get_attribute_value(a)
                      for a in node.attribute}
        (inputs, outputs), = case.data_sets
        found[node.op_type][case.name] = (
            node, attributes,
            dict(zip(filter(None, node.input), inputs)),
            dict(zip(filter(None, node.output), outputs)))
    return found


def heads_of(array, count):
    """[B T H·K] to [B H T K]."""
    return array.reshape(*array.shape[:2], count, -1).swapaxes(1, 2)


def ours(operator, node, attributes, inputs):
    """Whether the reference can say what a case says."""
    if inputs.get("Q", inputs.get("X", inputs.get("x"))).dtype != np.float32:
        return False
    if operator == "Gelu":
        return "approximate" not in attributes
    if operator != "Attention":
        return True
    if any(attributes.get(name, none) != none
           for name, none in NOT_OURS.items()):
        return False
    if set(inputs) - {"Q", "K", "V", "attn_mask", "nonpad_kv_seqlen"}:
        return False
    if inputs["Q"].ndim == 3:
        return attributes["q_num_heads"] == attributes["kv_num_heads"]
    return inputs["Q"].shape[1] == inputs["K"].shape[1]


def wanted(operator):
    """The cases of an operator that the reference can say."""
    return {name: case for name, case in cases()[operator].items()
            if ours(operator, *case[:3])}


class BiasedAttention(MultiHeadAttention):
    """Equation 1 with another divisor, and a bias that is added to scores."""

    def __init__(self, divisor, bias):
        super().__init__(PLAIN.replace(d_model=2, n_heads=1))
        self.divisor, self.bias = divisor, bias

    def score(self, query, key, start, c):
        """As the paper's, plus the bias."""
        return super().score(query, key, start, c) + self.bias


def attention(attributes, inputs):
    """ONNX's Attention through the reference's.

    Its mask may be a number that is added to the scores.
    """
    q, k, v = (inputs[name].astype(np.float64) for name in "QKV")
    if q.ndim == 3:
        q, k, v = (heads_of(array, attributes["q_num_heads"])
                   for array in (q, k, v))
    *leading, t, width = q.shape
    s = k.shape[-2]
    mask, bias = np.ones((t, s), bool), np.zeros((t, s))
    given = inputs.get("attn_mask")
    if given is not None:  # keys beyond its end are masked
        blank = False if given.dtype == bool else -np.inf
        missing = [(0, 0)] * (given.ndim - 1) + [(0, s - given.shape[-1])]
        given = np.pad(given, missing, constant_values=blank)
        mask = given if given.dtype == bool else ~np.isneginf(given)
    if given is not None and given.dtype != bool:
        bias = np.where(mask, given, 0).astype(np.float64)
    at, ends = np.arange(s), np.full(leading[0], t)
    if (lengths := inputs.get("nonpad_kv_seqlen")) is not None:
        ends = lengths
        mask = mask & (at < lengths[:, None])[:, None, None, :]
    if attributes.get("is_causal"):  # the last query sees the last key
        last = np.arange(t) + (ends - t)[:, None]
        mask = mask & (at <= last[:, None, :, None])
    mask = np.broadcast_to(mask, (*leading, t, s))
    bias = np.broadcast_to(bias, (*leading, t, s))
    scale = attributes.get("scale", 1 / math.sqrt(width))
    c = {}
    context = BiasedAttention(1 / scale, bias).attend(q, k, v, mask, 0, c)
    if inputs["Q"].ndim == 3:
        context = context.swapaxes(1, 2).reshape(*inputs["Q"].shape[:2], -1)
    return {"Y": context, "qk_matmul_output": {
        0: c["scores"], 2: c["scores"], 3: c["weights"]}[
            attributes.get("qk_matmul_output_mode", 0)]}


def layer_normalization(attributes, inputs):
    """Over all axes from ``axis`` on, as one axis."""
    x, scale = inputs["X"].astype(np.float64), inputs["W"]
    norm = LayerNorm(scale.size, attributes.get("epsilon", 1e-5))
    norm.scale = scale.reshape(-1).astype(np.float64)
    norm.bias = inputs["B"].reshape(-1).astype(np.float64)
    y, c = norm.forward(x.reshape(1, -1, scale.size))
    kept = (*x.shape[:x.ndim - scale.ndim], *(1,) * scale.ndim)
    return {
        "Y": y.reshape(x.shape), "Mean": c["mean"].reshape(kept),
        "InvStdDev": (1 / np.sqrt(c["variance"] + norm.eps)).reshape(kept)}


def along_axis(function, attributes, inputs):
    axis, x = attributes.get("axis", -1), inputs["x"].astype(np.float64)
    return {"y": np.moveaxis(function(np.moveaxis(x, axis, -1)), -1, axis)}


RUN = {
    "Attention": attention,
    "LayerNormalization": layer_normalization,
    "Softmax": functools.partial(along_axis, softmax),
    "LogSoftmax": functools.partial(along_axis, log_softmax),
    "Gelu": lambda attributes, inputs: {
        "y": gelu(inputs["x"].astype(np.float64))},
}


@pytest.mark.long(8)
@pytest.mark.parametrize("operator", EXPECTED)
def test_node_tests(operator):
    """Every output of every case, and as many cases as there should be."""
    found = wanted(operator)
    for name, (_, attributes, inputs, outputs) in found.items():
        answers = RUN[operator](attributes, inputs)
        for output, expected in outputs.items():
            answer = answers[output]
            zero = None if expected.any() else 1.0
            difference = compare(
                answer, expected.astype(np.float64), LIMIT, zero_scale=zero)
            assert difference.verdict in (MATCH, "zero"), (
                name, output, difference)
    assert len(found) == EXPECTED[operator], sorted(found)


def test_a_wrong_answer_would_be_seen():
    """With another epsilon the norm's cases do not pass."""
    _, attributes, inputs, outputs = wanted("LayerNormalization")[
        "test_layer_normalization_default_axis"]
    answer = layer_normalization(attributes | {"epsilon": 1e-3}, inputs)["Y"]
    assert compare(answer, outputs["Y"].astype(np.float64),
                   LIMIT).verdict != MATCH
