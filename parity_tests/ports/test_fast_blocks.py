"""Attention over blocks against equation 1, and models that are long enough.

Blocks are made small here, so that there are many of them.
"""

import importlib

import numpy as np
import pytest

from transformer_contract.config import PLAIN, at_test_size, preset
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases
from reference_numpy.attention import MultiHeadAttention

#: Those that go over blocks by themselves; torch has a call for it.
NAMES = [name for name in ("numpy", "keras", "jax")
         if name == "numpy" or not ports.absent(name)]
DIVISOR = 6**0.5
LIMIT = 1e-12

#: Lengths, and what each head may see: batch, heads, queries, keys, mask.
CASES = {
    "padding": (2, 3, 13, 11, "padding"),
    "causal": (2, 1, 13, 13, "causal"),
    "causal and padding": (2, 2, 16, 16, "causal padding"),
    "a mask of its own for each head": (1, 3, 9, 9, "each"),
    "one block": (1, 2, 5, 5, "all"),
    "no mask, and no whole blocks": (1, 2, 7, 8, "all"),
    "one key": (1, 2, 13, 1, "all"),
    "one query": (3, 3, 1, 11, "padding"),
    "one of each, and later ones hidden": (1, 1, 1, 1, "causal"),
    "a row that sees nothing": (2, 2, 10, 7, "nothing"),
    "so many blocks that they are larger": (1, 2, 41, 43, "causal padding"),
}


def operands(batch, heads, queries, keys, scale):
    """Query, key, value and the context's gradient, of sharp scores or not."""
    draw = np.random.default_rng(5)
    query, key, value, dcontext = (
        draw.normal(size=(batch, heads, length, 6))
        for length in (queries, keys, keys, queries))
    return scale * query, key, value, dcontext


def mask_of(words, batch, heads, queries, keys):
    """A mask, and whether besides no query attends to a later key."""
    draw = np.random.default_rng(6)
    mask = np.ones((1, 1, 1, 1), bool)
    if "padding" in words:
        mask = draw.random((batch, 1, 1, keys)) > 0.3
    if "each" in words:
        mask = draw.random((batch, heads, queries, keys)) > 0.5
    if "nothing" in words:
        mask = np.ones((batch, 1, queries, keys), bool)
        mask[0, :, 3] = False
    return mask, "causal" in words


def plain(query, key, value, dcontext, mask, causal):
    """The context and three gradients by the readable form."""
    shape = *query.shape[:-1], key.shape[-2]
    whole = np.broadcast_to(mask, shape)
    if causal:
        whole = whole & np.tri(*shape[-2:], dtype=bool)
    module, cache = MultiHeadAttention(PLAIN), {}
    module.divisor = DIVISOR
    context = module.attend(query, key, value, whole, 0, cache)
    return context, *module.attend_backward(dcontext, cache, {})


def over_blocks(name, query, key, value, dcontext, mask, causal):
    """The same by a fast form's blocks."""
    blocks = importlib.import_module(f"{ports.package(name)}.fast.blocks")
    if name == "numpy":
        context, log_sums = blocks.attend(
            query, key, value, mask, causal, DIVISOR)
        return context, *blocks.attend_backward(
            dcontext, query, key, value, mask, causal, DIVISOR, context,
            log_sums)
    engine = ports.engine(name)
    engine.set_precision()
    native = [engine.to_native(x, "cpu") for x in (query, key, value,
                                                   dcontext, mask)]
    if name == "jax":
        import jax
        context, back = jax.vjp(
            lambda *x: blocks.attend(*x, native[4], causal, DIVISOR),
            *native[:3])
        return list(map(engine.to_numpy, (context, *back(native[3]))))
    import tensorflow as tf
    with tf.GradientTape() as tape:
        tape.watch(native[:3])
        context = blocks.attend(*native[:3], native[4], causal, DIVISOR)
    return list(map(engine.to_numpy, (
        context, *tape.gradient(context, native[:3], native[3]))))


def apart(x, y):
    """The relative L2 distance; of what is zero the distance itself."""
    return np.linalg.norm(x - y) / (np.linalg.norm(y) or 1)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 5 queries and 5 keys, in every form that has them."""
    for name in NAMES:
        blocks = f"{ports.package(name)}.fast.blocks"
        monkeypatch.setattr(f"{blocks}.SIZE", 5)
        monkeypatch.setattr(f"{blocks}.CORES", 2, raising=False)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", [
    name if name == "numpy" else pytest.param(name, marks=pytest.mark.long(24))
    for name in NAMES])
def test_equal_to_equation_1(name, case, small_blocks):
    """Of flat scores and of sharp ones, which compile to the same."""
    *shape, words = CASES[case]
    mask = mask_of(words, *shape)
    for scale in 1, 30:
        inputs = (*operands(*shape, scale), *mask)
        for ours, truth in zip(over_blocks(name, *inputs), plain(*inputs)):
            assert ours.dtype == np.float64 and apart(ours, truth) < LIMIT


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_any_size(name, small_blocks):
    """Where exp of a score would overflow, or be 0."""
    query, key, value, dcontext = operands(1, 2, 12, 12, 1e3)
    inputs = (query, key + 100, value, dcontext,
              np.ones((1, 1, 1, 1), bool), True)
    found, truth = over_blocks(name, *inputs), plain(*inputs)
    assert all(np.isfinite(each).all() for each in found)
    assert apart(found[0], truth[0]) < 1e-9


def test_memory_grows_with_the_length():
    """Scores of 4,096 tokens would be 128 MiB in float64."""
    import tracemalloc

    from reference_numpy.fast import blocks
    query, key, value, _ = operands(1, 1, 4096, 4096, 1)
    tracemalloc.start()
    blocks.attend(query, key, value, np.ones((1, 1, 1, 1), bool), True,
                  DIVISOR)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24


@pytest.mark.long(24)
@pytest.mark.parametrize("name", NAMES)
def test_a_long_model_goes_over_blocks(name, small_blocks, monkeypatch):
    """Its output, and its gradients, are the readable form's."""
    config = at_test_size(preset("notebook")).replace(dropout=0.0)
    weights, inputs = probe_weights(config), cases.padded_batch(config)
    called = []
    blocks = importlib.import_module(f"{ports.package(name)}.fast.blocks")
    attend = blocks.attend
    monkeypatch.setattr(blocks, "attend", lambda *operands: (
        called.append(1), attend(*operands))[1])
    readable, fast = (ports.engine(name, form) for form in ports.FORMS)
    fast.set_precision()
    ours, truth = (
        engine.predict(engine.build("transformer", config, weights), *inputs)
        for engine in (fast, readable))
    assert called and apart(ours, truth) < LIMIT
    if name != "numpy":
        return  # ports: their autodiff asks blocks for gradients, above
    labels = inputs.target[:, ::-1].copy()
    (loss, ours), (other, truth) = (
        (found[0], found[1]) for found in (
            engine.gradients(engine.build("transformer", config, weights),
                             *inputs, labels) for engine in (fast, readable)))
    assert abs(loss - other) < LIMIT
    assert {at.rpartition(".")[2] for at in truth.keys() - ours.keys()} == {
        "scores", "weights"}
    assert all(np.abs(ours[at] - truth[at]).max() < LIMIT for at in ours)
