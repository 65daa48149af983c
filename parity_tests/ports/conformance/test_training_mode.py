"""A model that a user trains: what it drops, and in which mode it is left."""

import contextlib
import importlib
from unittest import mock

import numpy as np
import pytest

from transformer_contract.dropping import places
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity import assert_parity, ports
from parity.check import cases
from parity.check.port_properties import modes
from parity.numerics.tolerances import FLOAT64_GRADIENT
from parity_tests.support.conformance import equal, holds

pytestmark = [pytest.mark.long, pytest.mark.forms("readable", "fast")]

RATE = 0.4

CONFIG = cases.test_size("vaswani2017_base").replace(
    dropout=RATE, n_encoder_layers=1, n_decoder_layers=1)

KEY = np.array([3, 4], np.uint32)

#: What a class of each framework calls a layer by.
CALLS = "forward", "call", "__call__"


def asked(engine):
    """A model, its batch and labels, and how users of its framework ask it."""
    if engine.NAME == "numpy":
        pytest.skip("not asked: NumPy has no gradients but the reference's")
    batch = cases.padded_batch(CONFIG)
    return (engine.build("transformer", CONFIG, probe_weights(CONFIG, 3)),
            batch, np.roll(batch.target, -1, axis=1),
            importlib.import_module(
                f"parity_tests.ports.citizens.{engine.NAME}"))


@contextlib.contextmanager
def seen(engine, model):
    """{path of each Dropout: (its inputs, what they become)}, as they come."""
    dropout = ports.module_of(engine.NAME, "dropout").Dropout
    paths = {id(part): path for path, part in ports.module_of(
        engine.NAME, "parameters").modules(model)}
    name = next(each for each in CALLS if each in vars(dropout))
    plain, found = getattr(dropout, name), {}

    def call(self, x, *more, **words):
        left = plain(self, x, *more, **words)
        found.setdefault(paths[id(self)], (x, left))
        return left
    with mock.patch.object(dropout, name, call):
        yield found


def test_what_is_dropped_in_training(subject):
    """Values of its own in each place, row and call; and the gradient is of
    what was kept."""
    model, batch, labels, citizen = asked(subject)
    cross_entropy = ports.module_of(subject.NAME, "loss").cross_entropy
    native = [subject.to_native(array, "cpu") for array in (*batch, labels)]

    def loss(model, call):
        with seen(subject, model) as found:
            output = call(*native[:4])
        return cross_entropy(
            output, native[4], CONFIG.pad_id, CONFIG.label_smoothing,
            CONFIG.smoothing), found

    calls = [citizen.trained(model, loss) for _ in range(2)]
    kept = [{name: subject.to_numpy(left) != 0 for name, (x, left)
             in found.items()} for _, found, _ in calls]
    shapes = places(CONFIG, *batch.source.shape, batch.target.shape[1])
    equal("places", {*kept[0]}, {*shapes})
    some = {name: subject.to_numpy(x) != 0
            for name, (x, _) in calls[0][1].items()}
    for name, shape in shapes.items():
        mask, there = kept[0][name], some[name]
        equal(f"shape of {name}", mask.shape, shape)
        share = mask[there].mean()
        holds(f"share kept in {name}", abs(share - 1 + RATE) < 0.15,
              f"expected {1 - RATE}, found {share}")
        others = {"the next call": kept[1][name],
                  "the next row": np.roll(mask, 1, axis=0),
                  **{other: kept[0][other] for other in shapes
                     if other > name and shapes[other] == shape}}
        for what, other in others.items():
            share = (mask != other)[there].mean()
            holds(f"what {name} keeps is not what {what} keeps", share > 0.2,
                  f"expected another in {2 * RATE * (1 - RATE)}, found "
                  f"{share}")
    reference = ports.engine("numpy")
    with mock.patch(f"{reference.__package__}.engine.draw",
                    lambda *_: kept[0]):
        value, truth = reference.gradients(reference.build(
            "transformer", CONFIG, probe_weights(CONFIG, 3)), *batch, labels,
            KEY)
    assert_parity(subject.to_numpy(calls[0][0]), value, name="loss")
    for name, array in calls[0][2].items():
        if not name.endswith("key.bias"):  # zero, or rounding
            assert_parity(array, truth[name], name=f"gradient {name}",
                          limit=FLOAT64_GRADIENT)


def same_modes(place, found, expected):
    """Fail unless each part is in the mode in which it was."""
    equal(f"parts in another mode after {place}",
          [path for path in found if found[path] != expected[path]], [])


def test_modes_stay(subject):
    """Whatever works drops nothing in a model that trains in part, and leaves
    each part's mode; also where it is interrupted."""
    model, batch, labels, _ = asked(subject)
    training = TrainingConfig(schedule="constant", learning_rate=1e-30)
    settings = GenerationConfig(max_tokens=2)
    pairs = batch.source[None], batch.target[None]
    source = subject.to_native(batch.source, "cpu")
    works = {
        "predict": lambda: subject.predict(model, *batch),
        "forward": lambda: subject.forward(model, *batch)["output"],
        "gradients": lambda: subject.gradients(model, *batch, labels)[0],
        "the engine's generate": lambda: subject.generate(
            model, batch.source, settings)["scores"],
        "generate": lambda: subject.to_numpy(
            model.generate(source, max_tokens=2)),
        "train_step": lambda: subject.train_step(
            subject.trainer(model, training), *pairs)["loss"]}
    if hasattr(model, "train"):
        model.eval()
    expected = {name: work() for name, work in works.items()}
    if hasattr(model, "train"):
        model.train()
        model.encoder.eval()
    before = modes(subject, model)
    for name, work in works.items():
        equal(name, work(), expected[name])
        same_modes(name, modes(subject, model), before)
        if not before:
            continue
        with mock.patch.object(
                type(model), "decode", side_effect=KeyboardInterrupt):
            with contextlib.suppress(KeyboardInterrupt):
                work()
        same_modes(f"{name}, interrupted", modes(subject, model), before)
