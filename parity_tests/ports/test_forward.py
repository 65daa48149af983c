"""Conformance of the forward pass, number by number.

Every step of every component and of the whole model, of each port against the
reference, at the limits of parity/numerics/tolerances.py: the same check that
``parity check`` makes, and then the variants that no preset has.
"""

import dataclasses

import numpy as np
import pytest

from transformer_contract import weights
from transformer_contract.config import (
    CHOICES, PLAIN, PRESETS, TransformerConfig, at_test_size)
from transformer_contract.trace import attention_weights
from parity import ports
from parity.check import cases, golden, ledger
from parity.check.run import Check
from parity.numerics import tolerances
from parity.numerics.comparator import MATCH, compare

# keras: TensorFlow hands bfloat16 to NumPy in a way that NumPy 2 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")

#: How many numbers, arrays and masks are compared, so that none goes missing:
#: preset -> (in float64, in any other dtype), the canary included.
COMPARED = {
    "lesson": (345, 249),
    "components": (345, 249),
    "notebook": (335, 239),
    "complete": (335, 239),
    "practical": (335, 239),
    "vaswani2017_base": (335, 239),
    "vaswani2017_big": (335, 239),
}


def check(port, preset, dtype):
    """The report of the check of one port, preset and dtype."""
    job = Check([preset], [port.NAME], [dtype], full_size=False,
                gradients=False)
    for _ in job.groups():
        pass
    return job.report


def holds(report, preset, dtype):
    """Whether all was compared and all matched; shows what did not."""
    wrong = [(row.case, row.name, found)
             for row, _, found in report.divergences()]
    assert not wrong, wrong[:3]
    assert report.verdict == MATCH
    assert report.compared == report.expected == COMPARED[preset][
        dtype != "float64"]
    assert {row.dtype for row in report.rows[1:]} == {dtype}
    return True


@pytest.mark.long(16)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("preset", PRESETS)
def test_every_step_is_the_references(port, preset, dtype):
    """Alone and in a model, padded on both sides, and with no source."""
    report = check(port, preset, dtype)
    assert holds(report, preset, dtype)
    assert not list(ledger.problems(report.rows))  # nor worse than it was
    if dtype == "float64":
        limits = {row.limit for row in report.rows[1:]}
        assert limits == {0, tolerances.FLOAT64_LIMIT}  # 0: masks are equal


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("preset", ["lesson", "vaswani2017_base"])
def test_sixteen_bits_cost_what_they_must(port, preset, dtype):
    """No more than twice what rounding every operation once costs."""
    assert holds(check(port, preset, dtype), preset, dtype)


#: Choices that no preset makes, alone and together.
VARIANTS = {
    "halves": {"positions": "halves"},
    "gelu": {"activation": "gelu"},
    "gelu by tanh": {"activation": "gelu_tanh"},
    "silu": {"activation": "silu"},
    "gated": {"gated": True},
    "gated, silu, no biases": {
        "gated": True, "activation": "silu", "feed_forward_bias": False},
    "no feed-forward biases": {"feed_forward_bias": False},
    "RMS norm": {"norm": "rms"},
    "RMS norm, a final one, in float32": {
        "norm": "rms", "norm_rounding": "float32", "residual": "pre",
        "final_norm": True},
    "pre-norm, layer": {
        "residual": "pre", "final_norm": True, "final_norm_eps": 1e-3},
    "pre-norm, without final norm": {"residual": "pre", "norm": "std"},
    "post-norm, final norm": {"final_norm": True, "norm": "std"},
    "post-norm, scalar": {"norm": "scalar_std", "output": "log_probs"},
    "tied, halves, log-probabilities": {
        "tied": True, "positions": "halves", "output": "log_probs"},
    "one head, another padding": {"n_heads": 1, "pad_id": 7},
    "no attention biases, scores not divided": {
        "attention_bias": "none", "attention_scale": "none"},
    "no key bias, heads of their own width": {
        "attention_bias": "all_but_key", "d_head": 10},
    "halves, d/2 - 1, from 2, in float32": {
        "positions": "halves", "position_divisor": "half_less_one",
        "position_start": 2, "position_rounding": "float32"},
    "learned, embeddings not scaled": {
        "positions": "learned", "embedding_scale": "none",
        "source_max_length": 70},
    "learned from 2, normalised": {
        "positions": "learned", "position_start": 2, "embedding_norm": True,
        "padding_learns": False},
    "without positions": {"positions": "none", "embedding_norm": True},
    "halves that padding has not": {
        "positions": "halves", "position_padding": True, "pad_id": 5},
    "learned without padding": {
        "positions": "learned", "position_padding": True,
        "position_start": 1},
    "two heads share a key": {"n_kv_heads": 3},
    "all heads share a key": {"n_kv_heads": 1, "d_head": 10},
    "output tied, scaled, with a bias": {
        "tied": "output", "output_scale": "root", "output_bias": True},
    "embeddings tied, no bias, begun by zeros": {
        "tied": "embeddings", "output_bias": False, "begin": "zero"},
    "types of tokens": {"token_types": 3, "embedding_norm": True},
    "a head before a tied output": {
        "output_transform": True, "tied": "output", "output_bias": True},
    "softmax rounded to float32": {
        "softmax_rounding": "float32", "attention_bias": "none"},
    "rotary, in halves": {"positions": "rotary_halves"},
    "rotary, interleaved, base 50, shared heads": {
        "positions": "rotary_interleaved", "rotary_base": 50.0,
        "n_kv_heads": 3},
    "relative positions": {"positions": "relative"},
    "relative positions, few buckets": {
        "positions": "relative", "relative_buckets": 8,
        "relative_distance": 10},
    "everything": {
        "positions": "halves", "activation": "gelu", "residual": "pre",
        "final_norm": True, "tied": True, "output": "log_probs"},
}


def variant(name):
    """A config at test size with some choices changed."""
    changes = dict(VARIANTS[name])
    config = at_test_size(PLAIN.replace(tied=changes.pop("tied", "none")))
    return config.replace(**changes)


def test_every_choice_is_compared():
    """Each word of each field stands in a preset or in a variant."""
    made = [*PRESETS.values(), *map(variant, VARIANTS)]
    for field, words in CHOICES.items():
        # The loss has cases of its own, and models of one stack a file.
        if field not in ("smoothing", "stacks"):
            assert {getattr(config, field) for config in made} == set(words)
    assert {case.smoothing[1] for case in cases.component_cases(made[0])} == (
        set(CHOICES["smoothing"]))
    for field in dataclasses.fields(TransformerConfig):
        if field.type is bool:
            assert {getattr(config, field.name) for config in made} == {
                True, False}


@pytest.mark.long
@pytest.mark.parametrize("name", VARIANTS)
def test_variants(port, name):
    """Step by step in float64, against the reference."""
    config = variant(name)
    arrays = weights.probe_weights(config)
    batch = cases.padded_batch(config)
    truth, found = (
        engine.forward(engine.build("transformer", config, arrays), *batch)
        for engine in (ports.engine("numpy"), port))
    assert found.keys() == truth.keys()
    for step, value in found.items():
        difference = compare(value, truth[step], tolerances.FLOAT64_LIMIT)
        assert difference.verdict == MATCH, (step, difference)


def test_variants_differ():
    """Equal answers of two of them would mean that a choice is not read."""
    engine, answers = ports.engine("numpy"), set()
    for config in (at_test_size(PLAIN), *map(variant, VARIANTS)):
        model = engine.build(
            "transformer", config, weights.probe_weights(config))
        steps = engine.forward(model, *cases.padded_batch(config))
        answers.add(steps["output"].tobytes())
    assert len(answers) == 1 + len(VARIANTS)


def test_attention_rows_sum_to_one(engine):
    """Each row of weights is a mean's, or 0 where nothing may be seen (R15)."""
    config = cases.test_size("complete")
    batch = cases.padded_batch(config)
    model = engine.build("transformer", config, golden.shipped("complete"))
    found = attention_weights(engine.forward(model, *batch))
    layers = config.n_encoder_layers + 2 * config.n_decoder_layers
    assert len(found) == layers
    for name, value in found.items():
        own = name.startswith("decoder") and "self_attention" in name
        mask = batch.target_mask if own else batch.source_mask
        seen = np.broadcast_to(mask, value.shape).any(axis=-1)
        assert seen.any() and not seen.all()
        sums = value.sum(axis=-1)
        np.testing.assert_allclose(sums[seen], 1, rtol=0, atol=1e-14)
        assert not value[~seen].any()
