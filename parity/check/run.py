"""The main job: run every case everywhere and compare every step."""

import contextlib
import ctypes
import dataclasses
import gc
import re
import time

import numpy as np
from threadpoolctl import threadpool_limits

from contract.batch import Batch
from contract.config import PRESETS
from contract.weights import probe_weights
from parity import ports
from parity.check import cases, generation, golden, lockstep
from parity.numerics import canary, rounding, tolerances
from parity.numerics.comparator import (
    DIVERGENCE, MATCH, Difference, compare, relative_error)
from parity.ports import NotChecked

#: The preset that is also checked at its full size, on real sentences.
FULL_SIZE = "vaswani2017_base"
FULL_SIZE_CASE = "full size, real sentences"
SENTENCES = 4

#: The trained model's case, and how many tokens an answer of it has at most.
TRAINED_CASE, LONGEST = "trained, real dates", 15

#: And an answer of random weights, which seldom ends.
SHORT = 7

#: How many weights are tried to find some that are not near a kink.
MOST_SEEDS = 100

#: Every device name that any framework here uses.
DEVICES = ("cpu", "cuda", "mps", "tpu", "xpu")


@dataclasses.dataclass(frozen=True)
class Row:
    """One step of one case, compared in every port.

    Attributes:
        found: port -> Difference, for the ports that were compared.
    """

    preset: str
    case: str
    name: str
    dtype: str
    device: str
    shape: tuple
    limit: float
    found: dict

    @property
    def verdict(self):
        """The worst verdict among the ports."""
        verdicts = [found.verdict for found in self.found.values()]
        if DIVERGENCE in verdicts:
            return DIVERGENCE
        return verdicts[0] if verdicts else "not checked"

    @property
    def component(self):
        """What was run, as tables have it."""
        if self.name.startswith(("tokens,", "scores,")):
            return "search: " + self.case.split(":")[0]
        return {FULL_SIZE_CASE: "transformer, full size",
                TRAINED_CASE: "transformer, trained",
                "transformer": "transformer, whole",
                "precision canary": "product in float32"}.get(
            self.case, re.sub(r", \d+ steps$", "", self.case))

    def comparisons(self):
        """One plain dict a port, as the JSON report has them."""
        for port, found in self.found.items():
            yield {
                "preset": self.preset, "case": self.case, "name": self.name,
                "port": port, "dtype": self.dtype, "device": self.device,
                "shape": list(self.shape), "error": found.error,
                "limit": found.limit, "verdict": found.verdict,
                "reason": found.reason,
            }


@dataclasses.dataclass(frozen=True)
class Time:
    """How long one implementation took for one case, in seconds."""

    preset: str
    case: str
    dtype: str
    device: str
    port: str
    seconds: float


@dataclasses.dataclass
class Report:
    """What a run of the harness found.

    Attributes:
        rows: every step, in order.
        expected: how many comparisons there should be, ports that could not
            be checked included.
        not_checked: NotChecked, one for each port, device or dtype left out.
        not_compared: how many of those expected were not made because of
            ``not_checked``.
        engines: port -> engine of the ports that were compared.
        settings: port -> the precision settings that were made.
        environment: versions, devices and settings, as plain data.
        seconds: how long it took.
        times: a Time for each case that each implementation ran.
        asked: "ports", "presets", "dtypes" and "devices" -> names.
    """

    rows: list = dataclasses.field(default_factory=list)
    expected: int = 0
    not_compared: int = 0
    not_checked: list = dataclasses.field(default_factory=list)
    engines: dict = dataclasses.field(default_factory=dict)
    settings: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    times: list = dataclasses.field(default_factory=list)
    asked: dict = dataclasses.field(default_factory=dict)

    @contextlib.contextmanager
    def timed(self, *what):
        """Time a case: preset, case, dtype, device, port.

        Building the port's model and comparing are part of the time.
        """
        start = time.perf_counter()
        yield
        self.times.append(Time(*what, time.perf_counter() - start))

    def open(self, port_names):
        """Import these ports and set their precision; note those missing."""
        for name in port_names:
            engine = ports.engine(name)
            if isinstance(engine, NotChecked):
                self.not_checked.append(engine)
            else:
                self.settings[name] = engine.set_precision()
                self.engines[name] = engine
        return self.engines

    @property
    def compared(self):
        """How many comparisons were made."""
        return sum(len(row.found) for row in self.rows)

    def closest(self):
        """Every comparison that has a limit, the nearest to it first.

        (row, port, Difference) each.
        """
        found = [(row, port, one) for row in self.rows
                 for port, one in row.found.items() if one.share is not None]
        return sorted(found, key=lambda entry: -entry[2].share)

    def divergences(self):
        """(row, port, Difference) of every divergence, first things first."""
        return [(row, port, found) for row in self.rows
                for port, found in row.found.items()
                if found.verdict == DIVERGENCE]

    @property
    def verdict(self):
        """MATCH if all that could be compared was, and matched."""
        if not self.compared:
            return "nothing compared"
        complete = self.compared == self.expected - self.not_compared
        return MATCH if complete and not self.divergences() else DIVERGENCE

    @property
    def status(self):
        """The exit status: 0 match, 1 divergence, 4 nothing was compared."""
        return {MATCH: 0, DIVERGENCE: 1}.get(self.verdict, 4)

    def as_json(self):
        """The report as plain data."""
        return {
            "schema": 1,
            "verdict": self.verdict,
            "compared": self.compared,
            "expected": self.expected,
            "not_checked": [dataclasses.asdict(n) for n in self.not_checked],
            "environment": self.environment,
            "comparisons": [comparison for row in self.rows
                            for comparison in row.comparisons()],
            "seconds": self.seconds,
            "times": [dataclasses.asdict(one) for one in self.times],
        }


class Runner:
    """One implementation, in one dtype, on one device, with one model.

    A model is built once, and a component's case runs the part of it that
    stands at the case's path.
    """

    def __init__(self, engine, config, weights, dtype, device="cpu"):
        self.engine, self.config, self.weights = engine, config, weights
        self.dtype, self.device = dtype, device
        self._built = {}

    @property
    def model(self):
        """The whole model."""
        return self._build("transformer", self.config, self.weights)

    def module(self, case):
        """The module that a case runs: a part of the model, or one alone."""
        if case.alone:
            return self._build(case.component, case.config or self.config,
                               cases.weights_of(case, self.weights))
        return dict(self.engine.modules(self.model))[case.path]

    def _build(self, component, config, weights):
        key = component, config
        if key not in self._built:
            self._built[key] = self.engine.build(
                component, config, weights, self.dtype, self.device)
        return self._built[key]

    def steps(self, case, inputs):
        """Every step of a case on inputs, by name."""
        if case.kind == "masks":
            return self.engine.masks(
                *inputs, self.config.pad_id, self.device)
        if case.kind == "loss":
            return {"loss": self.engine.loss(
                *inputs, self.config.pad_id, *case.smoothing, self.device)}
        if case.kind == "gradients":
            return self._gradients(case, inputs)
        if case.kind == "optimizer":
            weights = inputs[:case.weights]
            return optimizer_steps(
                self.engine, case.training, self.config.d_model, weights,
                [inputs[i:i + case.weights] for i in range(
                    case.weights, len(inputs), case.weights)], self.device)
        if case.kind == "residual":
            return self.engine.run_residual(self.module(case), *inputs)
        steps = self.engine.run(self.module(case), *inputs, **case.keywords)
        if case.nested:
            return steps
        return {name: value for name, value in steps.items()
                if "." not in name}

    def _gradients(self, case, inputs):
        """The loss, each gradient, and those of all weights as one vector."""
        loss, found = self.engine.gradients(self.module(case), *inputs)
        everything = [found[name].ravel() for name in self.weights
                      if name in found]
        return {"loss": loss,
                **{f"grad {name}": array for name, array in found.items()},
                "all weights": np.concatenate(everything)}


def optimizer_steps(engine, training, d_model, weights, gradients, device):
    """Optimise a few arrays by themselves, with what an engine optimises by.

    Args:
        engine: an engine.
        training: a TrainingConfig.
        d_model: what the schedule is scaled by.
        weights: arrays of any shapes.
        gradients: for each step, their gradients.
        device: where.

    Returns:
        Every array after every step: norm, learning rate, m, v and weight.
    """
    optimizer = engine.OPTIMIZERS[training.optimizer](training, d_model)
    weights = [engine.to_native(weight, device) for weight in weights]
    moments, steps = [(weight * 0, weight * 0) for weight in weights], {}
    for step, arrays in enumerate(gradients, start=1):
        clipped, norm = engine.clip_by_global_norm(
            [engine.to_native(g, device) for g in arrays], training.clip_norm)
        settings = optimizer.settings(step)
        steps[f"norm, step {step}"] = engine.to_numpy(norm)
        steps[f"rate, step {step}"] = np.asarray(settings[0])
        for i, gradient in enumerate(clipped):
            weights[i], *moments[i] = optimizer.update(
                weights[i], gradient, *moments[i], *settings)
            for what, array in zip(
                    ("m", "v", "weight"), (*moments[i], weights[i])):
                steps[f"{what} {i}, step {step}"] = engine.to_numpy(array)
    return {name: np.asarray(array) for name, array in steps.items()}


@dataclasses.dataclass
class Truth:
    """The reference's steps in float64, and its own error in a lower dtype."""

    steps: dict
    own_errors: dict

    def limit(self, name, dtype):
        """The limit of a step."""
        own = self.own_errors.get(name, 0.0)
        if name == "all weights":
            return tolerances.gradient_limit(dtype, own)
        if name.startswith("grad "):
            return tolerances.gradient_limit(dtype, own, of_one=True)
        return tolerances.limit(dtype, own, inner="." in name)

    def zero_scale(self, name):
        """The scale that a tensor is zero beside, if mathematics says so.

        A key's bias adds the same number to all scores of a query, which a
        softmax does not see: its gradient is zero, and what is computed is
        rounding. It is held against the gradient of the query's bias.
        """
        if name.startswith("grad ") and name.endswith(".key.bias"):
            beside = name.removesuffix("key.bias") + "query.bias"
            return float(np.abs(self.steps[beside]).max())
        return None


class Reference:
    """The definition, on numbers that were first rounded to a dtype.

    Attributes:
        stored: the rounded weights, which the ports are given.
        exact: computes with them in float64.
        same: computes with them in the dtype itself; None for float64.
    """

    def __init__(self, config, weights, dtype):
        engine, self.dtype = ports.engine("numpy"), dtype
        self.stored = {name: rounding.rounded(array, dtype)
                       for name, array in weights.items()}
        self.exact = Runner(engine, config, {
            name: array.astype(np.float64, copy=False)
            for name, array in self.stored.items()}, "float64")
        self.same = None
        if dtype != "float64":
            self.same = Runner(engine, config, {
                name: rounding.emulated(array, dtype)
                for name, array in self.stored.items()}, "float32")

    def truth(self, case):
        """The Truth of a case."""
        inputs = [rounding.rounded(x, self.dtype) for x in case.inputs]
        steps = self.exact.steps(case, [
            x.astype(np.float64) if x.dtype.kind not in "biu" else x
            for x in inputs])
        own = {}
        if self.same:
            low = self.same.steps(
                case, [rounding.emulated(x, self.dtype) for x in inputs])
            for name, value in low.items():
                own[name] = own_error(np.asarray(value), steps[name])
        return Truth(steps, own)

    def forget(self):
        """Drop the models, which are not needed once the truth is known."""
        self.exact = self.same = None

    def near_a_kink(self, case):
        """Whether a ReLU's input is so small that rounding decides its sign.

        Then a gradient in low precision may be another function's, in any
        port, and says nothing; other weights have to be found.
        """
        if case.kind != "gradients" or not self.same:
            return False
        steps = self.exact.engine.run(
            self.exact.module(case), *case.inputs[:-1])
        guard = 256 * tolerances.EPS[self.dtype]
        return any(
            np.abs(value).min() <= guard * np.sqrt(np.mean(value**2))
            for name, value in steps.items()
            if name.endswith("feed_forward.inner"))


def own_error(value, truth):
    """The reference's own error in a lower dtype; 0 where it has none."""
    if truth.dtype.kind in "biu" or not truth.any():
        return 0.0
    if not np.isfinite(value).all():
        return float("inf")
    return relative_error(value, truth)[0]


def compare_steps(found, truth, dtype):
    """Compare a port's steps with the truth: {name: Difference}.

    A step that either side lacks is a divergence.
    """
    differences = {}
    for name in [*found, *(n for n in truth.steps if n not in found)]:
        limit = truth.limit(name, dtype)
        if name not in truth.steps:
            differences[name] = Difference(
                None, limit, DIVERGENCE, "the reference has no such step")
        elif name not in found:
            differences[name] = Difference(
                None, limit, DIVERGENCE, "the port has no such step")
        else:
            expected = truth.steps[name]
            exact = expected.dtype.kind in "biu"
            differences[name] = compare(
                found[name], expected, 0.0 if exact else limit,
                expected.dtype.name if exact else dtype,
                truth.zero_scale(name))
    return differences


def failed_steps(truth, dtype, error):
    """Every step as a divergence, for a port that could not run at all."""
    words = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return {name: Difference(None, truth.limit(name, dtype), DIVERGENCE, words)
            for name in truth.steps}


class Check:
    """One run of the main job.

    Args:
        presets, port_names, dtypes, devices: what to check, by name.
        full_size: whether FULL_SIZE is also run at its full size, and the
            trained model on real dates.
        on_case: called with a text before each case, for progress.
        gradients: whether gradients are compared too.
        train: how many steps of training are compared, in float64.
        generate: whether every search is compared, not the trained model's
            greedy answers alone.
    """

    def __init__(self, presets, port_names, dtypes, devices=("cpu",),
                 full_size=True, on_case=lambda text: None, gradients=False,
                 train=0, generate=False):
        self.presets, self.dtypes, self.devices = presets, dtypes, devices
        self.full_size, self.on_case = full_size, on_case
        self.gradients, self.train = gradients, train
        self.generate = generate
        self.report, self.asked = Report(), port_names
        self.report.asked = {
            "ports": list(port_names), "presets": list(presets),
            "dtypes": list(dtypes), "devices": list(devices)}
        self.engines = self.report.open(port_names)
        self.missing = len(devices) * len(self.report.not_checked)
        self.targets = {device: {} for device in devices}
        for name, engine in self.engines.items():
            there = engine.devices()
            for device in devices:
                if device in there:
                    self.targets[device][name] = engine
                else:
                    self.report.not_checked.append(
                        NotChecked(name, f"it has no device {device} here"))
                    self.missing += 1

    def groups(self):
        """Yield lists of Rows, one a model, dtype and device.

        ``report`` fills meanwhile and is complete at the end.
        """
        start = time.perf_counter()
        if self.engines:
            yield from self._canaries()
        for preset in self.presets:
            config = cases.test_size(preset)
            weights = golden.shipped(preset)
            for dtype in self.dtypes:
                wanted = [
                    *cases.component_cases(config),
                    cases.model_case(cases.padded_batch(config))]
                wanted = [case for case in wanted if dtype in case.tiers]
                # Small products gain nothing from a second thread, and the
                # libraries' threads would wait for one another.
                with threadpool_limits(1):
                    yield from self._group(
                        preset, config, weights, dtype, wanted)
                    if self.gradients:
                        yield from self._gradients(
                            preset, config, weights, dtype)
                    if self.generate:
                        yield from self._searches(
                            preset, config, weights, dtype,
                            cases.padded_batch(config).source,
                            generation.some_searches(1, 2, SHORT),
                            (cases.BATCH,))
            if self.train:
                with threadpool_limits(1):
                    yield from self._training(preset, config, weights)
        if self.full_size and FULL_SIZE in self.presets:
            with threadpool_limits(1):
                yield from self._trained()
            yield from self._full_size()
        self.report.seconds = time.perf_counter() - start

    def _canaries(self):
        """Yield rows that prove the precision of float32 products."""
        eps, limit = tolerances.EPS["float32"], canary.CANARY_LIMIT
        for device, engines in self.targets.items():
            found = {}
            for name, engine in engines.items():
                error = canary.canary(engine, device) * eps
                found[name] = Difference(
                    error, limit * eps,
                    MATCH if error <= limit * eps else DIVERGENCE,
                    "" if error <= limit * eps else
                    "float32 products are not computed in float32")
            self.report.expected += len(found) + self.missing
            self.report.not_compared += self.missing
            if found:
                size = (canary.SIZE, canary.SIZE)
                row = Row("every model", "precision canary", "product",
                          "float32", device, size, limit * eps, found)
                self.report.rows.append(row)
                yield [row]

    def _gradients(self, preset, config, weights, dtype):
        """Yield the gradients' rows, on weights that are not near a kink."""
        case = cases.gradients_case(cases.padded_batch(config), config.pad_id)
        if dtype not in case.tiers:
            return
        for seed in range(1, MOST_SEEDS):
            if not Reference(config, weights, dtype).near_a_kink(case):
                break
            weights = probe_weights(config, seed)
        yield from self._group(preset, config, weights, dtype, [case])

    def _training(self, preset, config, weights):
        """Yield the rows of training steps, which part where they part."""
        for device, engines in self.targets.items():
            rows, case = [], f"training, {self.train} steps"
            run = lockstep.compared(
                config, weights, engines, self.train, device)
            for step, kind, shape, found in run:
                self.on_case(f"{preset}: {case}, step {step}")
                rows.append(Row(preset, case, f"step {step} {kind}",
                                "float64", device, shape, lockstep.LIMIT,
                                found))
            self.report.rows += rows
            expected = self.train * len(lockstep.KINDS)
            absent = len(self.asked) - len(engines)
            self.report.expected += expected * len(self.asked)
            self.report.not_compared += expected * absent
            yield rows

    def _trained(self):
        """Yield the rows of the shipped model, on dates that it never saw.

        It reads targets without their end, as in training and in use.
        """
        config, weights, tokenizer, pairs = golden.trained()
        batch = Batch.of_text(*zip(*pairs), tokenizer)
        batch = Batch.of_ids(
            batch.source, batch.target[:, :-1], config.pad_id).check(config)
        for dtype in tolerances.DTYPES[:2]:
            if dtype in self.dtypes:
                yield from self._group(
                    golden.TRAINED, config, weights, dtype, [
                        cases.model_case(batch, TRAINED_CASE)])
                ends = tokenizer.bos_id, tokenizer.eos_id, LONGEST
                few = generation.some_searches(*ends)
                yield from self._searches(
                    golden.TRAINED, config, weights, dtype, batch.source,
                    few[:2 if self.generate else 1], (len(batch.source),))
                if self.generate:
                    yield from self._searches(
                        golden.TRAINED, config, weights, dtype,
                        batch.source[:max(generation.BATCHES)],
                        generation.every_search(*ends), generation.BATCHES)

    def _searches(self, preset, config, weights, dtype, source, searches,
                  batches):
        """Yield the rows of searches, the reference's own beside the ports'.

        Only float64 and float32 are searched in.
        """
        if dtype not in generation.BOTH:
            return
        reference = Reference(config, weights, dtype)
        exact, low = (
            runner and (runner.engine, runner.model)
            for runner in (reference.exact, reference.same))
        models = {device: {
            "numpy": low or exact,
            **{name: Runner(engine, config, reference.stored, dtype, device)
               for name, engine in engines.items()}}
            for device, engines in self.targets.items()}
        rows = {device: [] for device in self.devices}
        sizes = ", ".join(map(str, batches))
        for search in searches:
            if dtype not in search.dtypes:
                continue
            self.on_case(f"{preset} · {dtype} · {search.name}")
            truth = generation.truth_of(
                exact, low, source, search.settings, dtype)
            case = f"{search.name}: {len(truth.kept)} sources, by {sizes}"
            if truth.close:
                case += f"; {truth.close} near a tie, left out"
            for device in self.devices:
                found = {}
                for name, model in models[device].items():
                    with self.report.timed(
                            preset, search.name, dtype, device, name):
                        found[name] = self._search(
                            model, source, search, truth, batches)
                rows[device] += [
                    Row(preset, case, name, dtype, device,
                        getattr(truth, name.split(",")[0]).shape,
                        found["numpy"][name].limit,
                        {port: steps[name] for port, steps in found.items()})
                    for name in found["numpy"]]
            steps = len(found["numpy"])
            everywhere = sum(map(len, models.values())) + self.missing
            self.report.expected += steps * everywhere
            self.report.not_compared += steps * self.missing
        for group in filter(None, rows.values()):
            self.report.rows += group
            yield group

    def _search(self, model, source, search, truth, batches):
        try:
            engine, model = (
                (model.engine, model.model) if isinstance(model, Runner)
                else model)
            return generation.compared(
                engine, model, source, search.settings, truth, batches)
        except Exception as error:  # a port's own, whatever it is
            return generation.failed(truth, lockstep.words_of(error))

    def _full_size(self):
        config = PRESETS[FULL_SIZE]
        batch = sentence_batch().check(config)
        self.on_case(f"{FULL_SIZE} · weights")
        release()
        weights = probe_weights(config)
        for dtype in tolerances.DTYPES[:2]:
            if dtype in self.dtypes:
                for name, array in weights.items():  # 500 MB: kept once
                    weights[name] = rounding.rounded(array, dtype)
                case = cases.model_case(batch, FULL_SIZE_CASE)
                yield from self._group(
                    FULL_SIZE, config, weights, dtype, [case], keep=False)

    def _group(self, preset, config, weights, dtype, wanted, keep=True):
        """Yield the rows of one model in one dtype, a list a device.

        Models are kept from case to case, or made anew and dropped at once.
        """
        reference = Reference(config, weights, dtype)
        runners = {}
        groups = {device: [] for device in self.devices}
        for case in wanted:
            self.on_case(f"{preset} · {dtype} · {case.name}")
            about = preset, case.name, dtype
            with self.report.timed(*about, "cpu", "numpy"):
                truth = reference.truth(case)
            if not keep:
                reference.forget()
            everywhere = sum(map(len, self.targets.values())) + self.missing
            self.report.expected += len(truth.steps) * everywhere
            self.report.not_compared += len(truth.steps) * self.missing
            for device in self.devices:
                found = {}
                # TensorFlow never gives memory back, so that Keras goes last.
                for name, engine in sorted(
                        self.targets[device].items(),
                        key=lambda item: item[0] == "keras"):
                    runner = runners.get((device, name)) or Runner(
                        engine, config, reference.stored, dtype, device)
                    if keep:
                        runners[device, name] = runner
                    with self.report.timed(*about, device, name):
                        found[name] = self._compare(
                            runner, case, truth, dtype)
                    del runner
                    if not keep:
                        release()
                for row in merge(found, truth, dtype):
                    row = Row(preset, case.name, *row[:1], dtype, device,
                              *row[1:])
                    groups[device].append(row)
        for rows in filter(None, groups.values()):
            self.report.rows += rows
            yield rows
        if not keep:
            release()

    def _compare(self, runner, case, truth, dtype):
        inputs = [rounding.rounded(x, dtype) for x in case.inputs]
        try:
            found = runner.steps(case, inputs)
        except Exception as error:  # a port's own, whatever it is
            return failed_steps(truth, dtype, error)
        return compare_steps(found, truth, dtype)


def devices_here(names):
    """Every device that any of these ports can compute on."""
    engines = [ports.engine(name) for name in names]
    there = [device for engine in engines
             if not isinstance(engine, NotChecked)
             for device in engine.devices()]
    return [device for device in DEVICES if device in there] or ["cpu"]


def release():
    """Give memory of dropped models back to the system, where that works.

    The C library keeps freed blocks of some megabytes, which is what weights
    are made of, so that three large models in turn would look like three at
    once.
    """
    gc.collect()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def merge(found, truth, dtype):
    """Yield (name, shape, limit, {port: Difference}) of every step.

    The order is that in which the first port recorded them, which is the order
    of computation.
    """
    order = list(dict.fromkeys(
        name for differences in found.values() for name in differences))
    for name in order:
        expected = truth.steps.get(name)
        exact = expected is not None and expected.dtype.kind in "biu"
        yield (
            name, () if expected is None else expected.shape,
            0.0 if exact else truth.limit(name, dtype),
            {port: differences[name] for port, differences in found.items()
             if name in differences})


def sentence_batch(count=SENTENCES):
    """Committed sentence pairs from all over the file, as a batch."""
    from contract import tokenizer
    sources, targets = tokenizer.read_pairs()
    every = len(sources) // count
    return Batch.of_text(
        sources[::every][:count], targets[::every][:count],
        tokenizer.Tokenizer.load())
