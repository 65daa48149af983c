"""Inputs of which every engine has to say that they are wrong.

The functions yield (what is asked, whether the answer is right).
"""

import numpy as np

from transformer_contract.batch import Batch
from transformer_contract.config import PRESETS, at_test_size
from transformer_contract.errors import InputError
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import initial_weights, part
from parity.check import cases, golden

CONFIG = at_test_size(PRESETS["complete"])


def raises(kind, function, *arguments, **keywords):
    """Whether a call raises an error of a kind."""
    try:
        function(*arguments, **keywords)
    except kind:
        return True
    return False


def refusals(engine):
    """Inputs of which every port has to say that they are wrong."""
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
            yield f"{name}: {what}", raises(
                InputError, getattr(engine, name), model, *inputs)
        yield f"gradients: {what}", raises(
            InputError, engine.gradients, model, *inputs, labels)
    for what, arrays_ in (
            ("missing", dict(list(weights.items())[1:])),
            ("surplus", {**weights, "more": np.ones(1)}),
            ("shape", {**weights, "encoder.layers.0.feed_forward.inner.bias":
                       np.ones(3)})):
        yield f"weights: {what}", raises(
            InputError, engine.build, "transformer", CONFIG, arrays_)
    yield from refused_by_components(engine, weights)
    settings = GenerationConfig(max_tokens=3)
    for what, source, changed, rows in (
            ("an id above", batch.source + 37, {}, None),
            ("eos", batch.source, {"eos_id": 99}, None),
            ("rows", batch.source, {}, np.arange(3)),
            ("tokens", batch.source, {"max_tokens": 65}, None)):
        yield f"generate: {what}", raises(
            InputError, engine.generate, model, source,
            settings.replace(**changed), rows=rows)
    trainer = engine.trainer(model, TrainingConfig())
    pairs = batch.source[None], batch.target[None]
    for what, sources, targets in (
            ("an id above", pairs[0] + 37, pairs[1]),
            ("a target above", pairs[0], pairs[1] + 41),
            ("as many", pairs[0][:, :2], pairs[1]),
            ("one token", pairs[0], pairs[1][:, :, :1])):
        yield f"train_step: {what}", raises(
            InputError, engine.train_step, trainer, sources, targets)


#: What knows of positions, each in its own way.
PLACED = {
    "a table": {}, "tokens": {"position_padding": True},
    "learned": {"positions": "learned"}, "attention": {"positions": "relative"}}


def refused_by_components(engine, weights):
    """What a component alone has to refuse, and what it must not."""
    rows = CONFIG.max_length
    for what, words in PLACED.items():
        config = CONFIG.replace(position_start=2, **words)
        positions = engine.build("positional_encoding", config, part(
            initial_weights(config), "source_positions."))
        for length, start in ((rows + 1, 0), (2, rows - 1)):
            yield f"positions by {what}: {length} from {start}", raises(
                InputError, engine.run, positions,
                np.ones((1, length, CONFIG.d_model)),
                np.ones((1, length), int), start=start)
        engine.run(positions, np.ones((1, 2, CONFIG.d_model)),
                   np.ones((1, 2), int), start=rows - 2)
    path = "encoder.layers.0.self_attention."
    attention = engine.build("multi_head_attention", CONFIG, part(
        weights, path))
    x, memory = (np.ones((2, length, CONFIG.d_model)) for length in (3, 4))
    for what, mask in (("numbers", np.ones((2, 1, 1, 4))),
                       ("queries", np.ones((2, 1, 4, 4), bool)),
                       ("keys", np.ones((2, 1, 1, 3), bool)),
                       ("axes", np.ones((2, 1, 4), bool))):
        yield f"attention: {what}", raises(
            InputError, engine.run, attention, x, memory, mask, cache=None)
    rotary = engine.build("multi_head_attention", CONFIG.replace(
        positions="rotary_halves"), part(weights, path))
    far = np.ones((1, rows + 1, CONFIG.d_model))
    yield "attention: rotated too far", raises(
        InputError, engine.run, rotary, far, far,
        np.ones((1, 1, 1, rows + 1), bool), cache=None)
    for shape in ((2, 1, 3, 4), (1, 6, 1, 4), (1, 1, 3, 1)):
        engine.run(attention, x, memory, np.ones(shape, bool), cache=None)
        yield f"attention: a mask of {shape}", True
