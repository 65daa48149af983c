"""Training runs in lockstep: the reference and every port, step by step.

All begin with the same weights, see the same batches and drop the same values.
After each step the loss, the gradient's norm, every weight and both of Adam's
moments are compared, so that where runs part, the step and the tensor are named
in which they first do. In a run that varies conditions, so are the learning
rate, the number of the step, and the checkpoint where there is one; and in some
the answer of the trained model, which was asked the same before the first step.

Runs may part a little further with each step: a rounding in a gradient is a
rounding in a weight, from which the next gradient is computed. Limits stand at
1e-10 for that in float64; in float32 they follow the reference's own error in a
run in float32. One thing may go anywhere: the bias of a key. Its gradient is
zero, what is computed is rounding, and Adam divides it by its own size; but it
touches no output (see ``compare.within``).
"""

import collections
import dataclasses
import pathlib
import tempfile

import numpy as np

from transformer_contract import checkpoint, weights
from transformer_contract.batch import Batch
from transformer_contract.weights import probe_weights, select
from parity import ports
from parity.check import workers
from parity.check.runners import InputsChanged, own_error
from parity.check.shared_arrays import load
from parity.check.training_runs import OWN, usual
from parity.numerics import rounding, tolerances, zero_gradients
from parity.numerics.comparator import (
    DIVERGENCE, FREE, Difference, compare, within)

#: What a step is compared by; and in a run that varies conditions.
KINDS = ("loss", "norm", "weights", "m", "v")
ALL_KINDS = (*KINDS, "rate", "step")
ANSWER = "answer"
CHECKPOINT_KINDS = ("weights", "m", "v")

LIMIT = tolerances.LOCKSTEP_LIMIT

#: What must be equal: whole numbers, and bits.
EXACT = ("step", "key")

#: How many steps a port may be before the one that is compared.
PREFETCH = 3


class TrainingRunner:
    """One implementation, making a TrainingRun.

    Attributes:
        trainer: the engine's.
    """

    def __init__(self, engine, run, arrays, device="cpu"):
        self.engine, self.run, self.device = engine, run, device
        copies = {name: array.copy() for name, array in arrays.items()}
        self.trainer = engine.trainer(engine.build(
            "transformer", run.config, copies, run.dtype, device),
            run.training)
        self._inputs = copies, arrays

    def step(self, sources, targets):
        """Make a step; what is compared, by kind and name.

        Raises:
            InputsChanged: the engine wrote into what it was given.
        """
        pairs = sources.copy(), targets.copy()
        numbers = self.engine.train_step(self.trainer, *pairs)
        for what, ours, theirs in (
                ("sources", pairs[0], sources), ("targets", pairs[1], targets),
                *((name, array, self._inputs[1][name])
                  for name, array in self._inputs[0].items())):
            if not np.array_equal(ours, theirs):
                raise InputsChanged(f"it wrote into its input, {what}")
        return {**{name: {name: numbers[name]}
                   for name in ("loss", "norm", "rate")},
                "step": {"step": np.asarray(self.trainer.step)},
                **by_kind(checkpoint.arrays(self.engine, self.trainer))}

    def answer(self, sources, targets):
        """What the model answers to a step's first batch now, by kind."""
        config = self.run.config
        batch = Batch.of_ids(
            sources[0], targets[0], config.pad_id).check(config)
        return {ANSWER: {"output": self.engine.predict(
            self.trainer.model, *batch)}}

    def save(self, path):
        """Write a checkpoint: its arrays, by kind and name."""
        weights.save(path, checkpoint.arrays(self.engine, self.trainer))
        return by_kind(weights.load(path)[0])

    def resume(self, path, pairs):
        """Go on from a checkpoint, with a new model.

        The old one makes a step first, which must not matter to the new one.
        """
        self.engine.train_step(self.trainer, *pairs)
        run = self.run
        self.trainer = checkpoint.resumed(
            self.engine, path, run.config, run.training, run.dtype,
            self.device)


def by_kind(arrays):
    """A checkpoint's arrays: {"weights", "m" and "v": {name: array}}."""
    return {kind: select(arrays, f"{kind}.") for kind in CHECKPOINT_KINDS}


@dataclasses.dataclass
class TrainingOracle:
    """What the reference found in a step, and how far it may have walked.

    Attributes:
        steps: {kind: {name: array}}, in float64.
        walked: no weight has moved by more.
        dtype: in which ports compute.
        own: {kind: {name: the reference's own error}} in a lower dtype.
        positions: the config's word for them.
    """

    steps: dict
    walked: float
    dtype: str = "float64"
    own: dict = dataclasses.field(default_factory=dict)
    positions: str = ""

    def compare(self, kind, arrays):
        """The worst Difference of a kind; its reason names the tensor."""
        truth = self.steps[kind]
        if arrays.keys() != truth.keys():
            odd = sorted(arrays.keys() ^ truth.keys())[0]
            return Difference(
                None, self.limit(kind), DIVERGENCE, f"no tensor {odd}")
        worst = None
        for name, expected in truth.items():
            difference = self._compare_one(
                kind, name, arrays[name], expected, truth)
            if difference.verdict == DIVERGENCE:
                words = f": {difference.reason}" if difference.reason else ""
                return dataclasses.replace(
                    difference, reason=f"in {name}{words}")
            if difference.verdict != FREE and (
                    worst is None or shared(difference) > shared(worst)):
                worst = difference
        return worst

    def limit(self, kind, name=None):
        """The limit of a tensor; of a kind, its least."""
        if kind in EXACT:
            return 0.0
        if kind == "rate":  # Python's own float, in every dtype
            return tolerances.FLOAT64_LIMIT
        return tolerances.lockstep_limit(
            self.dtype, self.own.get(kind, {}).get(name, 0.0))

    def _compare_one(self, kind, name, array, expected, truth):
        limit = self.limit(kind, name)
        dtype = "float64" if kind == "rate" else self.dtype
        if kind == "weights" and zero_gradients.is_zero(
                name, self.positions):
            return within(array, expected, 2 * self.walked, dtype)
        if expected.dtype.kind in "biu":
            return compare(array, expected, limit)
        if not expected.any():
            return still(array, expected, limit, dtype)
        return compare(array, expected, limit, dtype,
                       zero_gradients.scale(name, truth, self.positions))


def shared(difference):
    """What part of its limit an error takes; 0 for what is equal."""
    return difference.share or 0.0


def still(array, expected, limit, dtype):
    """Compare with zeros: nothing to learn from leaves a moment zero."""
    if isinstance(array, np.ndarray) and not array.any():
        return compare(np.ones_like(array), np.ones_like(expected), limit,
                       dtype)
    return dataclasses.replace(
        compare(array, expected, limit, dtype), verdict=DIVERGENCE)


# What ports are asked

def begin(bench, run, model):
    """Have a port begin a TrainingRun of a workers.ModelSpec."""
    bench.training = TrainingRunner(
        bench.engine_of(model), run, load(model.weights),
        model.device)


def go_on(bench, sources, targets):
    """Have a port make a step."""
    return bench.training.step(sources, targets)


def answer(bench, sources, targets):
    """Ask a port's model in training."""
    return bench.training.answer(sources, targets)


def save(bench, path):
    """Have a port save its run, and read back what it wrote."""
    return bench.training.save(path)


def resume(bench, path, pairs):
    """Have a port go on from a checkpoint, once its old run went elsewhere."""
    return bench.training.resume(path, pairs)


class ReferenceRun:
    """A TrainingRun of the reference: the truth of every step.

    In a lower dtype it makes the run twice, in float64 and in that dtype, on
    the same rounded weights.
    """

    def __init__(self, run, arrays):
        self.run, self.walked, self.steps, self.low = run, 0.0, 0, None
        engine = ports.engine("numpy")
        exact = dataclasses.replace(run, dtype="float64")
        self.exact = TrainingRunner(engine, exact, {
            name: array.astype(np.float64) for name, array in arrays.items()})
        if run.dtype != "float64":
            self.low = TrainingRunner(engine, run, arrays)

    def step(self, sources, targets):
        """The TrainingOracle of the next step."""
        arrays_by_kind = self.exact.step(sources, targets)
        self.steps += 1
        # Kingma and Ba 2015, section 2.1: no step is longer than the learning
        # rate times (1 - β₁) / √(1 - β₂), or than the learning rate.
        training = self.run.training
        self.walked += self.exact.trainer.optimizer.settings(
            self.steps)[0] * max(
            1, (1 - training.beta1) / (1 - training.beta2)**0.5)
        own = self.low and {
            kind: {name: own_error(array, arrays_by_kind[kind][name])
                   for name, array in arrays.items()}
            for kind, arrays in self.low.step(sources, targets).items()}
        return TrainingOracle(
            arrays_by_kind, self.walked, self.run.dtype, own or {},
            self.run.config.positions)

    def answer(self, sources, targets):
        """The TrainingOracle of the model's answer now."""
        answers = self.exact.answer(sources, targets)
        own = self.low and {ANSWER: {"output": own_error(
            self.low.answer(sources, targets)[ANSWER]["output"],
            answers[ANSWER]["output"])}}
        return TrainingOracle(answers, self.walked, self.run.dtype, own or {})

    def save(self, path):
        """Write its checkpoint, in the dtype that ports compute in."""
        (self.low or self.exact).save(path)


def compared(config, arrays, ports_at_work, steps):
    """Yield (step, kind, shape, {port: Difference}) of a usual run."""
    for step, kind, shape, _, differences in compared_run(
            usual(config, steps), arrays, ports_at_work):
        yield step, kind, shape, differences


def kinds_of(run):
    """What a step of a run is compared by."""
    return ALL_KINDS if run.conditions else KINDS


def comparisons(run):
    """How many comparisons a port makes of a run."""
    return (run.steps * len(kinds_of(run)) + run.asked
            + bool(run.saved) * len(CHECKPOINT_KINDS))


def compared_run(run, arrays, ports_at_work, device="cpu", shared=None,
                 form="readable"):
    """Yield (step, kind, shape, limit, {port: Difference}) of a run.

    A port that fails is a divergence from there on. Ports in processes of
    their own are up to PREFETCH steps before the one that is compared; here
    none is, for its answers may be its own arrays, which the next step changes,
    and none where the run is saved.

    Args:
        run: a TrainingRun.
        arrays: its first weights; None for weights that hide nothing.
        ports_at_work: port -> workers.InProcessPort or SubprocessPort.
        shared: where weights are handed over to other processes.
        form: of the ports, one of parity.ports.FORMS.
    """
    arrays = {name: rounding.rounded(array, run.dtype) for name, array in (
        arrays or probe_weights(run.config, run.training.seed)).items()}
    model = workers.ModelSpec(
        run.name, run.config, run.dtype, device,
        shared.store(arrays) if shared else arrays, form)
    begun = {name: port.ask(run.name, begin, run, model)
             for name, port in ports_at_work.items()}
    reference = ReferenceRun(run, arrays)
    judge = Judge(ports_at_work, {
        name: reply.failure for name, future in begun.items()
        if (reply := future.result()).failure})
    question = run.pairs[0]
    if run.asked:
        judge.note(asked_now(run, ports_at_work, question))
    prefetch = PREFETCH if not run.saved and not run.asked and all(
        port.in_subprocess for port in ports_at_work.values()) else 0
    waiting: collections.deque = collections.deque()
    for number in range(1, run.steps + prefetch + 1):
        if number <= run.steps:
            pairs = run.pairs[number - 1]
            waiting.append((number, pairs, {
                name: port.ask(f"{run.name}, step {number}", go_on, *pairs)
                for name, port in ports_at_work.items()}))
        if number <= prefetch:
            continue
        step, pairs, answers = waiting.popleft()
        truth = reference.step(*pairs)
        yield from judge.differences(step, truth, answers, kinds_of(run))
        if step == run.saved:
            yield from handed_over(run, reference, truth, judge)
    if run.asked:
        yield from judge.differences(
            run.steps, reference.answer(*question),
            asked_now(run, ports_at_work, question), [ANSWER])


def asked_now(run, ports_at_work, question):
    """{port: the future of its model's answer to a step's pairs}."""
    return {name: port.ask(f"{run.name}, asked", answer, *question)
            for name, port in ports_at_work.items()}


def handed_over(run, reference, truth, judge):
    """Have every port save its run and resume; yield what was saved."""
    with tempfile.TemporaryDirectory() as folder:
        own = {name: pathlib.Path(folder) / name for name in judge.ports}
        theirs = pathlib.Path(folder) / "numpy"
        reference.save(theirs)
        saved = {name: port.ask(f"{run.name}, saving", save, own[name])
                 for name, port in judge.ports.items()}
        for step, kind, shape, limit, differences in judge.differences(
                run.saved, truth, saved, CHECKPOINT_KINDS):
            yield step, f"checkpoint {kind}", shape, limit, differences
        judge.note({name: port.ask(
            f"{run.name}, resuming", resume,
            own[name] if run.resumed == OWN else theirs, run.pairs[0])
            for name, port in judge.ports.items()})


class Judge:
    """Compares what ports answer, and remembers which failed."""

    def __init__(self, ports_at_work, failed):
        self.ports, self.failed = ports_at_work, failed

    def note(self, answers):
        """What ports answered, {port: value}, once all have."""
        values = {}
        for name, future in answers.items():
            reply = future.result()
            values[name] = reply.value
            if reply.failure:
                self.failed.setdefault(name, reply.failure)
        return values

    def differences(self, step, truth, answers, kinds):
        """Yield (step, kind, shape, limit, {port: Difference})."""
        arrays = self.note(answers)
        for kind in kinds:
            limit = truth.limit(kind)
            yield step, kind, shape_of(truth.steps[kind]), limit, {
                name: (Difference(None, limit, DIVERGENCE, self.failed[name])
                       if name in self.failed
                       else truth.compare(kind, arrays[name][kind]))
                for name in self.ports}


def shape_of(arrays):
    """The shape of the only array, or the number of values in all."""
    if len(arrays) == 1:
        return next(iter(arrays.values())).shape
    return (sum(array.size for array in arrays.values()),)
