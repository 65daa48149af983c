"""What a port is asked for a cell, in the process in which it works."""

import functools
import itertools
import time

import numpy as np

from parity import ports
from parity.check import (
    cases, golden, kinks, lockstep, training_runs, workers)
from parity.check.runners import EngineRunner, compare_steps
from parity.matrix import repeats, tiers
from parity.numerics import rounding
from parity.numerics.comparator import DIVERGENCE, Difference
from parity.numerics.dtypes import TIERS
from parity.numerics.words import listed
from parity.subjects import RUNTIMES

#: How many runs are timed, and how many steps of training compared.
RUNS, STEPS = 3, 10


@functools.cache
def reference(preset, dtype, work):
    """The Reference, the Case of a work and its Oracle."""
    config, batch = cases.test_size(preset), cases.padded_batch(
        cases.test_size(preset))
    if work == "forward":
        return with_truth(config, cases.model_case(batch), dtype,
                          [golden.shipped(preset)])
    return with_truth(
        config, cases.gradients_case(batch, config.pad_id), dtype,
        itertools.chain([golden.shipped(preset)], kinks.probes(config, 1)))


def with_truth(config, case, dtype, candidates):
    """The Reference of the first weights that suit a Case, it, and its Oracle;
    candidates as ``kinks.suited`` takes them."""
    ours, _ = kinks.suited(config, [case], dtype, candidates)
    return ours, case, ours.truth(case)


def modes(bench):
    """The modes of a port: those that there are, eager first."""
    return tuple(ports.modes(bench.engine.NAME).MODES)


def missing(bench, subject, work):
    """Why a port cannot do a work in a mode, in words, or ""."""
    if subject.device not in bench.engine.devices():
        return f"{bench.engine.NAME} has no device {subject.device} here"
    if bench.engine.NAME == "numpy" and subject.dtype == "bfloat16":
        return "NumPy computes in no bfloat16; the reference emulates it"
    if bench.engine.NAME == "numpy":
        return ""
    if work == "training" and subject.mode != "eager":
        return "training is compared in both forms, and not in this mode"
    if subject.mode in RUNTIMES and subject.device != "cpu":
        return f"{subject.mode} computes on processors here"
    theirs = ports.modes(bench.engine.NAME)
    return theirs.missing(subject.mode, subject.dtype) or (
        work != "forward" and theirs.missing_gradients(subject.mode)) or ""


def measured(bench, subject, work, preset):
    """What a SubjectCell needs of a port; a text if it cannot do the work."""
    if subject.dtype in TIERS:
        return tiers.measured(bench, subject, work, preset)
    if reason := missing(bench, subject, work):
        return reason
    engine = ports.engine(bench.engine.NAME, subject.form)
    if work == "training":
        return trained(engine, subject, preset)
    ours, case, truth = reference(preset, subject.dtype, work)
    runner = EngineRunner(engine, ours.exact.config, ours.arrays,
                          subject.dtype, subject.device)
    inputs = [rounding.rounded(x, subject.dtype) for x in case.inputs]
    start = time.perf_counter()
    if subject.mode == "eager":
        run, ran = functools.partial(runner.steps, case, inputs), lambda: True
        fused = runner.fused
    else:
        run, ran = in_mode(subject.mode, work, runner, inputs)
        fused = "output".__ne__ if work == "forward" else is_a_step(runner)
    steps = run()
    preparing = time.perf_counter() - start
    differences = compare_steps(steps, truth, subject.dtype, fused)
    differences = wrong(subject, runner, ran()) | differences
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    more = {}
    if (work, subject.dtype) == ("forward", "float32"):
        more = repeats.measured(functools.partial(
            predictor_of, subject.mode, runner), inputs, subject)
    return {"differences": differences, "preparing": preparing,
            "seconds": float(np.median(times)), "beside": tiers.beside(
                differences, truth.own_errors, "output" if work == "forward"
                else "all weights"), **more}


def predictor_of(mode, runner, inputs):
    """What computes an output of these inputs in a mode."""
    if mode == "eager":
        return lambda: runner.engine.predict(runner.model, *inputs)
    return ports.modes(runner.engine.NAME).predictor(
        runner.model, mode, inputs)[0]


def wrong(subject, runner, ran=True):
    """What is not as a Subject says, as Differences by name."""
    words = {}
    if not ran:
        words[subject.mode] = "it did not run so"
    dtypes = {array.dtype.name for array
              in runner.engine.export(runner.model).values()}
    if dtypes != {subject.dtype}:
        words["weights"] = f"they are {listed(sorted(dtypes))}"
    return divergences(words)


def divergences(words):
    """Differences of what has no number, from words by name."""
    return {name: Difference(None, 0.0, DIVERGENCE, reason)
            for name, reason in words.items()}


def is_a_step(runner):
    """Whether a gradient is that of a step, which a mode does not show."""
    weights = {f"grad {name}" for name in runner.weights}
    return lambda name: name.startswith("grad ") and name not in weights


def in_mode(mode, work, runner, inputs):
    """What runs a model in a mode, and says whether it did.

    Returns:
        () -> arrays by name, and () -> bool.
    """
    theirs = ports.modes(runner.engine.NAME)
    if work == "forward":
        predict, ran = theirs.predictor(runner.model, mode, inputs)
        return lambda: {"output": predict()}, ran
    differentiate, ran = theirs.differentiator(runner.model, mode, inputs)

    def gradients():
        loss, by_weight = differentiate()
        return {"loss": loss, **{
            f"grad {name}": by_weight[name] for name in runner.weights},
            "all weights": np.concatenate([
                by_weight[name].ravel() for name in runner.weights])}

    return gradients, ran


def trained(engine, subject, preset):
    """What a SubjectCell needs of some steps of training in lockstep."""
    run = training_runs.usual(cases.test_size(preset), STEPS)
    here = {subject.port: workers.InProcessPort(ports.engine(engine.NAME))}
    start = time.perf_counter()
    differences = {
        f"step {step} {kind}": by_port[subject.port]
        for step, kind, _, _, by_port in lockstep.compared_run(
            run, golden.shipped(preset), here, subject.device,
            form=subject.form)}
    return {"differences": differences, "seconds": None,
            "preparing": time.perf_counter() - start}
