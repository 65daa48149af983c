"""What stands before and behind the stacks, by values written out."""

import numpy as np
import pytest

from transformer_contract.config import (
    CHOICES, PLAIN, TransformerConfig, at_test_size)
from transformer_contract.schema import schema
from transformer_contract.weights import probe_weights
from parity.check import cases
from reference_numpy import engine

#: Which arrays read one table: word -> (its name, the name of its copy).
COPIES = {
    "none": (),
    "output": (("target_embedding.table", "projection.kernel"),),
    "embeddings": (("source_embedding.table", "target_embedding.table"),),
    "all": (("source_embedding.table", "target_embedding.table"),
            ("source_embedding.table", "projection.kernel")),
}


def configured(**changes):
    config = at_test_size(PLAIN.replace(tied=changes.pop("tied", "none")))
    return config.replace(**changes)


def run(config, weights, batch=None):
    return engine.forward(engine.build("transformer", config, weights), *(
        batch or cases.padded_batch(config)))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("tied", CHOICES["tied"])
def test_a_tied_model_is_one_with_copies(tied, bias):
    """Each copy left out of the weights, and the gradients added up."""
    config = configured(tied=tied, output_bias=bias)
    weights = probe_weights(config)
    apart = config.replace(tied="none")
    copied = dict(weights)
    for name, copy in COPIES[tied]:
        copied[copy] = weights[name].T if "kernel" in copy else weights[name]
    assert copied.keys() == schema(apart).keys()
    batch = cases.padded_batch(config)
    (_, ours), (_, theirs) = (engine.gradients(
        engine.build("transformer", c, w), *batch, batch.target)
        for c, w in ((config, weights), (apart, copied)))
    for name, copy in COPIES[tied]:
        part = theirs.pop(copy)
        theirs[name] = theirs[name] + (part.T if "kernel" in copy else part)
    for name in weights:
        if name.endswith("key.bias"):
            continue  # zero by mathematics
        np.testing.assert_allclose(
            ours[name], theirs[name], rtol=0,
            atol=1e-13 * np.abs(theirs[name]).max(), err_msg=name)
    np.testing.assert_allclose(
        run(config, weights)["output"], run(apart, copied)["output"],
        rtol=0, atol=1e-13)


@pytest.mark.parametrize("value", [True, False])
def test_what_earlier_files_say_of_tying(value):
    """True was all three, False none."""
    config = TransformerConfig(tied=value)
    assert config.tied == ("all" if value else "none")
    assert config == TransformerConfig(**config.as_dict())


def test_the_output_is_scaled_before_its_bias():
    """T5 and Flax's examples have no bias there; ours is not divided."""
    config = configured(output_scale="root", tied="output", output_bias=True)
    weights = probe_weights(config)
    steps = run(config, weights)
    np.testing.assert_allclose(
        steps["projection.logits"], steps["decoded"] @ weights[
            "target_embedding.table"].T / 48**0.5
        + weights["projection.bias"], rtol=0, atol=1e-13)


def test_a_token_of_a_type():
    """Id i + n · V is token i, to which the vector of type n is added."""
    config = configured(token_types=3)
    weights = probe_weights(config)
    batch = cases.padded_batch(config)
    ids, types = batch.source % 37, batch.source // 37
    assert set(types.ravel()) == {0, 1, 2}
    steps = run(config, weights, batch)
    np.testing.assert_array_equal(
        steps["source_embedding.typed"],
        weights["source_embedding.table"][ids] * 48**0.5
        + weights["source_embedding.types"][types])


def test_a_first_token_that_is_not_read():
    """Zeros stand in its place, and positions are added to them."""
    config = configured(begin="zero")
    weights, batch = probe_weights(config), cases.padded_batch(config)
    first = run(config, weights, batch)
    np.testing.assert_array_equal(
        first["target_positions.positioned"][:, 0],
        np.broadcast_to(first["target_positions.positions"][0], (5, 48)))
    batch.target[0, 0] += 1
    second = run(config, weights, batch)
    np.testing.assert_array_equal(first["output"], second["output"])


def test_a_norm_of_embeddings_is_before_dropout():
    """It reads the sum, and what is dropped is its output."""
    config = configured(embedding_norm=True)
    steps = run(config, probe_weights(config))
    x = steps["source_positions.positioned"]
    np.testing.assert_allclose(
        steps["source_positions.norm.centered"],
        x - x.mean(axis=-1, keepdims=True), rtol=0, atol=1e-13)


def test_a_head_stands_before_the_projection():
    """Dense, activation, norm; then the scaled and tied product."""
    config = configured(output_transform=True, output_scale="root",
                        tied="output", output_bias=True, norm_eps=1e-3)
    weights = probe_weights(config)
    steps = run(config, weights)
    x = np.maximum(steps["decoded"] @ weights["head.inner.kernel"]
                   + weights["head.inner.bias"], 0)
    x = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(
        x.var(axis=-1, keepdims=True) + 1e-3)
    x = x * weights["head.norm.scale"] + weights["head.norm.bias"]
    np.testing.assert_allclose(
        steps["output"], x / 48**0.5 @ weights["target_embedding.table"].T
        + weights["projection.bias"], rtol=0, atol=1e-13)
