"""The parts of a run: each asks every port, and compares what they answer.

A part is a generator. Before its first yield it asks the ports, so that they
work while others are compared; then it yields a list of Rows a device.
"""

import copy
import dataclasses
import itertools
import time

from parity_io.errors import plural
from parity import out_of_memory
from parity.check import (
    cases, generation, kinks, lockstep, port_calls, port_properties,
    training_runs, workers)
from parity.check.report import FULL_SIZE_CASE, Report, Row, Time
from parity.check.runners import Reference, failed_steps, merge
from parity.check.shared_arrays import SharedArrays
from parity.numerics import rounding, tolerances
from parity.numerics.comparator import DIVERGENCE, Difference


class Parts:
    """Makes the parts of a run.

    Attributes:
        report: the Report that is filled.
        devices: names, each of which has its own rows.
        engines: port -> workers.InProcessPort or SubprocessPort.
        targets: device -> those of the ports that have it.
        missing: of how many targets nothing can be compared.
        port_names: what was asked for.
        shared: where ports find weights and truths.
        form: which form of the ports is compared.
    """

    report: Report
    devices: tuple
    engines: dict
    targets: dict
    missing: int
    port_names: list
    shared: SharedArrays
    form: str

    def _only(self, names):
        """These parts, of fewer ports, for the same report."""
        few = copy.copy(self)
        few.port_names = names
        few.targets = {
            device: {name: port for name, port in there.items()
                     if name in names}
            for device, there in self.targets.items()}
        few.missing = sum(
            1 if one.device else len(self.devices)
            for one in self.report.not_checked if one.port in names)
        return few

    def _expect(self, steps):
        """Count comparisons of so many steps, on every device."""
        everywhere = sum(map(len, self.targets.values())) + self.missing
        broken = len(self.devices) * len(self.report.broken)
        self.report.expected += steps * (everywhere + broken)
        self.report.not_compared += steps * self.missing

    def _timed(self, preset, case, dtype, device, port, seconds):
        """Note how long one implementation took for one case."""
        self.report.times.append(
            Time(preset, case, dtype, device, port, seconds))

    def _cases(self, preset, config, weights, dtype, some_cases, keep=True):
        """The part of one model in one dtype.

        Args:
            keep: whether models are kept from case to case, or made anew and
                dropped at once.
        """
        reference = Reference(config, weights, dtype)
        models = {device: workers.ModelSpec(
            preset, config, dtype, device, self.shared.store(reference.arrays),
            self.form) for device in self.devices}
        requests = []
        for case in some_cases:
            start = time.perf_counter()
            truth = reference.truth(case)
            self._timed(preset, case.name, dtype, "cpu", "numpy",
                        time.perf_counter() - start)
            if not keep:
                reference.forget()
            requests.append((case, truth.outline(dtype), self._ask(
                models, preset, dtype, case, self.shared.store(truth), keep)))
        del reference, truth
        yield
        groups: dict = {device: [] for device in self.devices}
        for case, outline, answers in requests:
            self._expect(len(outline))
            if self._lacks("numpy", dtype):
                self.report.not_compared += len(outline) * sum(
                    "numpy" in there for there in self.targets.values())
            for device, futures in answers.items():
                differences = {}
                for name, future in futures.items():
                    reply = future.result()
                    self._timed(preset, case.name, dtype, device, name,
                                reply.seconds)
                    differences[name] = (failed_steps(outline, reply.failure)
                                         if reply.failure else reply.value)
                    if self.form == "fast":  # some steps are fused
                        self.report.expected -= len(
                            outline.keys() - differences[name].keys())
                groups[device] += [
                    Row(preset, case.name, name, dtype, device, *rest,
                        self.form)
                    for name, *rest in merge(differences, outline)]
        if not keep:
            out_of_memory.release()
        yield from groups.values()

    def _ask(self, models, preset, dtype, case, truth, keep):
        """Ask every port for a case: {device: {port: Future}}."""
        size = ", full size" if case.name == FULL_SIZE_CASE else ""
        inputs = [rounding.rounded(x, dtype) for x in case.inputs]
        return {
            device: {
                name: port.ask(
                    f"{preset}{size} {dtype}", port_calls.differences,
                    models[device], case, inputs, truth, keep)
                # TensorFlow never gives memory back, so that Keras goes last.
                for name, port in sorted(
                    there.items(), key=lambda item: item[0] == "keras")
                if not self._lacks(name, dtype)}
            for device, there in self.targets.items()}

    @staticmethod
    def _lacks(name, dtype):
        """Whether an implementation has no such dtype: NumPy, 16 bits."""
        return name == "numpy" and dtype not in tolerances.DTYPES[:2]

    def _gradients(self, preset, config, weights, dtype, batch=None,
                   kind="gradients"):
        """The part of gradients, on weights that are not near a kink.

        Args:
            batch: of cases.padded_batch if there is none.
            kind: "gradients", by every weight and step, or "answers", by every
                weight alone.
        """
        case = cases.gradients_case(
            batch or cases.padded_batch(config), config.pad_id)
        _, weights = kinks.suited(config, [case], dtype, itertools.chain(
            [weights], kinks.probes(config, 1)))
        return self._cases(preset, config, weights, dtype, [
            dataclasses.replace(case, kind=kind)])

    def _training(self, preset, run, weights, form="readable"):
        """The part of a TrainingRun, of the ports whose form makes it."""
        yield
        for device, there in self.targets.items():
            takes = {name for name in self.port_names
                     if (name != "numpy" or name in there)
                     and training_runs.makes(name, form, run)}
            there = {name: port for name, port in there.items()
                     if name in takes}
            rows = [Row(preset, run.name, f"step {step} {kind}", run.dtype,
                        device, shape, limit, differences, form)
                    for step, kind, shape, limit, differences in
                    lockstep.compared_run(run, weights, there, device,
                                          self.shared, form)]
            expected = lockstep.comparisons(run)
            self.report.expected += expected * len(takes)
            broken = {port.port for port in self.report.broken}
            self.report.not_compared += expected * len(
                takes - there.keys() - broken)
            yield rows

    def _engines(self, names):
        """The part of what a port is asked beside models, on the CPU."""
        there = self.targets.get("cpu", {})
        requests = [(name, {
            port: one.ask(f"engine: {name}", port_properties.answers, name)
            for port, one in there.items()}) for name in names]
        yield
        rows = []
        for name, futures in requests:
            differences = {}
            for port, future in futures.items():
                reply = future.result()
                self._timed("every model", name, "float64", "cpu", port,
                            reply.seconds)
                differences[port] = {"answer": Difference(
                    None, 0.0, DIVERGENCE, reply.failure)
                } if reply.failure else reply.value
            rows += [Row("every model", f"engine: {name}", what, "float64",
                         "cpu", *rest)
                     for what, *rest in merge(differences, {})]
        self.report.expected += sum(len(row.differences) for row in rows)
        yield rows

    def _searches(self, preset, config, weights, dtype, source, searches,
                  batches, form="readable", exact=False):
        """The part of searches, the reference's own beside the ports'.

        Only float64 and float32 are searched in.
        """
        if dtype not in generation.BOTH:
            yield
            return
        reference = Reference(config, weights, dtype)
        models = {device: workers.ModelSpec(
            preset, config, dtype, device, self.shared.store(reference.arrays),
            form) for device in self.devices}
        ours = reference.runner(form)
        if form == "readable":  # a fast form takes the parts of its own model
            ours = generation.RunnerAskedOnce(ours)
        searches = [one for one in searches if dtype in one.dtypes]
        requests = [{
            device: {
                name: port.ask(
                    f"{preset} {dtype} {search.name}", generation.answers,
                    models[device], source, search.settings, batches)
                for name, port in there.items()}
            for device, there in self.targets.items()} for search in searches]
        yield
        rows: dict = {device: [] for device in self.devices}
        sizes = ", ".join(map(str, batches))
        references = [runner and (
            runner.engine, generation.AskedOnce(runner.model))
            for runner in (reference.exact, reference.same)]
        for search, answers in zip(searches, requests):
            truth = generation.truth_of(
                *references, source, search.settings, dtype, exact)
            sources = plural(len(truth.rows), "source")
            case = f"{search.name}: {sources}, by {sizes}"
            if truth.close:
                case += f"; {truth.close} near a tie, left out"
            own = [] if "numpy" in self.engines else [("numpy", workers.answer(
                ours, generation.runs, source, search.settings, batches))]
            for device, futures in answers.items():
                differences = {}
                for name, reply in (*own, *(
                        (name, future.result())
                        for name, future in futures.items())):
                    self._timed(preset, search.name, dtype, device, name,
                                reply.seconds)
                    differences[name] = (
                        generation.failed(truth, reply.failure)
                        if reply.failure else generation.judged(
                            reply.value, search.settings, truth))
                rows[device] += [
                    Row(preset, case, name, dtype, device,
                        getattr(truth, name.split(",")[0]).shape,
                        next(iter(differences.values()))[name].limit,
                        {port: steps[name]
                         for port, steps in differences.items()},
                        form)
                    for name in next(iter(differences.values()))]
                if own:
                    self.report.expected += len(differences["numpy"])
                    self.report.own += len(differences["numpy"])
            self._expect(len(next(iter(differences.values()), ())))
        yield from rows.values()
