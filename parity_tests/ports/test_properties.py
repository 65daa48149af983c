"""Conformance with what a Transformer is, without any reference.

Each engine is held to the model's own laws: what a mask hides has no effect,
rows of a batch do not meet, a part run alone is that part. Each test also
shows the effect where there must be one, so that a model which answers the
same to everything does not pass.
"""

import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_contract import weights
from transformer_contract.batch import Batch
from parity import ports
from parity.check import cases
from parity.numerics.comparator import MATCH, compare, relative_error

#: Between two float64 runs of one model; a clean run stays below 2e-15.
LIMIT = 1e-13

#: Less than what any change of one token does to an output.
EFFECT = 1e-3

CONFIGS = {
    "lesson": cases.test_size("lesson"),
    "vaswani2017_base": cases.test_size("vaswani2017_base"),
}
VARIANTS = {
    **CONFIGS,
    "rotary, shared heads": cases.test_size("practical").replace(
        positions="rotary_halves", n_kv_heads=3),
    "relative": cases.test_size("practical").replace(positions="relative"),
    "gated, silu, RMS": cases.test_size("practical").replace(
        activation="silu", gated=True, feed_forward_bias=False, norm="rms"),
    "gelu, halves": cases.test_size("practical").replace(
        activation="gelu", positions="halves"),
}

configs = pytest.mark.parametrize("name", CONFIGS)
variants = pytest.mark.parametrize("name", VARIANTS)


@functools.cache
def model(engine_name, name):
    """A model, built once; its engine must have been set up."""
    config = VARIANTS[name]
    return ports.engine(engine_name).build(
        "transformer", config, weights.probe_weights(config))


@functools.cache
def full_batch(name, source=cases.SOURCE, target=cases.TARGET):
    """A batch without padding."""
    config = VARIANTS[name]
    return Batch.of_ids(
        cases.ids("source", cases.BATCH, source, config.source_vocab),
        cases.ids("target", cases.BATCH, target, config.target_vocab),
        config.pad_id)


@functools.cache
def padded_batch(name):
    """A batch with padding on either side, and a source of padding alone."""
    return cases.padded_batch(VARIANTS[name])


def output(engine, name, batch):
    """What a model answers to a batch."""
    return engine.forward(model(engine.NAME, name), *batch)["output"]


@functools.cache
def before(engine_name, name, make):
    """Every step of a model on the batch that ``make`` makes, run once."""
    return ports.engine(engine_name).forward(
        model(engine_name, name), *make(name))


def other(ids, vocab):
    """For every id another one that is not padding (0)."""
    return ids % (vocab - 1) + 1


def same(found, truth):
    """Whether two runs gave the same numbers; shows what differs."""
    difference = compare(found, truth, LIMIT)
    assert difference.verdict == MATCH, difference
    return True


def differs(found, truth):
    """Whether something had an effect worth the name."""
    return relative_error(found, truth)[0] > EFFECT


def masked(engine, source, target, config):
    """A batch with the engine's own masks."""
    return Batch(source, target,
                 **engine.masks(source, target, config.pad_id))


def future_is_not_seen(engine, name, batch, places):
    """Change a token of every target: nothing before it may change."""
    config = VARIANTS[name]
    rows, target = np.arange(len(places)), batch.target.copy()
    target[rows, places] = other(target[rows, places], config.target_vocab)
    truth, found = (
        output(engine, name, masked(engine, batch.source, ids, config))
        for ids in (batch.target, target))
    earlier = np.arange(target.shape[1]) < np.array(places)[:, None]
    if earlier.any():
        assert same(found[earlier], truth[earlier])
    for row, place in enumerate(places):
        assert differs(found[row, place], truth[row, place])


@pytest.mark.long(16)
@variants
def test_the_future_is_not_seen(engine, name):
    """The causal mask: no output sees what comes later; each sees itself."""
    future_is_not_seen(engine, name, full_batch(name), [0, 2, 4, 7, 8])


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_the_future_is_not_seen_at_any_length(data):
    name = data.draw(st.sampled_from(sorted(VARIANTS)))
    length = st.integers(1, 30)
    batch = full_batch(name, data.draw(length), data.draw(length))
    place = st.integers(0, batch.target.shape[1] - 1)
    future_is_not_seen(ports.engine("numpy"), name, batch, [
        data.draw(place) for _ in range(cases.BATCH)])


@pytest.mark.long(16)
@variants
def test_padding_is_not_seen(engine, name):
    """Another embedding of the padding token changes only what is padding.

    On either side of a sequence, and also where there is nothing else (R9).
    """
    config = VARIANTS[name]
    batch, arrays = padded_batch(name), weights.probe_weights(config)
    for table in ("source_embedding.table", "target_embedding.table"):
        if table in arrays:
            arrays[table][config.pad_id] = arrays[table][config.pad_id, ::-1]
    changed = engine.forward(
        engine.build("transformer", config, arrays), *batch)
    steps = before(engine.NAME, name, padded_batch)
    # Where it is tied, the row is also the kernel of the padding's own logit.
    columns = slice(1 if config.output_tied else 0, None)
    for step, ids in (("memory", batch.source), ("decoded", batch.target),
                      ("output", batch.target)):
        kept = ids != config.pad_id
        found, truth = changed[step], steps[step]
        if step == "output":
            found, truth = found[..., columns], truth[..., columns]
        assert same(found[kept], truth[kept])
        assert differs(found[~kept], truth[~kept])


def padding_may_be_added(engine, name, batch, more_source, more_target):
    """Padding appended on the right adds outputs and changes none."""
    config, length = VARIANTS[name], batch.target.shape[1]
    source, target = (
        np.pad(ids, ((0, 0), (0, more)), constant_values=config.pad_id)
        for ids, more in ((batch.source, more_source),
                          (batch.target, more_target)))
    longer = masked(engine, source, target, config)
    truth = output(engine, name, batch)
    assert same(output(engine, name, longer)[:, :length], truth)
    seen = dataclasses.replace(
        longer, source_mask=np.ones_like(longer.source_mask))
    assert differs(output(engine, name, seen)[:, :length], truth)


@pytest.mark.long(24)
@configs
def test_appended_padding_is_not_seen(engine, name):
    """It is the mask that hides it: without, it is seen."""
    padding_may_be_added(engine, name, full_batch(name), 3, 2)


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_amount_of_padding_is_not_seen(data):
    name = data.draw(st.sampled_from(sorted(VARIANTS)))
    size = st.integers(1, 20)
    batch = full_batch(name, data.draw(size), data.draw(size))
    padding_may_be_added(ports.engine("numpy"), name, batch, data.draw(size),
                         data.draw(size))


@configs
def test_rows_of_a_batch_may_change_places(engine, name):
    """Pairs in another order get the same answers in that order."""
    order = [3, 0, 4, 1, 2]
    truth = before(engine.NAME, name, padded_batch)["output"]
    found = output(engine, name, [array[order] for array in padded_batch(name)])
    assert same(found, truth[order])
    assert differs(found, truth)


@configs
def test_rows_of_a_batch_do_not_meet(engine, name):
    """A pair's answer is its own, whatever else is in the batch."""
    config, batch = VARIANTS[name], full_batch(name)
    source, target = batch.source.copy(), batch.target.copy()
    source[1] = other(source[1], config.source_vocab)
    target[1] = other(target[1], config.target_vocab)
    truth = before(engine.NAME, name, full_batch)["output"]
    found = output(
        engine, name, Batch.of_ids(source, target, config.pad_id))
    others = [0, 2, 3, 4]
    assert same(found[others], truth[others])
    assert differs(found[1], truth[1])


@pytest.mark.long(8)
@pytest.mark.parametrize("source, target", [(1, 9), (11, 1), (1, 1)])
def test_one_token(engine, source, target):
    """Softmax over one key is 1, and a first token alone is a first token."""
    name, batch = "lesson", full_batch("lesson")
    short = Batch.of_ids(batch.source[:, :source], batch.target[:, :target],
                         VARIANTS[name].pad_id)
    steps = engine.forward(model(engine.NAME, name), *short)
    assert steps["output"].shape == (
        cases.BATCH, target, VARIANTS[name].target_vocab)
    if source == 1:
        for step in ("encoder.layers.1.self_attention.weights",
                     "decoder.layers.2.cross_attention.weights"):
            assert (steps[step] == 1).all()
    else:
        truth = before(engine.NAME, name, full_batch)["output"]
        assert same(steps["output"], truth[:, :1])
    if target == 1:
        weight = steps["decoder.layers.2.self_attention.weights"]
        assert weight.shape[-2:] == (1, 1) and (weight == 1).all()


def test_a_query_without_keys_answers_the_output_bias(engine):
    """Its weights and its context are 0, and other queries do not mind (R2)."""
    config = VARIANTS["vaswani2017_base"]
    arrays = weights.select(weights.probe_weights(config),
                          "decoder.layers.0.cross_attention.")
    attention = engine.build("multi_head_attention", config, arrays)
    x = cases.values("x", cases.BATCH, cases.TARGET, config.d_model)
    memory = cases.values("memory", cases.BATCH, cases.SOURCE, config.d_model)
    mask = np.ones((cases.BATCH, 1, cases.TARGET, cases.SOURCE), bool)
    alone = np.zeros((cases.BATCH, cases.TARGET), bool)
    alone[1, 4] = alone[2] = alone[4, 0] = True
    truth = engine.run(attention, x, memory, mask, cache=None)
    mask[:, 0][alone] = False
    found = engine.run(attention, x, memory, mask, cache=None)
    for step in ("weights", "context"):
        assert not found[step].swapaxes(1, 2)[alone].any()
        assert truth[step].swapaxes(1, 2)[alone].all()
    answers = found["output"][alone]
    assert same(answers, np.broadcast_to(
        arrays["output.bias"], answers.shape))
    assert same(found["output"][~alone], truth["output"][~alone])


@configs
def test_its_parts_make_the_model(engine, name):
    """encode, decode and project, one after the other, are the call."""
    batch, whole = padded_batch(name), model(engine.NAME, name)
    steps = before(engine.NAME, name, padded_batch)
    masks = batch.source_mask, batch.target_mask
    encoded = engine.run(
        whole, batch.source, batch.source_mask, method="encode")
    decoded = engine.run(whole, batch.target, encoded["memory"], *masks,
                         method="decode", caches=None)
    projected = engine.run(whole, decoded["decoded"], method="project")
    parts = encoded | decoded | projected
    assert parts.keys() == steps.keys()
    for step, value in steps.items():
        assert same(parts[step], value), step


def test_masks_are_those_of_the_batch(engine):
    """Padding on either side, padding alone, and ids of another padding."""
    for pad_id, begun in ((0, True), (5, True), (5, False)):
        batch = cases.padded_batch(VARIANTS["lesson"].replace(pad_id=pad_id))
        batch = Batch.of_ids(batch.source, batch.target, pad_id, begun)
        found = engine.masks(batch.source, batch.target, pad_id, begun=begun)
        assert found.keys() == {"source_mask", "target_mask"}
        for name, mask in found.items():
            assert mask.dtype == bool
            np.testing.assert_array_equal(mask, getattr(batch, name))
            assert mask.any() and not mask.all()


@given(st.data())
def test_masks_of_any_batch(data):
    """Each entry by its definition: True where a query may attend (R1)."""
    b, s, t, pad = (data.draw(st.integers(1, 5)) for _ in range(4))
    ids = st.integers(0, 5)
    source, target = (np.array(data.draw(st.lists(
        st.lists(ids, min_size=n, max_size=n), min_size=b, max_size=b)))
        for n in (s, t))
    found = ports.engine("numpy").masks(source, target, pad)
    batch = Batch.of_ids(source, target, pad)
    for name, mask in found.items():
        np.testing.assert_array_equal(mask, getattr(batch, name))
    assert found["source_mask"].shape == (b, 1, 1, s)
    assert found["target_mask"].shape == (b, 1, t, t)
    for i in range(b):
        for key in range(s):
            assert found["source_mask"][i, 0, 0, key] == (
                source[i, key] != pad)
        for query in range(t):
            for key in range(t):
                assert found["target_mask"][i, 0, query, key] == (
                    key <= query and (key == 0 or target[i, key] != pad))


def test_tied_weights_are_one_table(engine):
    """Both embeddings and the projection read it, and nothing else (R13)."""
    name = "vaswani2017_base"
    config, batch = VARIANTS[name], padded_batch(name)
    table = weights.probe_weights(config)["source_embedding.table"]
    steps = before(engine.NAME, name, padded_batch)
    for side, ids in (("source", batch.source), ("target", batch.target)):
        assert same(steps[f"{side}_embedding.embedded"],
                    table[ids] * np.sqrt(config.d_model))
    assert same(steps["projection.logits"], steps["decoded"] @ table.T)
    exported = engine.export(model(engine.NAME, name))
    tables = [array for array in exported.values()
              if config.source_vocab in array.shape]
    assert len(tables) == 1
