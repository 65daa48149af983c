"""Training steps whose batches are mostly padding, against the reference."""

import numpy as np
import pytest

from transformer_contract import packing
from transformer_contract.config import at_test_size, preset
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity import ports
from parity.numerics import zero_gradients
from parity.numerics.comparator import MATCH, ZERO, compare
from parity_tests.support.engines import usable

TRAINING = TrainingConfig(warmup_steps=400, clip_norm=1.0)

#: Two batches [A B], the lengths of their sources and targets; 11 is whole.
#: One row's source is all padding, another has nothing to predict.
SOURCES = ((11, 3, 1, 5), (2, 0, 6, 2))
TARGETS = ((4, 2, 11, 1), (3, 5, 0, 2))

MODELS = {
    "lesson": ("lesson", {}),
    "notebook": ("notebook", {"dropout": 0.0}),
    "positions without padding": ("complete", {
        "position_padding": True, "residual": "pre"}),
    "relative": ("complete", {
        "positions": "relative", "dropout": 0.0, "n_kv_heads": 1}),
    "encoder": ("complete", {
        "stacks": "encoder", "output_transform": True, "tied": "none"}),
    "decoder": ("complete", {
        "stacks": "decoder", "tied": "none", "positions": "learned"}),
}


def of_lengths(config, rng, lengths, first):
    """Ids [A B 11 + first], behind each row's length padding.

    A few of the others are padding, too, and the first is always a token.
    """
    ids = rng.integers(1, config.source_vocab, (2, 4, 11 + first))
    ids[0, 0, 2 + first] = ids[1, 2, 4] = config.pad_id
    for row, length in zip(ids.reshape(8, -1), np.ravel(lengths)):
        row[length + first:] = config.pad_id
    return ids


def pairs(config):
    """Sources [2 4 11] and targets [2 4 12]."""
    rng = np.random.default_rng(0)
    sources = of_lengths(config, rng, SOURCES, 0)
    targets = of_lengths(config, rng, TARGETS, 1)
    return sources, targets


def trained(engine, config):
    """What two steps find, and what they leave, by name."""
    engine.set_precision()
    trainer = engine.trainer(engine.build(
        "transformer", config, probe_weights(config)), TRAINING)
    for _ in range(2):
        found = engine.train_step(trainer, *pairs(config))
    return {**found, **engine.export(trainer.model), **engine.moments(trainer)}


def assert_trained_alike(model, name):
    """Compare what the fast form of a port finds with the reference's."""
    base, changes = MODELS[model]
    config = at_test_size(preset(base)).replace(**changes)
    truth = trained(ports.engine("numpy"), config)
    found = trained(usable(name, "fast"), config)
    assert found.keys() == truth.keys()
    for what, expected in truth.items():
        if zero_gradients.is_zero(what, config.positions) and not (
                what.startswith(("m.", "v."))):
            continue  # Adam moves it by what is rounding.
        difference = compare(
            found[what], expected, 1e-11,
            zero_scale=zero_gradients.scale(what, truth, config.positions))
        assert difference.verdict in (MATCH, ZERO), (what, difference)


@pytest.mark.long(48)
@pytest.mark.parametrize("name", ["numpy", *ports.known_ports()])
@pytest.mark.parametrize("model", MODELS)
def test_padding_that_is_taken_out_changes_nothing(model, name, monkeypatch):
    monkeypatch.setattr(packing, "LEAST", 0)
    assert_trained_alike(model, name)


@pytest.mark.parametrize("name, sizes", [
    ("numpy", {"rows.BLOCK": 6}),
    ("torch", {"loss.BLOCK": 150, "loss.MOST": 500})])
def test_the_scores_of_some_tokens_at_once(name, sizes, monkeypatch):
    """As where a vocabulary is large."""
    usable(name, "fast")
    for where, size in sizes.items():
        monkeypatch.setattr(f"{ports.package(name)}.fast.{where}", size)
    assert_trained_alike("lesson", name)


def test_what_is_behind_the_last_token_is_padding():
    ids = np.array([[5, 0, 7, 0, 0], [0, 0, 0, 0, 0], [1, 2, 3, 4, 5]])
    assert packing.ends(ids, 0).tolist() == [3, 0, 5]
    assert packing.places(np.array([2, 0, 1]), 3).tolist() == [0, 1, 6]


def test_an_encoder_predicts_where_it_reads():
    """Its sources count as far as a source or a label does."""
    source, labels = np.array([[1, 2, 0, 0]]), np.array([[0, 0, 3, 0]])
    config = preset("complete")
    assert [length.tolist() for length in packing.lengths(
        config, source, labels)] == [[2], [3]]
    one = config.replace(stacks="encoder", tied="none")
    assert packing.lengths(one, source, labels)[0].tolist() == [3]
