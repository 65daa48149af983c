"""The main job: run every case everywhere and compare every step.

A run is made of parts: a model's cases in one dtype, its gradients, searches,
some steps of training. A part first asks the reference and then every port,
which compares, and once it is its turn it gathers what they found. Ports in
subprocesses are asked PREFETCH parts before, so that none waits for a slower
one.
"""

import collections
import time

from threadpoolctl import threadpool_limits

from transformer_contract.batch import Batch
from transformer_contract.config import PRESETS
from transformer_contract.weights import probe_weights
from parity import out_of_memory
from parity.check import (
    canary, cases, drawn, generation, golden, long_sequences, port_calls,
    port_properties, search_runs,
    training_runs, wide, workers)
from parity.check.parts import Parts
from parity.check.report import (
    FULL_SIZE_CASE, TRAINED_CASE, NotFused, Report, Row)
from parity.check.runners import EngineRunner, Oracle, Reference, compare_steps
from parity.check.shared_arrays import SharedArrays
from parity.numerics import rounding, tolerances
from parity.numerics.comparator import DIVERGENCE, MATCH, Difference
from parity.ports import SLOW, NotChecked

__all__ = ["Check", "EngineRunner", "Oracle", "Reference", "Report", "Row",
           "compare_steps"]

#: The preset that is also checked at its full size, on real sentences.
FULL_SIZE = "vaswani2017_base"
SENTENCES = 4

#: How many tokens an answer of the trained model has at most.
LONGEST = 15

#: And an answer of random weights, which seldom ends.
SHORT = 7

#: Every device name that any framework here uses.
DEVICES = ("cpu", "cuda", "mps", "tpu", "xpu")

#: How many parts ports are asked before the one that is compared.
PREFETCH = 6


class Check(Parts):
    """One run of the main job.

    Args:
        presets, port_names, dtypes: what to check, by name.
        devices: where, by name; None for every device that is here.
        full_size: whether FULL_SIZE is also run at its full size, and the
            trained model on real dates.
        on_case: called with a text before each case, for progress.
        gradients: whether gradients are compared too.
        train: how many steps of training are compared, in float64.
        generate: whether every search is compared, not the trained model's
            greedy answers alone.
        wide: whether the models of parity.check.wide are compared too, in
            float64, and the runs of parity.check.training_runs.
        form: which form of the ports is compared, of parity.ports.EVERY_FORM;
            of the fast one, the reference's own too.
        subprocesses: whether each port works in a process of its own.
        draws: the Draws of models that are compared too.
    """

    def __init__(self, presets, port_names, dtypes, devices=("cpu",),
                 full_size=True, on_case=lambda text: None, gradients=False,
                 train=0, generate=False, subprocesses=False, wide=False,
                 form="readable", draws=drawn.NONE):
        self.began = time.perf_counter()
        self.presets, self.dtypes = presets, dtypes
        self.full_size, self.on_case = full_size, on_case
        self.gradients, self.train = gradients, train
        self.generate = generate
        self.prefetch = PREFETCH if subprocesses else 0
        self.wide, self.form, self.draws = wide, form, draws
        self.drawn = draws.models()
        self.planned, self.done = self._planned(), set()
        if form == "fast" and "cpu" in (devices or ("cpu",)):
            port_names = ["numpy", *port_names]
        self.report, self.port_names = Report(form=form), port_names
        self.shared = SharedArrays(subprocesses)
        self.engines = self.report.open(port_names, subprocesses, self._tell)
        self.devices = devices or here(self.report)
        self.report.selection = {
            "ports": list(port_names), "presets": list(presets),
            "dtypes": list(dtypes), "devices": list(self.devices),
            "form": form, "draws": list(draws.numbers), "seed": draws.seed}
        self.report.not_done = list(self._left_out())
        self.missing = len(self.devices) * len(self.report.not_checked)
        self.targets = {device: {} for device in self.devices}
        for name, port in self.engines.items():
            for device in self.devices:
                if device in self.report.devices[name]:
                    self.targets[device][name] = port
                elif name != "numpy":  # it has processors alone
                    self.report.not_checked.append(
                        NotChecked(
                            name, f"it has no device {device} here", device))
                    self.missing += 1

    def _left_out(self):
        """Yield what was asked for and no dtype that was asked for has."""
        both = tolerances.DTYPES[:2]
        for option, what, those in (
                (self.gradients, "gradients", both),
                (self.generate, "searches", both),
                (self.wide, "the models of --wide", both[:1]),
                (self.train, "training", both[:1])):
            left = [dtype for dtype in self.dtypes if dtype not in those]
            if option and left:
                there = those if what == "training" else [
                    dtype for dtype in those if dtype in self.dtypes]
                places = " and ".join(there) or "no dtype that was asked for"
                yield (f"{what} in {' and '.join(left)}; compared in "
                       f"{places}")
        left = [dtype for dtype in self.dtypes if dtype not in both]
        if left and "numpy" in self.port_names:
            yield ("NumPy's own fast form in "
                   f"{' and '.join(left)}, which it does not have")

    def _tell(self):
        """Say what the ports are at."""
        at = "  ".join(f"{name}: {port.work}"
                       for name, port in self.report.engines.items())
        done = len(self.planned & self.done)
        self.on_case(f"{done} of {len(self.planned)} compared  {at}" if at
                     else "importing frameworks")

    def _planned(self):
        """{(model, whether at its full size, dtype)} that are compared."""
        models = {preset: self.dtypes for preset in self.presets}
        if self.wide and "float64" in self.dtypes:
            models |= {model.name: ["float64"] for model in (
                *wide.models(), *long_sequences.models())}
        models |= {model.name: [dtype for dtype in model.dtypes
                                if dtype in self.dtypes]
                   for model in self.drawn}
        planned = {(name, False, dtype) for name, dtypes in models.items()
                   for dtype in dtypes}
        if self.full_size and FULL_SIZE in self.presets:
            planned |= {entry for dtype in self.dtypes
                        if dtype in tolerances.DTYPES[:2] for entry in (
                            (golden.TRAINED, False, dtype),
                            (FULL_SIZE, True, dtype))}
        return planned

    def close(self):
        """End what works apart, and take away what it was given."""
        self.report.close()
        self.shared.close()

    def groups(self):
        """Yield lists of Rows, one a model, dtype and device.

        ``report`` fills meanwhile and is complete at the end.
        """
        waiting: collections.deque = collections.deque()
        if self.engines:
            yield from self._canaries()
            self._note_fallbacks()
        for part in self._parts():
            with threadpool_limits(1):
                next(part)
            waiting.append(part)
            if len(waiting) > self.prefetch:
                yield from self._compared(waiting.popleft())
        while waiting:
            yield from self._compared(waiting.popleft())
        self.report.seconds = time.perf_counter() - self.began

    def _note_fallbacks(self):
        """Note what the fast forms leave to the readable ones."""
        if self.form != "fast":
            return
        configs = {preset: cases.test_size(preset) for preset in self.presets}
        if self.wide:
            configs |= {model.name: model.config for model in (
                *wide.models(), *long_sequences.models())}
        for name, port in self.engines.items():
            models = collections.defaultdict(list)
            for model, config in configs.items():
                reply = port.ask(
                    "starting", port_calls.not_fused, config).result()
                for words in reply.value or ():
                    models[words].append(model)
            self.report.not_fused += [
                NotFused(name, words, tuple(those))
                for words, those in models.items()]

    def _compared(self, part):
        """Yield the groups of a part that has asked the ports."""
        # Small products gain nothing from a second thread, and the
        # libraries' threads would wait for one another.
        with threadpool_limits(1):
            groups = list(part)
        for rows in filter(None, groups):
            self.report.rows += rows
            last = rows[-1]
            self.done.add((
                last.preset, last.case == FULL_SIZE_CASE, last.dtype))
            self._tell()
            yield rows

    def _parts(self):
        """Yield the parts of the run.

        A part is a generator: before its first yield it asks the ports, and
        then it yields a list of Rows a device.
        """
        if self.form == "native":
            yield from self._native()
            return
        for preset in self.presets:
            config = cases.test_size(preset)
            weights = golden.shipped(preset)
            every = [*cases.component_cases(config),
                     cases.model_case(cases.padded_batch(config))]
            if self.form == "fast":
                every.append(cases.answers_case(
                    cases.padded_batch(config, target=cases.SOURCE)))
            for dtype in self.dtypes:
                possible = [case for case in every if dtype in case.tiers]
                yield self._cases(preset, config, weights, dtype, possible)
                if self.gradients and dtype in tolerances.DTYPES[:2]:
                    yield self._gradients(preset, config, weights, dtype)
                if self.generate:
                    yield self._searches(
                        preset, config, weights, dtype,
                        cases.padded_batch(config).source,
                        generation.some_searches(1, 2, SHORT),
                        (cases.BATCH,), self.form)
            if self.train:
                yield self._training(
                    preset, training_runs.usual(config, self.train),
                    weights, self.form)
        yield from self._drawn()
        if self.wide and "float64" in self.dtypes:
            for model in (*wide.models(), *long_sequences.models()):
                yield self._cases(model.name, model.config, model.weights(),
                                  "float64", list(model.cases()))
        if self.wide:
            yield from self._searched_models()
            yield from self._trainings()
        if self.full_size and FULL_SIZE in self.presets:
            yield from self._trained()
            yield from self._full_size()

    def _native(self):
        """Yield the parts of the frameworks' own layers, which have no steps.

        A preset that they cannot be is not checked, and the report says why.
        """
        refused: dict = collections.defaultdict(list)
        for preset in self.presets:
            config = cases.test_size(preset)
            weights = golden.shipped(preset)
            batch = cases.attended_batch(config)
            for dtype in self.dtypes:
                those = self._only(list(self._able(
                    preset, config, weights, dtype, refused)))
                those.missing += len(self.devices) * len(
                    self.engines.keys() - those.port_names)
                yield those._cases(preset, config, weights, dtype, [
                    cases.prediction_case(batch)])
                if self.gradients and dtype in tolerances.DTYPES[:2]:
                    yield those._gradients(
                        preset, config, weights, dtype, batch, "answers")
                if self.generate:
                    yield those._searches(
                        preset, config, weights, dtype, batch.source,
                        generation.some_searches(1, 2, SHORT),
                        (len(batch.source),), self.form)

        self.report.not_checked += [
            NotChecked(name, f"{', '.join(dict.fromkeys(models))}: {words}")
            for (name, words), models in refused.items()]

    def _able(self, preset, config, weights, dtype, refused):
        """Yield the ports whose framework's own layers can be a model.

        ``refused``, {(port, why): models}, gets what they cannot be.
        """
        model = workers.ModelSpec(
            preset, config, dtype, self.devices[0], self.shared.store(
                Reference(config, weights, dtype).arrays), self.form)
        yield from (one.port for one in self.report.not_checked)
        for name, port in self.engines.items():
            reply = port.ask("starting", port_calls.refusal, model).result()
            if words := reply.failure or reply.value:
                refused[name, words].append(preset)
            else:
                yield name

    def _drawn(self):
        """Yield the parts of drawn models, and of what else a port is asked."""
        for model in self.drawn:
            cases_of, works = (self._only([
                name for name in self.port_names if self.draws.asked(
                    model.number, what, (name, self.form) in SLOW)])
                for what in ("cases", "works"))
            for dtype in model.dtypes:
                if dtype not in self.dtypes:
                    continue
                given = model.name, model.config, model.weights, dtype
                yield cases_of._cases(*given, [*model.cases(self.form)])
                if model.gradients and dtype in model.gradients.tiers:
                    yield works._cases(*given, [model.gradients])
                if model.search and dtype in model.search.dtypes:
                    yield works._searches(
                        *given, model.batch.source, [model.search],
                        model.shape[:1], self.form)
            if model.run and "float64" in self.dtypes:
                yield works._training(
                    model.name, model.run, model.weights, self.form)
        if (len(self.drawn) > 1 or self.wide) and self.form == "readable":
            quick = self if self.wide else self._only([
                name for name in self.port_names
                if (name, self.form) not in SLOW])
            for name in port_properties.ASKED:
                yield (quick if name in port_properties.COSTLY
                       else self)._engines([name])

    def _canaries(self):
        """Yield rows that prove the precision of float32 products."""
        eps, limit = tolerances.EPS["float32"], canary.CANARY_LIMIT
        for device, there in self.targets.items():
            futures = {name: port.ask(
                "starting", port_calls.product, device, threads=None)
                for name, port in there.items()}
            differences = {}
            for name, future in futures.items():
                reply = future.result()
                if reply.failure:
                    differences[name] = Difference(
                        None, limit * eps, DIVERGENCE, reply.failure)
                    continue
                right = reply.value <= limit
                differences[name] = Difference(
                    reply.value * eps, limit * eps,
                    MATCH if right else DIVERGENCE, "" if right else
                    "float32 products are not computed in float32")
            self.report.expected += len(differences) + self.missing
            self.report.not_compared += self.missing
            if differences:
                size = (canary.SIZE, canary.SIZE)
                row = Row("every model", "precision canary", "product",
                          "float32", device, size, limit * eps, differences)
                self.report.rows.append(row)
                yield [row]

    def _trainings(self):
        """Yield the parts of the runs that vary conditions."""
        for run in training_runs.varied():
            if run.dtype in self.dtypes:
                yield self._training(
                    training_runs.TITLE, run, None, self.form)

    def _trained(self):
        """Yield the parts of the shipped model, on dates it never saw.

        It reads targets without their end, as in training and in use. One
        search of each kind is of the form that is checked, every one of the
        fast.
        """
        config, weights, tokenizer, pairs = golden.trained()
        batch = Batch.of_text(*zip(*pairs), tokenizer)
        batch = Batch.of_ids(
            batch.source, batch.target[:, :-1], config.pad_id).check(config)
        model = golden.TRAINED, config, weights
        for dtype in tolerances.DTYPES[:2]:
            if dtype in self.dtypes:
                yield self._cases(*model, dtype, [
                    cases.model_case(batch, TRAINED_CASE)])
                ends = tokenizer.bos_id, tokenizer.eos_id, LONGEST
                few = generation.some_searches(*ends)
                yield self._searches(
                    *model, dtype, batch.source,
                    few[:2 if self.generate else 1], (len(batch.source),),
                    self.form)
                if self.generate:
                    yield self._searches(
                        *model, dtype,
                        batch.source[:max(generation.BATCHES)],
                        generation.every_search(*ends), generation.BATCHES,
                        "fast")

    def _searched_models(self):
        """Yield the parts of searches.

        Of the rules alone no port is asked to which a search is seconds: the
        conformance suite asks it for every rule, by a model of no time.
        """
        mark = "" if self.form == "readable" else f", {self.form}"
        quick = self._only([name for name in self.port_names
                            if (name, self.form) not in SLOW])
        for model in search_runs.searched_models():
            for dtype in generation.BOTH:
                if dtype not in self.dtypes:
                    continue
                for those, searches in ((self, model.usual),
                                        (quick, model.rules)):
                    yield those._searches(
                        f"{model.name} words{mark}", model.config,
                        model.weights, dtype, model.source, searches,
                        search_runs.BATCHES, self.form, model.exact)

    def _full_size(self):
        """Yield the parts of FULL_SIZE at its full size."""
        config = PRESETS[FULL_SIZE]
        batch = sentence_batch().check(config)
        out_of_memory.release()
        weights = probe_weights(config)
        case = cases.model_case(batch, FULL_SIZE_CASE)
        for dtype in tolerances.DTYPES[:2]:
            if dtype in self.dtypes:
                for name, array in weights.items():  # 500 MB: kept once
                    weights[name] = rounding.rounded(array, dtype)
                yield self._cases(
                    FULL_SIZE, config, weights, dtype, [case], keep=False)


def here(report):
    """Every device that any open port of a report can compute on."""
    there = {device for names in report.devices.values() for device in names}
    return [device for device in DEVICES if device in there] or ["cpu"]


def sentence_batch(count=SENTENCES):
    """Committed sentence pairs from all over the file, as a batch."""
    from transformer_contract import tokenizer
    sources, targets = tokenizer.read_pairs()
    every = len(sources) // count
    return Batch.of_text(
        sources[::every][:count], targets[::every][:count],
        tokenizer.Tokenizer.load())
