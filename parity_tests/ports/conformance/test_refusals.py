"""Inputs of which every engine says that they are wrong."""

import numpy as np
import pytest

from transformer_contract.batch import Batch
from transformer_contract.config import PRESETS, at_test_size
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import initial_weights, select
from parity.check import cases, golden
from parity_tests.support.conformance import refuses

pytestmark = pytest.mark.long

CONFIG = at_test_size(PRESETS["complete"])


def test_wrong_inputs_are_refused(subject):
    """Of a model, of build, of a search and of a step of training."""
    engine = subject
    weights = golden.shipped("complete")
    model = engine.build("transformer", CONFIG, weights)
    batch = cases.padded_batch(CONFIG)
    labels = np.array(batch.target)
    wrong = {
        "an id above": [batch.source + CONFIG.source_vocab, *list(batch)[1:]],
        "a mask of numbers": [*list(batch)[:2], batch.source_mask * 1.0,
                              batch.target_mask],
        "too long": list(Batch.of_ids(
            np.ones((2, CONFIG.max_length + 1), int), np.ones((2, 3), int))),
        "as many": [batch.source[:2], *list(batch)[1:]],
    }
    for what, inputs in wrong.items():
        for name in ("forward", "predict"):
            refuses(f"{name}: {what}", getattr(engine, name), model, *inputs)
        refuses(f"gradients: {what}", engine.gradients, model, *inputs, labels)
    for what, arrays_ in (
            ("missing", dict(list(weights.items())[1:])),
            ("surplus", {**weights, "more": np.ones(1)}),
            ("shape", {**weights, "encoder.layers.0.feed_forward.inner.bias":
                       np.ones(3)})):
        refuses(f"weights: {what}", engine.build, "transformer", CONFIG,
                arrays_)
    settings = GenerationConfig(max_tokens=3)
    for what, source, changed, rows in (
            ("an id above", batch.source + 37, {}, None),
            ("eos", batch.source, {"eos_id": 99}, None),
            ("rows", batch.source, {}, np.arange(3)),
            ("tokens", batch.source, {"max_tokens": 65}, None)):
        refuses(f"generate: {what}", engine.generate, model, source,
                settings.replace(**changed), rows=rows)
    trainer = engine.trainer(model, TrainingConfig())
    pairs = batch.source[None], batch.target[None]
    for what, sources, targets in (
            ("an id above", pairs[0] + 37, pairs[1]),
            ("a target above", pairs[0], pairs[1] + 41),
            ("as many", pairs[0][:, :2], pairs[1]),
            ("one token", pairs[0], pairs[1][:, :, :1])):
        refuses(f"train_step: {what}", engine.train_step, trainer, sources,
                targets)


#: What knows of positions, each in its own way.
PLACED = {
    "a table": {}, "tokens": {"position_padding": True},
    "learned": {"positions": "learned"}, "attention": {"positions": "relative"}}


def test_components_refuse(subject):
    """What a component alone has to refuse, and what it must not."""
    engine, rows = subject, CONFIG.max_length
    weights = golden.shipped("complete")
    for what, words in PLACED.items():
        config = CONFIG.replace(position_start=2, **words)
        positions = engine.build("positional_encoding", config, select(
            initial_weights(config), "source_positions."))
        for length, start in ((rows + 1, 0), (2, rows - 1)):
            refuses(f"positions by {what}: {length} from {start}", engine.run,
                    positions, np.ones((1, length, CONFIG.d_model)),
                    np.ones((1, length), int), start=start)
        engine.run(positions, np.ones((1, 2, CONFIG.d_model)),
                   np.ones((1, 2), int), start=rows - 2)
    path = "encoder.layers.0.self_attention."
    attention = engine.build("multi_head_attention", CONFIG, select(
        weights, path))
    x, memory = (np.ones((2, length, CONFIG.d_model)) for length in (3, 4))
    for what, mask in (("numbers", np.ones((2, 1, 1, 4))),
                       ("queries", np.ones((2, 1, 4, 4), bool)),
                       ("keys", np.ones((2, 1, 1, 3), bool)),
                       ("axes", np.ones((2, 1, 4), bool))):
        refuses(f"attention: {what}", engine.run, attention, x, memory, mask,
                cache=None)
    rotary = engine.build("multi_head_attention", CONFIG.replace(
        positions="rotary_halves"), select(weights, path))
    far = np.ones((1, rows + 1, CONFIG.d_model))
    refuses("attention: rotated too far", engine.run, rotary, far, far,
            np.ones((1, 1, 1, rows + 1), bool), cache=None)
    for shape in ((2, 1, 3, 4), (1, 6, 1, 4), (1, 1, 3, 1)):
        engine.run(attention, x, memory, np.ones(shape, bool), cache=None)
