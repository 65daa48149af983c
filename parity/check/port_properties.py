"""What a port is asked beside its models: manners, and how else it is used.

Each function of ASKED yields (what is asked, whether it is so) of an engine;
of numbers a Difference, which says by how much it is not.
"""

import concurrent.futures
import dataclasses
import importlib
import importlib.util
import sys

import numpy as np

from transformer_contract.batch import Batch
from transformer_contract.config import PRESETS, at_test_size
from parity import ports
from parity.check import cases, golden, manners
from parity.check.runners import EngineRunner, Reference, compare_steps
from parity.numerics import rounding
from parity.numerics.comparator import DIVERGENCE, MATCH, Difference
from parity.numerics.dtypes import DTYPES

#: Places of dropout, the share that is dropped, and how far off a mask's may
#: be: eight deviations of so many values.
PLACES, RATE, FAR = {"a": (100, 300), "b": (100, 300)}, 0.3, 0.02

#: In which share two masks differ at least, of 2 · RATE · (1 - RATE).
APART = 0.3

#: What the kernels are multiplied by behind which an activation stands.
LARGE = 30

#: [B, S, T] of a batch of one row, with a longer target than a source.
ONE_ROW = 1, 7, 10

#: How often each of two threads asks, and after how many seconds they change.
TURNS, INTERVAL = 6, 1e-5


def sixteen_bits(engine):
    """Yield whether steps and gradients are right in 16 bits, each by the
    limit that follows from the reference's own rounding."""
    config = at_test_size(PRESETS[manners.PRESET])
    batch, weights = cases.padded_batch(config), golden.shipped(manners.PRESET)
    for dtype in DTYPES[2:]:
        reference = Reference(config, weights, dtype)
        runner = EngineRunner(engine, config, reference.arrays, dtype)
        for case in cases.model_case(batch), dataclasses.replace(
                cases.gradients_case(batch, config.pad_id),
                tiers=cases.ALL_TIERS):
            found = compare_steps(runner.steps(
                case, [rounding.rounded(x, dtype) for x in case.inputs]),
                reference.truth(case), dtype)
            for step, difference in found.items():
                yield f"{step} in {dtype}", difference


def large_values(engine):
    """Yield whether steps are right where activations are far from zero."""
    config = at_test_size(PRESETS[manners.PRESET])
    weights = {
        name: array * (LARGE if name.endswith("inner.kernel") else 1)
        for name, array in golden.shipped(manners.PRESET).items()}
    case = cases.model_case(cases.padded_batch(config))
    found = compare_steps(
        EngineRunner(engine, config, weights, "float64").steps(
            case, case.inputs),
        Reference(config, weights, "float64").truth(case), "float64")
    for step, difference in found.items():
        yield f"{step} of large values", difference


def one_row(engine):
    """Yield whether a batch of one row is answered right."""
    guest, (rows, *lengths) = manners.guest_of(engine), ONE_ROW
    config = guest.config
    case = cases.prediction_case(Batch.of_ids(*(
        cases.ids(what, rows, length, vocab) for what, length, vocab in zip(
            ("source", "target"), lengths,
            (config.source_ids, config.target_vocab))), config.pad_id))
    truth = Reference(config, guest.weights, "float64").truth(case)
    found = {"output": engine.predict(guest.model, *case.inputs)}
    yield "output of one row", compare_steps(found, truth, "float64")["output"]


def native_masks(engine):
    """Yield whether the framework's own masks keep as many, and others in
    every place, row and feature."""
    name = f"{engine.__package__}.dropout"
    dropout = (importlib.import_module(name) if importlib.util.find_spec(name)
               else ports.module_of(engine.NAME, "dropout"))
    key = ports.module_of(engine.NAME, "random").key(3)
    native, named = ({place: np.asarray(engine.to_numpy(mask))
                      for place, mask in dropout.draw(
                          key, PLACES, RATE, native).items()}
                     for native in (True, False))
    mask = native["a"]
    for place, shape in PLACES.items():
        yield f"shape of {place}", native[place].shape == shape
    yield "share kept", abs(mask.mean() - (1 - RATE)) < FAR
    for what, one, other in (
            ("another place's", mask, native["b"]),
            ("the named one", mask, named["a"]),
            ("that of other rows", mask[1:], mask[:-1]),
            ("that of other features", mask[:, 1:], mask[:, :-1])):
        yield f"a native mask is not {what}", (one != other).mean() > APART


def training_mode(engine):
    """Yield whether a model in training mode answers as another does, and is
    left in it; and whether one learns that answered without gradients."""
    guest = manners.guest_of(engine)
    for name in "gradients", "predict", "forward", "generate, greedy":
        function = guest.asked[name]
        expected = function()
        if hasattr(guest.model, "train"):
            guest.model.train()
        before = modes(engine, guest.model)
        yield f"{name} in training mode", manners.same(function(), expected)
        yield f"modes after {name}", modes(engine, guest.model) == before
        if hasattr(guest.model, "eval"):
            guest.model.eval()
        if engine.NAME == "torch" and name == "gradients":
            fresh = manners.Guest(engine)
            with importlib.import_module("torch").inference_mode():
                fresh.asked["predict"]()
            yield "gradients after inference mode", manners.same(
                fresh.asked[name](), expected)


def modes(engine, model):
    """{path: whether it trains} of each part that has a mode."""
    found = {}
    for path, part in ports.module_of(
            engine.NAME, "parameters").modules(model):
        for name in ("training", "deterministic"):
            if isinstance(value := getattr(part, name, None), bool):
                found[path] = value == (name == "training")
    return found


def two_threads(engine):
    """Yield whether two models that work at once answer as they do alone.

    What one raises is raised.
    """
    guests = [manners.guest_of(engine), manners.Guest(engine)]
    names = "predict", "forward"
    expected = [[guest.asked[name]() for name in names] for guest in guests]

    def work(place):
        return [manners.same(guests[place].asked[names[turn % 2]](),
                             expected[place][turn % 2])
                for turn in range(place, place + TURNS)]

    before = sys.getswitchinterval()
    sys.setswitchinterval(INTERVAL)
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            right = list(pool.map(work, range(2)))
    finally:
        sys.setswitchinterval(before)
    for answers_of in right:
        yield "answers in two threads", all(answers_of)


ASKED = {"manners": manners.manners, "manners at work": manners.manners_at_work,
         "large values": large_values, "one row": one_row,
         "native masks": native_masks,
         "training mode": training_mode, "two threads": two_threads,
         "16 bits": sixteen_bits}

#: What takes those long that compile each shape and each work.
COSTLY = "manners at work", "training mode", "16 bits"


def shortcoming(right):
    """What is wrong with an answer of ASKED, in words; "" if nothing is."""
    if not isinstance(right, Difference):
        return "" if right else "expected it to hold; it does not"
    if right.verdict != DIVERGENCE:
        return ""
    error = "" if right.error is None else (
        f"error {right.error:.1e}, limit {right.limit:.1e}")
    return "; ".join(filter(None, (error, right.reason)))


def answers(bench, name):
    """What a port's engine answers to one of ASKED: {what: Difference}."""
    wrong: dict = {}
    for what, right in ASKED[name](bench.engine):
        wrong[what] = wrong.get(what) or shortcoming(right)
    return {what: Difference(None, 0.0, DIVERGENCE, words) if words else
            Difference(0.0, 0.0, MATCH) for what, words in wrong.items()}
