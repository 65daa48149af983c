"""Whether a dialect is what its original computes, on drawn models.

Theirs in ours: outputs, every layer's attention weights, the gradient of the
loss by every weight, and the loss and weights after a step of Adam. Ours in
theirs: outputs, after their library took our weights under its names.
"""

import dataclasses

import numpy as np

from transformer_contract.dialects.rows import names_of
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity.check.stored_outputs import earlier
from parity.numerics import zero_gradients
from parity.numerics.comparator import MATCH, ZERO, compare
from parity.numerics.tolerances import (
    FLOAT64_LIMIT, gradient_limit)
from parity.numerics.words import number
from parity_tests.originals import random_models

#: ε is large, so that a step is no more ill-conditioned than the gradient.
TRAINING = TrainingConfig(
    schedule="constant", learning_rate=0.1, eps=1.0, beta2=0.98)

#: What is compared, in the order of the table.
KINDS = ("outputs", "gradients", "training step", "ours in theirs")


@dataclasses.dataclass(frozen=True)
class ProofRow:
    """One array of one drawn model, compared in one port.

    Attributes:
        kind: one of KINDS.
        name: of our step, or of our weight.
        error: the relative error; None where none can be computed.
        matches: whether it is within the limit.
    """

    dialect: str
    seed: int
    port: str
    kind: str
    name: str
    error: float | None
    matches: bool

    def __str__(self):
        apart = ("no number can be compared" if self.error is None
                 else f"relative error {number(self.error)}")
        return (f"{self.dialect}, model {self.seed}, {self.port}, "
                f"{self.kind}: {self.name}, {apart}")


def prove(dialect, original_class, seed, engines):
    """Rows of a proof of the model that a seed draws, in every engine.

    Args:
        dialect: a Dialect.
        original_class: (dialect, described) -> their model.
        seed: from which sizes, weights and inputs follow.
        engines: port -> engine.
    """
    dialect = original_class.provable(dialect)
    described = random_models.described(dialect, seed, **original_class.DRAWN)
    original = original_class(dialect, described)
    original.load(random_state(dialect, original, seed))
    arrays = original.arrays()
    config, question = original.asked(dialect.config(described, arrays), seed)
    weights = original.completed(dialect.read(arrays, config), question.source)
    answers = original.run(question)
    loss, grads = original.gradients(question)
    stepped_loss = original.step(question, TRAINING)
    stepped = dialect.read(original.arrays(), config)
    probes = probe_weights(config, seed)
    original.load(dialect.write({
        name: probes[name] for name in dialect.wanted(config)}, config))
    probes = original.completed(probes, question.source)
    again = original.run(question)

    def found(port, kind, name, actual, expected, limit=FLOAT64_LIMIT,
              scale=None):
        if isinstance(expected, np.ma.MaskedArray):  # see Asked.seen
            actual, expected = (np.asarray(actual)[~expected.mask],
                                expected.compressed())
        difference = compare(np.asarray(actual, np.float64),
                             np.asarray(expected, np.float64), limit,
                             zero_scale=scale)
        return ProofRow(dialect.name, seed, port, kind, name, difference.error,
                       difference.verdict in (MATCH, ZERO))

    for port, engine in engines.items():
        steps = forward(engine, config, weights, question)
        for name, answer in answers.items():
            if step := dialect.step_of(name, config):
                yield found(port, "outputs", step, steps[step], answer)
        yield from _gradients(found, port, engine, dialect, config,
                              weights, question, loss, grads)
        yield from _step(found, port, engine, config, weights, question,
                         stepped_loss, {
                             name: stepped[name] for row
                             in learned(dialect, config, grads)
                             for name in names_of(row.ours)})
        steps = forward(engine, config, probes, question)
        for name, answer in again.items():
            if step := dialect.step_of(name, config):
                yield found(port, "ours in theirs", step, steps[step], answer)


def learned(dialect, config, grads):
    """The rows whose arrays are learned there; the others are buffers."""
    return [row for row in dialect.rows_of(config)
            if all(name in grads for name in names_of(row.theirs))]


def random_state(dialect, original, seed):
    """Random values of their arrays, a tied one under one name alone."""
    arrays = {name: array for name, array in original.arrays().items()
              if not dialect.holds_nothing(name)}
    tied = {alias for alias, name in dialect.aliases.items()
            if alias in arrays and name in arrays
            and np.array_equal(arrays[alias], arrays[name])}
    arrays = {name: array for name, array in arrays.items()
              if name not in tied}
    return random_models.random_arrays(arrays, seed)


def forward(engine, config, weights, question):
    """Every step of our model on a question."""
    model = engine.build("transformer", config, weights)
    return engine.forward(model, *inputs(config, question))


def inputs(config, question):
    """A question as our models are asked it: ids and masks.

    A model of one stack leaves aside what is of the other.
    """
    source = question.target if question.source is None else question.source
    target = question.source if question.target is None else question.target
    keep = (source != config.pad_id)[:, None, None, :]
    if question.types is not None:
        source = source + config.source_vocab * question.types
    return source, target, keep, earlier(target)


def _gradients(found, port, engine, dialect, config, weights, question, loss,
               grads):
    """The loss, and its gradient by every weight that theirs has one for."""
    model = engine.build("transformer", config, weights)
    our_loss, our_grads = engine.gradients(
        model, *inputs(config, question), question.labels)
    yield found(port, "gradients", "loss", our_loss, loss)
    limit = gradient_limit("float64", 0.0, of_one=True)
    for row in learned(dialect, config, grads):
        made = row.how.read(config, *(grads[name]
                                      for name in names_of(row.theirs)))
        parts = (made,) if isinstance(row.ours, str) else made
        for name, part in zip(names_of(row.ours), parts):
            scale = (float(np.abs(our_grads[zero_gradients.beside(name)]
                                  ).max())
                     if zero_gradients.is_zero(name, config.positions)
                     else None)
            yield found(port, "gradients", name, our_grads[name], part, limit,
                        scale)


def _step(found, port, engine, config, weights, question, loss, stepped):
    """The loss of a step of Adam, and every weight after it."""
    model = engine.build("transformer", config, weights)
    trainer = engine.trainer(model, TRAINING)
    source, target, *_ = inputs(config, question)
    result = engine.train_step(
        trainer, source[None],
        np.concatenate([target[:, :1], question.labels], axis=1)[None])
    yield found(port, "training step", "loss", result["loss"], loss)
    after = engine.export(trainer.model)
    for name, array in stepped.items():
        yield found(port, "training step", name, after[name], array)
