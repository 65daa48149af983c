"""A cell of a precision tier: float32 weights, and products that are not.

There are three tensors: the truth, by the reference in float64 on the same
float32 weights; what the reference gives with the tier's products, whose
distance from the truth the limit follows from; and what a port gives. In a tier
that trains, what must be float32 may not hold 16 bits alone: a norm, a moment
or a master copy that was rounded is often within any limit, and is seen by
that.
"""

import contextlib
import functools
import time
from unittest import mock

import numpy as np

from transformer_contract.batch import check_inputs
from transformer_contract.dropping import dropping
from transformer_contract.loss_scale import LossScale
from transformer_contract.scaled_steps import scaled_step
from transformer_contract.training import TrainingConfig
from parity import ports
from parity.check import cases, golden, training_runs
from parity.check.runners import EngineRunner, own_error
from parity.matrix.updates import Updates
from parity.numerics import mixed, rounding, tolerances
from parity.numerics.comparator import (
    DIVERGENCE, Difference, compare)

#: How many steps are trained.
STEPS = 6

#: Below this share of the reference's own error in a tier, a run had none of
#: the tier's rounding.
NEAR = 0.1

#: Adam's ε keeps in bounds what a gradient that is nearly rounding moves.
TRAINING = TrainingConfig(
    schedule="constant", learning_rate=2.0**-12, warmup_steps=1,
    clip_norm=1.0, eps=training_runs.STEADY_EPS)


class Emulated:
    """The reference in a tier; in none it is the truth.

    Args:
        config, arrays: of a model; float32 weights by name.
        tier: a name of one, or "".
        kind: mixed.PRODUCTS, LONG_SOFTMAX or WHOLE.
    """

    def __init__(self, config, arrays, tier="", kind=mixed.PRODUCTS):
        self.config, self.tier, self.kind = config, tier, kind
        self.engine = ports.engine("numpy")
        self.parameters = ports.module_of("numpy", "parameters")
        self.dtype = "float32" if tier else "float64"
        self.model = self.engine.build(
            "transformer", config, arrays, self.dtype)

    @contextlib.contextmanager
    def cast(self):
        """Have the model compute in the tier."""
        linear = {f"{path}." for path, owner
                  in self.parameters.modules(self.model)
                  if hasattr(owner, "kernel")}
        weights = [(weight, weight.get())
                   for weight in self.parameters.leaves(self.model)]
        try:
            for weight, array in weights if self.tier else ():
                path, _, _ = weight.name.rpartition(".")
                weight.set(mixed.emulated(
                    array, self.tier, self.kind, f"{path}." in linear))
            with self.softmaxes():
                yield
        finally:
            for weight, array in weights:
                weight.set(array)

    @contextlib.contextmanager
    def softmaxes(self):
        """Have every softmax compute in float32, if the kind says so."""
        found = [(owner, "softmax") for _, owner
                 in self.parameters.modules(self.model)
                 if hasattr(owner, "softmax")]
        if self.config.output == "log_probs":
            found.append((self.model, "output_function"))
        if self.kind != mixed.LONG_SOFTMAX or not mixed.short_of(self.tier):
            found = []
        with contextlib.ExitStack() as stack:
            for owner, name in found:
                function = getattr(owner, name)
                stack.enter_context(mock.patch.object(
                    owner, name, lambda x, *mask, function=function:
                    function(mixed.widened(x), *mask)))
            yield

    def run(self, inputs):
        """Every step of a model by name."""
        with self.cast():
            return self.engine.run(self.model, *inputs)

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def loss_and_gradients(self, model, inputs, labels, drawn, scale):
        """The loss, and its gradient by every weight of the model."""
        loss = ports.module_of("numpy", "loss")
        config, scale = self.config, np.dtype(self.dtype).type(scale)
        convention = config.pad_id, config.label_smoothing, config.smoothing
        with (self.cast(), np.errstate(over="ignore", invalid="ignore"),
              dropping(self.parameters.paths(self.model), drawn)):
            output, cache = model.forward(*inputs)
            plain, back = mixed.wide(output) if self.tier else (
                output, np.asarray)
            doutput = loss.cross_entropy_backward(plain, labels, *convention)
            g = self.parameters.flatten(model.backward(
                back(doutput * scale), cache))
        return loss.cross_entropy(plain, labels, *convention), [
            np.asarray(g[weight.name]) / scale
            for weight in self.parameters.leaves(model)]


class EmulatedTrainer:
    """The reference in training, in a tier or none."""

    def __init__(self, emulated, training):
        self.emulated, self.scale = emulated, LossScale()
        self.trainer = emulated.engine.trainer(emulated.model, training)

    def __getattr__(self, name):
        return getattr(self.trainer, name)

    def train_step(self, source, target, skipped=None):
        """Make a step: see ``scaled_step``; and the weights after it."""
        numbers = scaled_step(
            self, self.emulated, ports.module_of("numpy", "random"),
            ports.module_of("numpy", "optimizer").clip_by_global_norm,
            source, target, skipped)
        return numbers | {"weights": self.emulated.engine.export(self.model)}

    def update(self, gradients):
        """Move every weight."""
        trainer = self.trainer
        trainer.step += 1
        settings = trainer.optimizer.settings(trainer.step)
        for i, old in enumerate(
                self.emulated.parameters.leaves(self.emulated.model)):
            weight, trainer.m[i], trainer.v[i] = trainer.optimizer.update(
                old.get(), gradients[i], trainer.m[i], trainer.v[i],
                *settings)
            old.set(weight)


def vector(arrays, names):
    """Arrays by name as one vector in float64, in the order of names."""
    return np.concatenate([
        np.asarray(arrays[name], np.float64).ravel() for name in names])


@functools.cache
def smooth_model(preset):
    """The config of a preset, its float32 weights, and a batch.

    A ReLU's gradient jumps where rounding decides the sign of its input, and in
    16 bits it always does somewhere, so that the activation is smooth here.
    """
    config = training_runs.configured(cases.test_size(preset)).replace(
        activation="silu")
    return config, {
        name: rounding.rounded(array, "float32")
        for name, array in golden.shipped(preset).items()}, \
        cases.padded_batch(config)


def measured(bench, subject, work, preset):
    """What a SubjectCell needs of a port in a tier; a text if it has none."""
    if subject.device not in bench.engine.devices():
        return f"{bench.engine.NAME} has no device {subject.device} here"
    theirs = ports.mixed(bench.engine.NAME)
    if theirs is None:
        return f"{bench.engine.NAME} has no mixed precision here"
    if reason := theirs.missing(subject.dtype, subject.device):
        return reason
    engine = theirs.MixedEngine(mixed.short_of(subject.dtype), subject.dtype)
    start = time.perf_counter()
    differences, own = COMPARED[work](
        engine, theirs.kind(subject.device), subject, preset)
    whole = {"forward": "output", "gradients": "all weights",
             "training": f"step {STEPS} movement"}[work]
    ratio = beside(differences, own, whole)
    if mixed.short_of(subject.dtype) and ratio is not None and ratio < NEAR:
        differences[whole] = Difference(
            differences[whole].error, differences[whole].limit, DIVERGENCE,
            f"it is nearer than {subject.dtype} allows: it was not computed so")
    return {"differences": differences, "seconds": None,
            "beside": ratio,
            "preparing": time.perf_counter() - start}


def beside(differences, own, name):
    """An error over that of the reference in the same dtype, if it has one."""
    if not own.get(name) or differences[name].error is None:
        return None
    return float(differences[name].error / own[name])


class TierFindings:
    """Differences in a tier, and the reference's own errors, by name."""

    def __init__(self, tier):
        self.tier, self.short = tier, mixed.short_of(tier)
        self.differences, self.own = {}, {}

    def add(self, name, array, truth, low):
        """Compare an array with the truth; its limit is from ``low``'s error.
        """
        truth = np.asarray(truth)
        if truth.dtype.kind in "biu":
            self.differences[name] = compare(array, truth, 0.0)
            return
        own = own_error(np.asarray(low), truth)
        self.own[name] = own
        self.differences[name] = compare(
            np.asarray(array).astype(np.float64), truth,
            tolerances.tier_limit(self.tier, own))

    def diverge(self, name, reason):
        """Note what no number shows."""
        self.differences[name] = Difference(None, 0.0, DIVERGENCE, reason)

    def hold_as(self, name, array, low):
        """Check that an array holds more than 16 bits if the reference's does.
        """
        if self.short and not mixed.holds_no_more(low, self.short):
            self.hold(name, array, True)

    def hold(self, name, array, long):
        """Check that an array holds 16 bits, or more than those."""
        if not self.short or mixed.holds_no_more(array, self.short) != long:
            return
        self.diverge(name, f"it holds no more than {self.short}" if long else
                     f"it was not computed in {self.short}")


def compared_steps(engine, kind, subject, preset):
    """Every step of a forward pass."""
    config, arrays, batch = smooth_model(preset)
    inputs = cases.model_case(batch).inputs
    check_inputs(config, *inputs)
    model = EngineRunner(
        engine, config, arrays, "float32", subject.device).model
    steps = engine.run(model, *inputs)
    truth = Emulated(config, arrays).run(inputs)
    low = Emulated(config, arrays, subject.dtype, kind).run(inputs)
    found = TierFindings(subject.dtype)
    for name in dict.fromkeys([*steps, *truth]):
        if name not in truth or name not in steps:
            found.diverge(name, "the reference has no such step"
                          if name in steps else "the port has no such step")
            continue
        found.add(name, steps[name], truth[name], low[name])
        if not found.short or truth[name].dtype.kind in "biu":
            continue
        long = not mixed.holds_no_more(low[name], found.short)
        if not long or kind != mixed.WHOLE and mixed.is_long(low[name]):
            found.hold(name, steps[name], long)
    return found.differences, found.own


def compared_gradients(engine, kind, subject, preset):
    """The loss, and its gradient by all weights."""
    config, arrays, batch = smooth_model(preset)
    *inputs, labels = cases.gradients_case(batch, config.pad_id).inputs
    model = EngineRunner(
        engine, config, arrays, "float32", subject.device).model
    loss, gradients = engine.gradients(model, *inputs, labels)
    truth = Emulated(config, arrays)
    (exact, exact_gradients), (low, low_gradients) = (
        one.loss_and_gradients(one.model, inputs, labels, {}, scale)
        for one, scale in ((truth, 1.0), (
            Emulated(config, arrays, subject.dtype, kind), 1024.0)))
    found = TierFindings(subject.dtype)
    found.add("loss", loss, np.asarray(exact), low)
    found.hold("loss", loss, True)
    names = list(truth.export(truth.model))
    shorts = dict(zip(names, low_gradients))
    found.add("all weights", vector(gradients, names), *(
        vector(dict(zip(names, each)), names)
        for each in (exact_gradients, low_gradients)))
    for name in arrays if kind != mixed.WHOLE else ():
        if f"{name.rpartition('.')[0]}.kernel" not in arrays:
            found.hold_as(name, gradients[name], shorts[name])
    return found.differences, found.own


def compared_training(engine, kind, subject, preset):
    """Some steps of training: losses, norms, scales and how weights moved."""
    config, arrays, batch = smooth_model(preset)
    trainer = engine.trainer(engine.build(
        "transformer", config, arrays, "float32", subject.device), TRAINING)
    exact, low = (EmulatedTrainer(Emulated(config, arrays, *how), TRAINING)
                  for how in ((), (subject.dtype, kind)))
    found, first = TierFindings(subject.dtype), vector(arrays, arrays)
    updates = Updates(exact.trainer.optimizer, arrays)
    for number in range(1, STEPS + 1):
        pairs = [ids[:1] for ids in training_runs.batches(config, number)]
        numbers = engine.train_step(trainer, *pairs)
        source, target = (ids[0] for ids in pairs)
        theirs = low.train_step(source, target)
        scale, skipped = theirs["scale"], theirs["skipped"]
        truth = exact.train_step(source, target, skipped)
        step = f"step {number}"
        if numbers["scale"] != scale:
            found.diverge(f"{step} scale", f"{numbers['scale']:g}, and not "
                          f"{scale:g}")
        exported = engine.export(trainer.model)
        weights = vector(exported, arrays)
        if np.isfinite(theirs["loss"]):
            found.add(f"{step} loss", numbers["loss"], truth["loss"],
                      theirs["loss"])
        if skipped:
            if not np.array_equal(weights, first):
                found.diverge(f"{step} weights", "a step that overflows moved "
                              "them")
            continue
        found.add(f"{step} norm", numbers["norm"], truth["norm"],
                  theirs["norm"])
        found.add(f"{step} movement", weights - first, *(
            vector(each["weights"], arrays) - first
            for each in (truth, theirs)))
        moments, low_moments = (
            each.moments(of) for each, of in (
                (engine, trainer), (low.emulated.engine, low.trainer)))
        for name, array in exported.items():
            found.hold_as(f"{step} {name}", array, theirs["weights"][name])
        for name, array in moments.items():
            found.hold_as(f"{step} {name}", array, low_moments[name])
        for name, words in updates.problems(
                exported, moments, float(numbers["norm"]), found.short).items():
            found.diverge(f"{step} {name}", words)
    if np.isfinite(weights).all():  # no model is made of others
        new = engine.build(
            "transformer", config, exported, "float32", subject.device)
        inputs = cases.gradients_case(batch, config.pad_id).inputs
        ours, theirs = (float(engine.gradients(model, *inputs)[0])
                        for model in (trainer.model, new))
        if ours != theirs:
            found.diverge("loss after training", f"{ours:g}, and {theirs:g} "
                          "of a new model of the same weights")
    return found.differences, found.own


#: What a tier is asked for a work.
COMPARED = {"forward": compared_steps, "gradients": compared_gradients,
            "training": compared_training}

