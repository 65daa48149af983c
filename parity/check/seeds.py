"""False alarms: sound ports over many seeds, as on several machines.

A limit must let every sound port pass, whatever the weights and the inputs are,
and in whatever order a library adds. So small models are compared, each seed
with other weights and inputs. The seeds are dealt out to processes: with one
thread and with two, with the kernels that BLAS, oneDNN and XLA have for older
processors, with oneDNN and without. What is told is the largest share of its
limit that any error takes.
"""

import concurrent.futures
import dataclasses
import functools
import importlib
import itertools
import multiprocessing
import os
import pathlib
import re
from unittest import mock

from transformer_contract.batch import Batch
from transformer_contract.config import PLAIN
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases, covering, environment, kinks, wide
from parity.check.runners import EngineRunner, Reference, compare_steps
from parity.check.workers import FAILURES, words_of
from parity.numerics import rounding
from parity.numerics.comparator import DIVERGENCE, Difference

#: [B, S, T]: large enough that a library may divide a product among threads.
SHAPE = 8, 17, 15

#: Of all models; no two sizes are equal. JAX and Keras compile them once.
SIZES = {"source_vocab": 37, "target_vocab": 37, "d_model": 48, "n_heads": 6,
         "d_ff": 80, "n_encoder_layers": 1, "n_decoder_layers": 1,
         "max_length": 19, "label_smoothing": 0.1}

#: (norm_eps, final_norm_eps), in turn. Where a norm stands behind another one
#: and its ε is tiny, nearly all of the gradient of the first one's scale
#: cancels, or of its mean square.
EPSILONS = ((1e-6, 1e-6), *wide.EPSILONS)

#: How far apart the seeds of weights are that are tried one after the other.
APART = 2**32

#: Variables by which libraries are told how many threads they have.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
           "TF_NUM_INTRAOP_THREADS", "PJRT_NPROC")

#: Instructions -> what Linux calls them, and what each library does: OpenBLAS,
#: MKL, oneDNN, PyTorch and XLA.
KERNELS = {
    "SSE4.2": ("sse4_2", "Nehalem", "SSE4_2", "SSE41", "default", "SSE4_2"),
    "AVX2": ("avx2", "Haswell", "AVX2", "AVX2", "avx2", "AVX2"),
    "AVX-512": ("avx512vl", "SkylakeX", "AVX512", "AVX512_CORE", "avx512",
                "AVX512"),
}


@dataclasses.dataclass(frozen=True)
class Setup:
    """How a process computes.

    Attributes:
        variables: of its environment.
        mkldnn: whether PyTorch may use oneDNN, for which there is none.
    """

    name: str
    variables: dict
    mkldnn: bool = True


def setups():
    """Every Setup that this processor has."""
    def threads(count):
        return dict.fromkeys(THREADS, str(count))

    yield Setup("1 thread", threads(1))
    yield Setup("2 threads", threads(2))
    there = instructions()
    for word, (flag, blas, mkl, dnn, aten, xla) in KERNELS.items():
        if flag in there:
            yield Setup(f"{word} kernels", threads(1) | {
                "OPENBLAS_CORETYPE": blas, "MKL_ENABLE_INSTRUCTIONS": mkl,
                "ONEDNN_MAX_CPU_ISA": dnn, "ATEN_CPU_CAPABILITY": aten,
                "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} "
                             f"--xla_cpu_max_isa={xla}".strip()})
    yield Setup("oneDNN on", threads(1) | {"TF_ENABLE_ONEDNN_OPTS": "1"})
    yield Setup("oneDNN off", threads(1) | {"TF_ENABLE_ONEDNN_OPTS": "0"},
                mkldnn=False)


def processor():
    """What Linux says of the processor; "" elsewhere."""
    try:
        return pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def instructions():
    """The words for what an x86 processor can; none of another."""
    flags = re.search(r"^flags\s*:(.*)$", processor(), re.MULTILINE)
    return set(flags[1].split()) if flags else set()


@dataclasses.dataclass(frozen=True)
class Nearest:
    """The comparison that came nearest to its limit.

    Attributes:
        share: the error divided by the limit.
    """

    share: float
    error: float
    limit: float
    seed: int
    step: str


@dataclasses.dataclass
class Tally:
    """What was found in one Setup.

    Attributes:
        nearest: {(port, dtype, case): Nearest}.
        alarms: a sentence for each case in which a port diverges or fails.
        compared: how many comparisons were made.
        blas: the kernels that NumPy's products have.
        versions: {port: {framework: version}}.
    """

    nearest: dict = dataclasses.field(default_factory=dict)
    alarms: list = dataclasses.field(default_factory=list)
    compared: int = 0
    blas: str = ""
    versions: dict = dataclasses.field(default_factory=dict)

    def add(self, key, seed, differences):
        """Count what a port's steps differ by: {step: Difference}."""
        self.compared += len(differences)
        wrong = [(step, one) for step, one in differences.items()
                 if one.verdict == DIVERGENCE]
        if wrong:
            step, one = wrong[0]
            self.alarms.append(
                f"{', '.join(key)}, seed {seed}, {step}: " + (
                    one.reason if one.error is None else
                    f"{one.error:.1e} of {one.limit:.1e}"))
        for step, one in differences.items():
            if one.error is None or one.share is None:
                continue
            kept = self.nearest.get(key)
            if kept is None or one.share > kept.share:
                self.nearest[key] = Nearest(
                    float(one.share), float(one.error), float(one.limit),
                    seed, step)

    def worst(self, port, dtype):
        """The Nearest of all cases of a port in a dtype, or None."""
        return max((one for key, one in self.nearest.items()
                    if key[:2] == (port, dtype)),
                   key=lambda one: one.share, default=None)


@functools.cache
def variants():
    """Words {field: word} in which every two meet, taken in turn by seeds."""
    return covering.covering(covering.choices(), covering.possible)


def drawn(seed):
    """A seed's config, weights and Cases; no ReLU is near its kink.

    There, rounding in float32 decides which function a gradient is of.
    """
    turn, place = divmod(seed, len(variants()))
    words = variants()[place]
    norm_eps, final_norm_eps = EPSILONS[turn % len(EPSILONS)]
    config = PLAIN.replace(
        **SIZES, **words, norm_eps=norm_eps, final_norm_eps=final_norm_eps)
    rows, source, target = SHAPE
    if config.stacks == "encoder":
        target = source  # a label for each
    batch = Batch.of_ids(*(
        wide.padded(f"{what} of seed {seed}", rows, length, 37, config.pad_id,
                    first)
        for what, length, first in (("source", source, seed),
                                    ("target", target, seed // 6))),
        config.pad_id)
    gradients = cases.gradients_case(batch, config.pad_id)
    _, weights = kinks.suited(config, [gradients], "float32", (
        probe_weights(config, seed + again * APART)
        for again in range(kinks.MOST_SEEDS)))
    return config, weights, (cases.model_case(batch, "forward"), gradients)


def tallied(names, dtypes, seeds, mkldnn=True):
    """The Tally of ports over seeds, in this process.

    Args:
        names, dtypes: what is compared, by name.
        seeds: whole numbers.
        mkldnn: whether PyTorch may use oneDNN.
    """
    if not mkldnn and "torch" in names:
        importlib.import_module("torch").backends.mkldnn.set_flags(False)
    engines = {name: ports.ready(name) for name in names}
    tally = Tally(
        blas=", ".join(sorted({str(one["architecture"])
                               for one in environment.blas()})),
        versions={name: engine.versions()
                  for name, engine in engines.items()})
    for seed in seeds:
        config, weights, wanted = drawn(seed)
        for dtype in dtypes:
            reference = Reference(config, weights, dtype)
            runners = {
                name: EngineRunner(engine, config, reference.arrays, dtype)
                for name, engine in engines.items()}
            for case in wanted:
                if dtype not in case.tiers:
                    continue
                truth = reference.truth(case)
                for name, runner in runners.items():
                    tally.add((name, dtype, case.name), seed, differences(
                        runner, case, truth, dtype))
    return tally


def differences(runner, case, truth, dtype):
    """What an EngineRunner's steps differ by; if it fails, one that says so."""
    inputs = [rounding.rounded(x, dtype) for x in case.inputs]
    try:
        return compare_steps(runner.steps(case, inputs), truth, dtype)
    except FAILURES as error:
        return {"every step": Difference(
            None, 0.0, DIVERGENCE, words_of(error))}


def dealt(count, setups):
    """The seeds of each Setup, as many as of another or one more."""
    ends = [count * place // len(setups) for place in range(len(setups) + 1)]
    return [range(*pair) for pair in itertools.pairwise(ends)]


def tallies(names, dtypes, count, chosen):
    """Yield (Setup, its seeds, Tally) of each, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    for setup, seeds in zip(chosen, dealt(count, chosen)):
        if not seeds:
            continue
        with mock.patch.dict(os.environ, setup.variables), \
                concurrent.futures.ProcessPoolExecutor(1, context) as pool:
            future = pool.submit(tallied, names, dtypes, seeds, setup.mkldnn)
            try:
                tally = future.result()
            except concurrent.futures.BrokenExecutor:
                tally = Tally(alarms=["the process ended"])
        yield setup, seeds, tally
