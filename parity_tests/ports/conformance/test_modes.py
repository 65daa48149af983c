"""What frameworks do with a model beside a call and its first gradient."""

import importlib

import numpy as np
import pytest

from transformer_contract.weights import probe_weights
from parity import assert_parity, ports
from parity.check import cases
from parity.numerics.tolerances import FLOAT64_LIMIT
from parity_tests.support.conformance import SMALL, batch_of, holds, quick

pytestmark = pytest.mark.long

CONFIG = SMALL.replace(
    source_vocab=37, target_vocab=37, max_length=9, dropout=0.0)

#: How far weights are moved for a difference of first derivatives; and how far
#: that is from a second one, for H² of the fourth and ε/H of rounding.
MOVED, NEAR = 1e-5, 1e-7


def moved(weights, along, by):
    """Weights, moved along a direction."""
    return {name: array + by * along[name] for name, array in weights.items()}


@quick()
def test_second_derivatives(subject):
    """As the reference's first ones change, where weights are moved."""
    if subject.NAME == "keras" and "tensorflow" not in subject.versions():
        pytest.skip("not asked: Keras has no second derivatives of its own")
    batch = batch_of("curved", 2, 5)
    ids = [array % CONFIG.source_vocab for array in (
        batch.source, batch.target)]
    weights = probe_weights(CONFIG, 3)
    along = {name: cases.values(f"along {name}", *array.shape)
             for name, array in weights.items()}
    given = [*ids, batch.source_mask, batch.target_mask]
    reference = ports.engine("numpy")
    above, below = (reference.gradients(reference.build(
        "transformer", CONFIG, moved(weights, along, by)), *given, ids[1])[1]
        for by in (MOVED, -MOVED))
    cross_entropy = ports.module_of(subject.NAME, "loss").cross_entropy

    def loss(model):
        *inputs, labels = (
            subject.to_native(array, "cpu") for array in (*given, ids[1]))
        return cross_entropy(
            model(*inputs), labels, CONFIG.pad_id, CONFIG.label_smoothing,
            CONFIG.smoothing)

    found = importlib.import_module(
        f"parity_tests.ports.citizens.{subject.NAME}").second_derivative(
            subject.build("transformer", CONFIG, weights), loss, along)
    truth = {name: (above[name] - below[name]) / (2 * MOVED)
             for name in weights}
    whole = np.linalg.norm(np.concatenate(
        [array.ravel() for array in truth.values()]))
    for name, array in truth.items():
        error = np.linalg.norm(found[name] - array) / whole
        holds(f"second derivative by {name}", error < NEAR,
              f"expected one of norm {np.linalg.norm(array):.3g}, found "
              f"{np.linalg.norm(found[name]):.3g}; error {error:.1e} of the "
              f"whole, limit {NEAR}")


@pytest.mark.parametrize("word", ("interleaved", "rotary_halves"))
def test_compiled(subject, word):
    """By tables of either kind, in float64, and by masks of one's own: what
    compiles knows neither numbers of masks, nor every length."""
    config = CONFIG.replace(positions=word, d_head=4)
    weights, batch = probe_weights(config, 3), batch_of("compiled", 3, 6)
    source, target = batch.source, batch.target[:, :-1]
    source_mask = batch.source_mask & (np.arange(6) != 1)
    target_mask = batch.target_mask[..., :-1, :-1].copy()
    target_mask[..., :3, :3] = True
    given = [array % config.source_vocab for array in (source, target)]
    given += source_mask, target_mask
    reference = ports.engine("numpy")
    expected = reference.predict(
        reference.build("transformer", config, weights), *given)
    ways = importlib.import_module(
        f"parity_tests.ports.citizens.{subject.NAME}").compiled(
            subject.build("transformer", config, weights))
    for way, function in ways.items():
        assert_parity(function(*given), expected, name=f"{way}, {word}",
                      limit=FLOAT64_LIMIT)
