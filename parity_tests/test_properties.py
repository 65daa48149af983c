"""Conformance with what a Transformer is, without any reference.

Each engine is held to the model's own laws: what a mask hides has no effect,
rows of a batch do not meet, a part run alone is that part. Each test also
shows the effect where there must be one, so that a model which answers the
same to everything does not pass.
"""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract import weights
from contract.batch import Batch
from parity import cases, ports
from parity.compare import MATCH, compare, relative_error

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
    "gelu, halves": cases.test_size("practical").replace(
        activation="gelu", positions="halves"),
    "std": cases.test_size("complete"),
}

configs = pytest.mark.parametrize("name", CONFIGS)
variants = pytest.mark.parametrize("name", VARIANTS)


@functools.cache
def model(engine_name, name):
    """A model, built once; its engine must have been set up."""
    config = VARIANTS[name]
    return ports.engine(engine_name).build(
        "transformer", config, weights.probe_weights(config))


def output(engine, name, batch):
    """What a model answers to a batch."""
    return engine.forward(model(engine.NAME, name), *batch)["output"]


def full_batch(config, source=cases.SOURCE, target=cases.TARGET):
    """A batch without padding."""
    return Batch.of_ids(
        cases.ids("source", cases.BATCH, source, config.source_vocab),
        cases.ids("target", cases.BATCH, target, config.target_vocab),
        config.pad_id)


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


def future_is_not_seen(engine, name, batch, j):
    """Change token j of every target: nothing before it may change."""
    config = VARIANTS[name]
    target = batch.target.copy()
    target[:, j] = other(target[:, j], config.target_vocab)
    changed = Batch.of_ids(batch.source, target, config.pad_id)
    before, after = (output(engine, name, b) for b in (batch, changed))
    assert j == 0 or same(after[:, :j], before[:, :j])
    assert differs(after[:, j], before[:, j])


@pytest.mark.parametrize("j", [0, 4, cases.TARGET - 1])
@configs
def test_the_future_is_not_seen(engine, name, j):
    """Exactly the present and the past reach an output."""
    future_is_not_seen(engine, name, full_batch(VARIANTS[name]), j)


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_the_future_is_not_seen_at_any_length(data):
    name = data.draw(st.sampled_from(sorted(VARIANTS)))
    source, target = data.draw(st.integers(1, 30)), data.draw(
        st.integers(1, 30))
    batch = full_batch(VARIANTS[name], source, target)
    future_is_not_seen(ports.engine("numpy"), name, batch,
                       data.draw(st.integers(0, target - 1)))


@variants
def test_padding_is_not_seen(engine, name):
    """Another embedding of the padding token changes only what is padding.

    On either side of a sequence, and also where there is nothing else (R9).
    """
    config = VARIANTS[name]
    batch, arrays = cases.padded_batch(config), weights.probe_weights(config)
    for table in ("source_embedding.table", "target_embedding.table"):
        if table in arrays:
            arrays[table][config.pad_id] += 1
    changed = engine.forward(
        engine.build("transformer", config, arrays), *batch)
    steps = engine.forward(model(engine.NAME, name), *batch)
    # Where it is tied, the row is also the kernel of the padding's own logit.
    columns = slice(1 if config.tied else 0, None)
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
    config = VARIANTS[name]
    longer = Batch.of_ids(
        *(np.pad(ids, ((0, 0), (0, more)), constant_values=config.pad_id)
          for ids, more in ((batch.source, more_source),
                            (batch.target, more_target))), config.pad_id)
    found = output(engine, name, longer)[:, :batch.target.shape[1]]
    assert same(found, output(engine, name, batch))
    if more_source:  # The mask is what hides it.
        wide = np.ones_like(longer.source_mask)
        found = engine.forward(
            model(engine.NAME, name), longer.source, longer.target, wide,
            longer.target_mask)["output"][:, :batch.target.shape[1]]
        assert differs(found, output(engine, name, batch))


@configs
def test_appended_padding_is_not_seen(engine, name):
    padding_may_be_added(engine, name, full_batch(VARIANTS[name]), 3, 2)


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_amount_of_padding_is_not_seen(data):
    name = data.draw(st.sampled_from(sorted(VARIANTS)))
    size = st.integers(1, 20)
    batch = full_batch(VARIANTS[name], data.draw(size), data.draw(size))
    padding_may_be_added(ports.engine("numpy"), name, batch, data.draw(size),
                         data.draw(size))


@variants
def test_rows_of_a_batch_may_change_places(engine, name):
    batch, order = cases.padded_batch(VARIANTS[name]), [3, 0, 4, 1, 2]
    before = output(engine, name, batch)
    after = output(engine, name, [array[order] for array in batch])
    assert same(after, before[order])
    assert differs(after, before)


@variants
def test_rows_of_a_batch_do_not_meet(engine, name):
    """A pair's answer is its own, whatever else is in the batch."""
    config = VARIANTS[name]
    batch = full_batch(config)
    source, target = batch.source.copy(), batch.target.copy()
    source[1] = other(source[1], config.source_vocab)
    target[1] = other(target[1], config.target_vocab)
    before = output(engine, name, batch)
    after = output(
        engine, name, Batch.of_ids(source, target, config.pad_id))
    others = [0, 2, 3, 4]
    assert same(after[others], before[others])
    assert differs(after[1], before[1])


@pytest.mark.parametrize("source, target", [(1, 9), (11, 1), (1, 1)])
@configs
def test_one_token(engine, name, source, target):
    """Softmax over one key is 1, and a first token alone is a first token."""
    config = VARIANTS[name]
    batch = full_batch(config)
    short = Batch.of_ids(batch.source[:, :source], batch.target[:, :target],
                         config.pad_id)
    steps = engine.forward(model(engine.NAME, name), *short)
    assert steps["output"].shape == (
        cases.BATCH, target, config.target_vocab)
    if source == 1:
        for step in ("encoder.layers.1.self_attention.weights",
                     "decoder.layers.2.cross_attention.weights"):
            assert (steps[step] == 1).all()
    if target == 1:
        whole = Batch.of_ids(short.source, batch.target, config.pad_id)
        assert same(steps["output"], output(engine, name, whole)[:, :1])
        first = steps["decoder.layers.2.self_attention.weights"]
        assert first.shape[-2:] == (1, 1) and (first == 1).all()


def test_a_query_without_keys_answers_the_output_bias(engine):
    """Its weights and its context are 0, and other queries do not mind (R2)."""
    config = VARIANTS["vaswani2017_base"]
    arrays = weights.part(weights.probe_weights(config),
                          "decoder.layers.0.cross_attention.")
    attention = engine.build("multi_head_attention", config, arrays)
    x = cases.values("x", cases.BATCH, cases.TARGET, config.d_model)
    memory = cases.values("memory", cases.BATCH, cases.SOURCE, config.d_model)
    mask = np.ones((cases.BATCH, 1, cases.TARGET, cases.SOURCE), bool)
    alone = np.zeros((cases.BATCH, cases.TARGET), bool)
    alone[1, 4] = alone[2] = alone[4, 0] = True
    before = engine.run(attention, x, memory, mask)
    mask[:, 0][alone] = False
    after = engine.run(attention, x, memory, mask)
    for step in ("weights", "context"):
        assert not after[step].swapaxes(1, 2)[alone].any()
        assert before[step].swapaxes(1, 2)[alone].all()
    answers = after["output"][alone]
    assert same(answers, np.broadcast_to(
        arrays["output.bias"], answers.shape))
    assert same(after["output"][~alone], before["output"][~alone])


@configs
def test_its_parts_make_the_model(engine, name):
    """encode, decode and project, one after the other, are the call."""
    batch, whole = cases.padded_batch(VARIANTS[name]), model(engine.NAME, name)
    steps = engine.forward(whole, *batch)
    masks = batch.source_mask, batch.target_mask
    encoded = engine.run(
        whole, batch.source, batch.source_mask, method="encode")
    decoded = engine.run(whole, batch.target, encoded["memory"], *masks,
                         method="decode")
    projected = engine.run(whole, decoded["decoded"], method="project")
    parts = encoded | decoded | projected
    assert parts.keys() == steps.keys()
    for step, value in steps.items():
        assert same(parts[step], value), step


def test_masks_are_those_of_the_batch(engine):
    """Padding on either side, padding alone, and ids of another padding."""
    for pad_id in (0, 5):
        batch = cases.padded_batch(VARIANTS["lesson"].replace(pad_id=pad_id))
        found = engine.masks(batch.source, batch.target, pad_id)
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
                    key <= query and target[i, key] != pad)


def test_tied_weights_are_one_table(engine):
    """Both embeddings and the projection read it, and nothing else (R13)."""
    config = VARIANTS["vaswani2017_base"]
    table = weights.probe_weights(config)["source_embedding.table"]
    batch = cases.padded_batch(config)
    whole = model(engine.NAME, "vaswani2017_base")
    steps = engine.forward(whole, *batch)
    for side, ids in (("source", batch.source), ("target", batch.target)):
        assert same(steps[f"{side}_embedding.embedded"],
                    table[ids] * np.sqrt(config.d_model))
    assert same(steps["projection.logits"], steps["decoded"] @ table.T)
    tables = [array for array in engine.export(whole).values()
              if config.source_vocab in array.shape]
    assert len(tables) == 1
