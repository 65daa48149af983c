"""Training runs in lockstep: the reference and every port, step by step.

All begin with the same weights, see the same batches and drop the same values.
After each step the loss, the gradient's norm, every weight and both of Adam's
moments are compared in float64, so that where runs part, the step and the
tensor are named in which they first do.

Runs may part a little further with each step: a rounding in a gradient is a
rounding in a weight, from which the next gradient is computed. Limits stand at
1e-10 for that. One thing may go anywhere: the bias of a key. Its gradient is
zero, what is computed is rounding, and Adam divides it by its own size; but it
touches no output (see ``compare.within``).
"""

import collections
import dataclasses

import numpy as np

from contract.training import TrainingConfig
from parity import ports
from parity.check import cases, workers
from parity.numerics import tolerances, zero_gradients
from parity.numerics.comparator import (
    DIVERGENCE, FREE, Difference, compare, within)

#: What a step is compared by.
KINDS = ("loss", "norm", "weights", "m", "v")

LIMIT = tolerances.LOCKSTEP_LIMIT

#: All that a run can have: a schedule, clipping, and two batches a step.
TRAINING = TrainingConfig(warmup_steps=400, clip_norm=1.0)
ACCUMULATED = 2

SMOOTHING = 0.1

#: How many steps a port may be before the one that is compared.
AHEAD = 3


def configured(config):
    """A preset's config with label smoothing, whether it has some or not."""
    return config.replace(
        label_smoothing=config.label_smoothing or SMOOTHING)


def batches(config, step):
    """Sources [A B S] and targets [A B T] of a step, padded on any side."""
    found = []
    for i in range(ACCUMULATED):
        batch = cases.padded_batch(config)
        sources, targets = batch.source.copy(), batch.target.copy()
        for ids, what, vocab in (
                (sources, "source", config.source_vocab),
                (targets, "target", config.target_vocab)):
            drawn = cases.ids(f"{what} {step} {i}", *ids.shape, vocab)
            ids[...] = np.where(ids == config.pad_id, ids, drawn)
        found.append((sources, targets))
    return tuple(map(np.stack, zip(*found)))


class TrainingRunner:
    """One implementation's training run.

    Attributes:
        trainer: the engine's.
    """

    def __init__(self, engine, config, weights, device="cpu"):
        self.engine = engine
        self.model = engine.build(
            "transformer", config, weights, "float64", device)
        self.trainer = engine.trainer(self.model, TRAINING)

    def step(self, sources, targets):
        """Make a step; what is compared, by kind and name."""
        found = self.engine.train_step(self.trainer, sources, targets)
        moments = self.engine.moments(self.trainer)
        return {
            "loss": {"loss": found["loss"]},
            "norm": {"norm": found["norm"]},
            "weights": dict(self.engine.export(self.model)),
            **{kind: {name.removeprefix(f"{kind}."): array
                      for name, array in moments.items()
                      if name.startswith(f"{kind}.")}
               for kind in ("m", "v")}}


@dataclasses.dataclass
class TrainingTruth:
    """What the reference found in a step, and how far it may have walked."""

    steps: dict
    walked: float

    def compare(self, kind, found):
        """The worst Difference of a kind; its reason names the tensor."""
        truth = self.steps[kind]
        if found.keys() != truth.keys():
            odd = sorted(found.keys() ^ truth.keys())[0]
            return Difference(None, LIMIT, DIVERGENCE, f"no tensor {odd}")
        worst = None
        for name, expected in truth.items():
            difference = self._compare_one(
                kind, name, found[name], expected, truth)
            if difference.verdict == DIVERGENCE:
                words = f": {difference.reason}" if difference.reason else ""
                return dataclasses.replace(
                    difference, reason=f"in {name}{words}")
            if difference.verdict != FREE and (
                    worst is None or difference.error > worst.error):
                worst = difference
        return worst

    def _compare_one(self, kind, name, found, expected, truth):
        if kind == "weights" and zero_gradients.is_zero(name):
            return within(found, expected, 2 * self.walked)
        return compare(found, expected, LIMIT,
                       zero_scale=zero_gradients.scale(name, truth))


def begin(bench, model):
    """Have a port begin a run of a workers.ModelSpec."""
    bench.training = TrainingRunner(
        bench.engine, model.config, workers.take(model.weights), model.device)


def go_on(bench, sources, targets):
    """Have a port make a step."""
    return bench.training.step(sources, targets)


def compared(config, weights, ports_at_work, steps, device="cpu",
             shelf=None):
    """Yield (step, kind, shape, {port: Difference}), five a step.

    A port that fails is a divergence from there on. Ports in processes of
    their own are up to AHEAD steps before the one that is compared; here none
    is, for what it found may be its own memory, which the next step changes.

    Args:
        ports_at_work: port -> workers.Here or workers.Apart.
        shelf: where weights are handed over, for ports that work apart.
    """
    config = configured(config)
    model = workers.ModelSpec(
        "training", config, "float64", device,
        shelf.put(weights) if shelf else weights)
    begun = {name: port.ask("training", begin, model)
             for name, port in ports_at_work.items()}
    reference = TrainingRunner(ports.engine("numpy"), config, weights)
    failed = {name: told.failure for name, future in begun.items()
              if (told := future.result()).failure}
    ahead = AHEAD if all(
        port.apart for port in ports_at_work.values()) else 0
    walked, waiting = 0.0, collections.deque()
    for asked in range(1, steps + ahead + 1):
        if asked <= steps:
            pairs = batches(config, asked)
            waiting.append((asked, pairs, {
                name: port.ask(f"training, step {asked}", go_on, *pairs)
                for name, port in ports_at_work.items()}))
        if asked <= ahead:
            continue
        step, pairs, answers = waiting.popleft()
        truth = reference.step(*pairs)
        # Kingma and Ba 2015, section 2.1: no step is longer than the learning
        # rate times (1 - β₁) / √(1 - β₂), or than the learning rate.
        walked += reference.trainer.optimizer.settings(step)[0] * max(
            1, (1 - TRAINING.beta1) / (1 - TRAINING.beta2)**0.5)
        truth, found = TrainingTruth(truth, walked), {}
        for name, future in answers.items():
            told = future.result()
            found[name] = told.value
            if told.failure:
                failed.setdefault(name, told.failure)
        for kind in KINDS:
            yield step, kind, shape_of(truth.steps[kind]), {
                name: (Difference(None, LIMIT, DIVERGENCE, failed[name])
                       if name in failed
                       else truth.compare(kind, found[name][kind]))
                for name in ports_at_work}


def shape_of(arrays):
    """The shape of the only array, or the number of values in all."""
    if len(arrays) == 1:
        return next(iter(arrays.values())).shape
    return (sum(array.size for array in arrays.values()),)
