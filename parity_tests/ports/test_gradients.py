"""Gradients: the hand-written ones by finite differences, the ports' by them.

A dot-product test takes one random direction u through everything at once: the
slope of the loss along u must be the sum of gradient times u. Three directions
leave no single derivative unseen.
"""

import ast
import functools

import numpy as np
import pytest

from transformer_contract import components
from transformer_contract.batch import Batch
from transformer_contract.config import CHOICES, PRESETS
from transformer_contract.steps import assigned, read_steps
from transformer_contract.weights import probe_weights
from parity.check import cases, golden
from parity.check.run import Check
from parity.numerics.comparator import MATCH, relative_error
from parity_tests.support.places import READ_SIDE_BY_SIDE, REFERENCE
from reference_numpy import engine as reference
from reference_numpy import parts
from reference_numpy.loss import cross_entropy, cross_entropy_backward

VARIANTS = {
    **{name: (name, {}) for name in PRESETS},
    "halves and gelu": ("complete", {"positions": "halves",
                                     "activation": "gelu"}),
    "gelu by tanh": ("practical", {"activation": "gelu_tanh"}),
    "silu": ("practical", {"activation": "silu"}),
    "gated": ("practical", {"gated": True, "activation": "silu"}),
    "gated, no biases": ("lesson", {
        "gated": True, "feed_forward_bias": False}),
    "no feed-forward biases": ("practical", {"feed_forward_bias": False}),
    "pre-norm with RMS norm": ("lesson", {"norm": "rms"}),
    "post-norm with RMS norm": ("practical", {"norm": "rms"}),
    "pre-norm with layer norm": ("practical", {
        "residual": "pre", "final_norm": True, "final_norm_eps": 1e-3}),
    "KL from log-probabilities": ("lesson", {
        "label_smoothing": 0.1, "smoothing": "kl"}),
    "no attention biases, scores not divided": ("practical", {
        "attention_bias": "none", "attention_scale": "none"}),
    "no key bias, heads of their own width": ("complete", {
        "attention_bias": "all_but_key", "d_head": 10}),
    "two heads share a key": ("practical", {"n_kv_heads": 3}),
    "all heads share a key": ("lesson", {"n_kv_heads": 1, "d_head": 10}),
    "rotary, in halves": ("practical", {"positions": "rotary_halves"}),
    "rotary, interleaved, shared heads": ("complete", {
        "positions": "rotary_interleaved", "n_kv_heads": 3}),
    "relative positions": ("practical", {
        "positions": "relative", "relative_buckets": 8,
        "relative_distance": 10}),
    "smoothing over others": ("practical", {
        "label_smoothing": 0.2, "smoothing": "others"}),
    "learned from 2, normalised": ("practical", {
        "positions": "learned", "position_start": 2, "embedding_norm": True,
        "embedding_scale": "none"}),
    "learned without padding": ("complete", {
        "positions": "learned", "position_padding": True}),
    "sinusoids without padding, normalised": ("complete", {
        "position_padding": True, "embedding_norm": True}),
    "output tied, scaled, with a bias": ("complete", {
        "tied": "output", "output_scale": "root", "output_bias": True}),
    "a head before a scaled output": ("practical", {
        "output_transform": True, "output_scale": "root",
        "activation": "gelu"}),
    "begun by zeros, types of tokens": ("practical", {
        "begin": "zero", "token_types": 3, "output_bias": False}),
    "tied log-probabilities": ("vaswani2017_base", {"output": "log_probs"}),
}


def configured(variant):
    preset, changes = VARIANTS[variant]
    return cases.test_size(preset).replace(**changes)


def slope(function, step):
    """f'(0) by central differences of fourth order: error ~ step⁴."""
    near = function(step) - function(-step)
    far = function(2 * step) - function(-2 * step)
    return (8 * near - far) / (12 * step)


@pytest.mark.long(24)
@pytest.mark.parametrize("variant", VARIANTS)
def test_loss_along_random_directions(variant):
    config = configured(variant)
    weights, batch = probe_weights(config), cases.padded_batch(config)
    labels = np.roll(batch.target, -1, axis=1)
    model = reference.build("transformer", config, weights)
    _, g = reference.gradients(model, *batch, labels)
    for direction in range(3):
        u = {name: cases.values(f"{direction} {name}", *array.shape)
             for name, array in weights.items()}

        def loss(t):
            moved = {name: array + t * u[name]
                     for name, array in weights.items()}
            output, _ = reference.build(
                "transformer", config, moved).forward(*batch)
            return float(cross_entropy(
                output, labels, config.pad_id, config.label_smoothing,
                config.smoothing))
        expected = sum(float((g[name] * u[name]).sum()) for name in u)
        # A shorter step would show the losses' rounding; a much longer one
        # would cross the kinks of some ReLUs.
        assert slope(loss, 8e-8) == pytest.approx(expected, rel=1e-6)


def case_of(component, config):
    """A component, its inputs, and which of them have gradients."""
    x = cases.values("gx", 3, 5, config.d_model)
    memory = cases.values("gm", 3, 7, config.d_model)
    mask = np.ones((3, 1, 5, 7), bool)
    mask[0, :, :, 4:] = mask[1, :, 2] = False
    make, arguments = components.component(
        "reference_numpy", component, config)
    build = make(*arguments)
    for weight in reference.leaves(build):
        weight.set(cases.values(f"w {weight.name}", *weight.get().shape) + 0.1)
    return build, x, memory, mask


def test_what_is_rounded_passes_its_gradient_on():
    """As if it were not rounded, to float32's rounding (R41)."""
    x = cases.values("x", 2, 4, 6)
    dy = cases.values("dy", *x.shape)
    plain, rounded = (parts.part(parts.NORMS, name)(6, 1e-6)
                      for name in ("rms", "rms_float32"))
    (_, one), (_, other) = plain.forward(x), rounded.forward(x)
    assert 1e-9 < relative_error(
        other["mean_square"], one["mean_square"])[0] < 6e-8
    assert 1e-9 < relative_error(rounded.backward(dy, other)[0],
                                 plain.backward(dy, one)[0])[0] < 2e-7


@pytest.mark.parametrize("norm", [
    name for name in parts.NORMS if name != "rms_float32"])  # it has steps
def test_norms_one_by_one(norm):
    """By each element of x, at rows of deviation 1 to 1e-3 off the origin."""
    module = parts.part(parts.NORMS, norm)(6, 1e-6)
    module.scale = module.scale * 1.5
    x = cases.values("x", 2, 4, 6) * np.array([1, .1, .01, .001])[:, None] + 1
    dy = cases.values("dy", *x.shape)
    _, c = module.forward(x)
    dx, _ = module.backward(dy, c)
    for index in np.ndindex(x.shape):
        def moved(t):
            shifted = x.copy()
            shifted[index] += t
            return float((module.forward(shifted)[0] * dy).sum())
        step = 1e-3 * np.std(x[index[:2]])
        assert slope(moved, step) == pytest.approx(
            dx[index], rel=1e-6, abs=1e-7 * np.abs(dx[index[:2]]).max())


def test_cross_attention_by_both_inputs():
    """x and memory have gradients of their own; masked rows are among them."""
    module, x, memory, mask = case_of(
        "multi_head_attention", cases.test_size("complete"))
    y, c = module.forward(x, memory, mask, None)
    dy = cases.values("dy", *y.shape)
    dx, dmemory, _ = module.backward(dy, c)
    u, v = cases.values("u", *x.shape), cases.values("v", *memory.shape)

    def moved(t):
        return float((module.forward(x + t * u, memory + t * v, mask, None)[0]
                      * dy).sum())
    expected = float((dx * u).sum() + (dmemory * v).sum())
    assert slope(moved, 1e-4) == pytest.approx(expected, rel=1e-8)
    assert not dmemory[0, 4:].any()  # nobody may attend there
    assert dmemory[0, :4].all()


def test_single_head_attention():
    module, x, _, _ = case_of(
        "single_head_attention", cases.test_size("complete"))
    x = x[0]
    y, c = module.forward(x)
    dy, u = cases.values("dy", *y.shape), cases.values("u", *x.shape)
    dx, g = module.backward(dy, c)
    kernel = module.query.kernel

    def moved(t):
        module.query.kernel = kernel + t
        return float((module.forward(x + t * u)[0] * dy).sum())
    expected = float((dx * u).sum() + g["query.kernel"].sum())
    assert slope(moved, 1e-4) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("convention", CHOICES["smoothing"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_loss_by_logits(epsilon, convention):
    logits = cases.values("logits", 2, 3, 7)
    labels = np.array([[1, 6, 0], [0, 0, 3]])
    settings = (0, epsilon, convention)
    g = cross_entropy_backward(logits, labels, *settings)
    u = cases.values("u", *logits.shape)
    found = slope(lambda t: float(cross_entropy(
        logits + t * u, labels, *settings)), 1e-3)
    assert found == pytest.approx(float((g * u).sum()), rel=1e-9)
    assert not g[labels == 0].any()
    assert np.abs(g.sum(axis=-1)).max() < 1e-16
    assert not cross_entropy_backward(logits, labels * 0, *settings).any()


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_step_and_every_weight_has_a_gradient(variant):
    """Of its own shape and dtype, and no other names."""
    config = configured(variant)
    weights, batch = probe_weights(config), cases.padded_batch(config)
    model = reference.build("transformer", config, weights)
    steps = reference.forward(model, *batch)
    _, g = reference.gradients(model, *batch, batch.target)
    assert g.keys() == steps.keys() | weights.keys()
    for name, array in {**steps, **weights}.items():
        assert g[name].shape == array.shape and g[name].dtype == array.dtype


def test_float32_stays_float32():
    config = cases.test_size("lesson")
    weights = {name: array.astype(np.float32)
               for name, array in golden.shipped("lesson").items()}
    model = reference.build("transformer", config, weights, "float32")
    batch = cases.padded_batch(config)
    loss, g = reference.gradients(model, *batch, batch.target)
    assert loss.dtype == np.float32
    assert {array.dtype for array in g.values()} == {np.dtype(np.float32)}


@pytest.mark.long(16)
@pytest.mark.parametrize("preset", ["lesson", "vaswani2017_base"])
def test_ports_against_the_reference(port, preset):
    """Loss and all weights at 1e-12, each weight and each step at 1e-10."""
    run = Check([preset], [port.NAME], ["float64"], full_size=False,
                gradients=True)
    rows = [row for group in run.groups() for row in group
            if row.case == "gradients"]
    assert run.report.verdict == MATCH, run.report.divergences()[:3]
    limits = {row.name: row.limit for row in rows}
    assert limits["loss"] == limits["all weights"] == 1e-12
    weights = {f"grad {name}" for name in golden.shipped(preset)}
    assert weights < limits.keys()
    assert len(limits) - len(weights) > 170
    zero = {row.name for row in rows
            if row.differences[port.NAME].verdict == "zero"}
    attentions = 2 + 2 * 3
    assert len(zero) == attentions
    assert all(name.endswith("key.bias") for name in zero)


@pytest.mark.long(4)
@pytest.mark.parametrize("preset", ["lesson", "vaswani2017_base"])
def test_a_row_that_learns_nothing_where_it_is_read(engine, preset):
    """Of padding's, all that is missing is its embeddings' gradient (R9).

    The first preset has a table for each, the second one for all three.
    """
    config = cases.test_size(preset)
    weights, pad = probe_weights(config), config.pad_id
    source, target = (cases.ids(name, 2, 5, config.source_vocab)
                      for name in ("source", "target"))
    target[:, 0] = pad
    g, found = (engine.gradients(
        engine.build("transformer", each, weights),
        *Batch.of_ids(source, target, pad), np.roll(target, -1, 1))[1]
        for each in (config, config.replace(padding_learns=False)))
    own = config.tied == "none"
    table = f"{'target' if own else 'source'}_embedding.table"
    read = g["target_embedding.embedded"][:, 0].sum(axis=0) * (
        config.d_model**0.5)
    assert np.abs(read).min() > 1e-6
    for name in weights:
        expected = g[name].copy()
        if name == table:
            expected[pad] -= read
        assert relative_error(found[name], expected)[0] < 1e-12
    assert own != found[table][pad].any()


@pytest.mark.long(24)
def test_float32_gradients(port):
    """Under the kink guard, in float32's own limits."""
    run = Check(["practical"], [port.NAME], ["float32"], full_size=False,
                gradients=True)
    rows = [row for group in run.groups() for row in group]
    assert any(row.case == "gradients" for row in rows)
    assert run.report.verdict == MATCH, run.report.divergences()[:3]


def test_backward_steps_quote_the_forward_ones():
    """In reverse order, each with a number and a name that stand forward.

    Where its class has no such step, that of a class which it inherits from.
    """
    count = 0
    for file in READ_SIDE_BY_SIDE:
        steps = read_steps(REFERENCE / file)
        bases = {node.name: [base.id for base in node.bases]
                 for node in ast.parse((REFERENCE / file).read_text()).body
                 if isinstance(node, ast.ClassDef)}

        def forward(owner):
            own = {s.number: s.name for s in steps if not s.backward
                   and s.owner == owner.removesuffix("_backward")}
            return functools.reduce(
                lambda found, base: forward(base) | found,
                bases.get(owner, ()), own)

        for owner in dict.fromkeys(step.owner for step in steps):
            back = [s for s in steps if s.owner == owner and s.backward]
            numbers = [s.number for s in back]
            assert numbers == sorted(numbers, reverse=True)
            names = forward(owner)
            for step in back:
                assert step.text.startswith(f"{names[step.number]} = "), step
                assert assigned(step) or "return" in step.code, step
                count += 1
    assert count == 70
