"""What an engine is asked beside models: its settings, numbers and refusals.

Each function of ASKED yields (what is asked, whether the answer is right).
"""

import contextlib
import functools
import importlib

import numpy as np

from transformer_contract import random
from transformer_contract.config import PRESETS, at_test_size
from transformer_contract.errors import InputError
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import initial_weights, part, probe_weights
from parity import ports
from parity.check import canary, cases, extremes, golden, manners, search_alone
from parity.check.refusals import CONFIG, raises, refusals
from parity.check.search_steps import choices, steps_of_searches
from parity.check.surroundings import surroundings
from parity.numerics import dtypes
from parity.numerics.comparator import (
    DIVERGENCE, MATCH, Difference, relative_error)

#: What full precision is set by, where a port runs on its usual backend.
PRECISION = {
    "torch": {"float32_matmul_precision": "highest",
              "cuda.matmul.allow_tf32": False, "cudnn.allow_tf32": False,
              "deterministic_algorithms": True},
    "keras": {"tensor_float_32_execution": False, "op_determinism": True},
    "jax": {"jax_enable_x64": True,
            "jax_default_matmul_precision": "highest"},
}

UNSIGNED = {"int32": "uint32", "int64": "uint64"}

SEEDS = 0, 2**32 + 7, 2**64 - 1

#: The share of numbers of 16 bits that are the nearest to what float32 has
#: computed; float32 itself puts one in thirty thousand on the other side.
NEARLY_ALL = 0.999


def beginning(engine):
    """Its name, versions, settings and devices."""
    yield "name", ports.package(engine.NAME) == engine.__package__
    for library, version in engine.versions().items():
        yield f"version of {library}", version == installed(library)
    usual = engine.NAME != "keras" or "tensorflow" in engine.versions()
    name = engine.NAME if usual else None
    disturb, in_force = FRAMEWORKS.get(name, (list, list))
    disturb()
    expected = PRECISION.get(name)
    yield "settings", engine.set_precision() == expected or not expected
    yield "settings in force", all(in_force())
    yield "devices", "cpu" in engine.devices()
    for device in engine.devices():
        yield f"product on {device}", canary.canary(
            engine, device) <= canary.CANARY_LIMIT
    yield "an unknown device", raises(
        Exception, engine.to_native, np.ones(1), "abacus")


def disturb_torch():
    """Set what set_precision has to undo."""
    torch = importlib.import_module("torch")
    torch.set_float32_matmul_precision("medium")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.use_deterministic_algorithms(False)


def torch_in_force():
    """What set_precision does not tell of itself."""
    torch = importlib.import_module("torch")
    return (torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled())


#: TensorFlow has no public name for this: its enable_op_determinism lies here.
TENSORFLOW = "tensorflow.python.framework.config"


def disturb_tensorflow():
    """The same where Keras runs on TensorFlow."""
    config = importlib.import_module(TENSORFLOW)
    config.enable_tensor_float_32_execution(True)
    config.disable_op_determinism()


def tensorflow_in_force():
    """What set_precision only says of itself."""
    config = importlib.import_module(TENSORFLOW)
    return (config.is_op_determinism_enabled(),)


def disturb_jax():
    """The same of JAX."""
    config = importlib.import_module("jax").config
    config.update("jax_enable_x64", False)
    config.update("jax_default_matmul_precision", None)


#: Port -> what disturbs its framework, and what has to be in force then.
FRAMEWORKS = {"torch": (disturb_torch, torch_in_force),
              "keras": (disturb_tensorflow, tensorflow_in_force),
              "jax": (disturb_jax, list)}


def without_gradients(engine):
    """As a caller may be who wants none: a port that needs them says so."""
    return (importlib.import_module("torch").no_grad()
            if engine.NAME == "torch" else contextlib.nullcontext())


def installed(name):
    """The version of what is imported as ``name``; its distribution's, where
    the module has none."""
    return (getattr(importlib.import_module(name), "__version__", None)
            or ports.installed(name))


def arrays(engine):
    """Arrays there and back: every dtype, strides of any kind, no dimension."""
    for dtype in (*dtypes.DTYPES, "int64", "bool"):
        plain = np.arange(24).reshape(2, 3, 4).astype(
            dtypes.NUMPY.get(dtype, dtype))
        for what, given in (("whole", plain), ("turned", plain[::-1, :, ::-2]),
                            ("transposed", plain.T), ("one", plain[1, 2, 3])):
            found = engine.to_numpy(engine.to_native(given, "cpu"))
            yield f"{dtype}, {what}", (
                isinstance(found, np.ndarray) and found.dtype == given.dtype
                and found.size == np.size(given)
                and np.array_equal(found.ravel(), np.ravel(given)))


def numbers(engine):
    """Keys and bits to the bit, at any seed; normals to rounding."""
    theirs = importlib.import_module(f"{engine.__package__}.random")
    names, shape = ["a", "encoder.layers.0.dropout", "b"], (7, 3, 101)

    def array(value):
        value = np.asarray(engine.to_numpy(value))
        return value.view(UNSIGNED.get(value.dtype.name, value.dtype.name))

    def fits(draw, value):  # what says "As int32" is the same bits, signed
        unsigned = engine.to_numpy(value).dtype.kind == "u"
        return unsigned != ("As int" in getattr(theirs, draw).__doc__)

    for seed in SEEDS:
        key, other = random.key(seed), theirs.key(seed)
        yield f"key of {seed}", np.array_equal(array(other), key)
        for name in ("encoder.layers.0", 5, 2**32 - 1, 2**33 + 6):
            key, other = random.fold_in(key, name), theirs.fold_in(other, name)
            yield f"fold_in {name}", np.array_equal(array(other), key)
        each = theirs.fold_in_each(other, names)
        yield "fold_in_each", np.array_equal(
            array(each), random.fold_in_each(key, names))
        yield "bits of several keys", np.array_equal(
            array(theirs.bits(each, (4, 5))), np.stack([random.bits(
                random.fold_in(key, name), (4, 5)) for name in names]))
        for draw in ("bits", "bits64"):
            value = getattr(theirs, draw)(other, shape)
            found, expected = array(value), getattr(random, draw)(key, shape)
            yield draw, (found.dtype == expected.dtype and fits(draw, value)
                         and np.array_equal(found, expected))
        found = array(theirs.uniform(other, shape, -0.3, 0.7))
        yield "uniform", np.array_equal(
            found, random.uniform(key, shape, -0.3, 0.7))
        found = array(theirs.normal(other, shape))
        yield "normal", found.dtype == np.float64 and relative_error(
            found, random.normal(key, shape))[0] < 1e-12
    found = engine.initial_weights(CONFIG, SEEDS[1])
    for name, array_ in initial_weights(CONFIG, SEEDS[1]).items():
        yield f"first {name}", np.array_equal(found[name], array_)


def borders(engine):
    """What is dropped where bits are exactly the rate's, and next to it.

    A value stays if its bits are not below rate · 2³².
    """
    dropout = importlib.import_module(f"{engine.__package__}.dropout")
    theirs = importlib.import_module(f"{engine.__package__}.random")
    bits = random.bits(random.key(5), (9,)).astype(np.int64)
    for word in map(int, bits):
        for share in (0, 0.5, 1):  # in float32 all would be one number
            kept = engine.to_numpy(dropout.kept(
                theirs.key(5), (9,), (word + share) / 2**32))
            yield f"{word} + {share}", np.array_equal(
                kept, bits >= int(word + share))
    logits, labels = cases.values("one", 1, 3, 7), np.array([[0, 0, 4]])
    log_p = logits[0, 2] - np.log(np.exp(logits[0, 2]).sum())
    found = engine.loss(logits, labels, 0, 0.0, "uniform")
    yield "the loss of one token", abs(found + log_p[4]) < 1e-14
    masks = engine.masks(labels, labels, 0)
    yield "masks", (masks["source_mask"].shape == (1, 1, 1, 3)
                    and masks["target_mask"].shape == (1, 1, 3, 3))
    yield "product", engine.matmul(np.ones((1, 2)), np.ones((2, 1))) == 2


def attention(engine):
    """Equation 1 by itself, of heads that are given."""
    module = engine.build("multi_head_attention", CONFIG, part(
        probe_weights(CONFIG), "encoder.layers.0.self_attention."))
    query, key, value = (cases.values(name, 2, 3, length, CONFIG.d_k)
                         for name, length in (
                             ("query", 4), ("key", 6), ("value", 6)))
    for shape in ((2, 1, 1, 6), (2, 1, 4, 6), (1, 1, 6, 6), (2, 1, 4, 4)):
        mask = cases.values("mask", *shape) > 0
        mask[0, 0, 0] = False
        given = [engine.to_native(array, "cpu")
                 for array in (query, key, value, mask)]
        steps = [{}] if engine.NAME == "numpy" else []
        call = functools.partial(module.attend, *given, 0, *steps)
        if shape[-2:] in ((6, 6), (4, 4)):
            yield f"mask {shape}", raises(InputError, call)
            continue
        scores = query @ key.swapaxes(-1, -2) / CONFIG.d_k**0.5
        weights = np.where(mask, np.exp(scores), 0)
        total = weights.sum(axis=-1, keepdims=True)
        context = weights @ value / np.where(total, total, 1)
        yield f"context, {shape}", np.allclose(
            engine.to_numpy(call()), context, 1e-12, 1e-13)


def rounded_weights(engine):
    """A softmax in float32 of scores of 16 bits: one rounding, at its end."""
    theirs = importlib.import_module(
        f"{engine.__package__}.dialects.attention")
    for dtype in ("bfloat16", "float16"):
        scores = (4 * cases.values("scores", 40, 3, 2, 40)).astype(
            dtypes.NUMPY[dtype])
        mask = cases.values("mask", 40, 1, 2, 40) > -1
        found = engine.to_numpy(theirs.SOFTMAXES["float32"](
            engine.to_native(scores, "cpu"), engine.to_native(mask, "cpu")))
        weights = np.where(mask, np.exp(scores.astype("float64")), 0)
        weights /= weights.sum(axis=-1, keepdims=True)
        yield dtype, (found.dtype == scores.dtype and np.mean(
            found == weights.astype(scores.dtype)) > NEARLY_ALL)


def native_masks(engine):
    """The framework's own masks: as many, and others in every place."""
    dropout = importlib.import_module(f"{engine.__package__}.dropout")
    theirs = importlib.import_module(f"{engine.__package__}.random")
    key, rate = theirs.fold_in(theirs.key(3), "dropout"), 0.3
    places = {"a": (100, 300), "b": (100, 300), "c": (7,)}
    native, named = ({name: np.asarray(engine.to_numpy(mask)) for name, mask
                      in dropout.draw(key, places, rate, kind).items()}
                     for kind in (True, False))
    for name, shape in places.items():
        yield f"shape of {name}", native[name].shape == shape
    yield "share", abs(native["a"].mean() - (1 - rate)) < 0.02
    yield "places", (native["a"] != native["b"]).mean() > 0.3
    yield "not the named ones", (native["a"] != named["a"]).mean() > 0.3
    several = theirs.fold_in_each(key, ["a", "b", "c"])
    # JAX's own generator has one key for all places
    for draw in (dropout.kept, dropout.native_kept)[:1 + (
            engine.NAME != "jax")]:
        masks = engine.to_numpy(draw(several, (4, 50), rate))
        yield "several", masks.shape == (3, 4, 50) and 0.5 < masks.mean() < 0.9


def native_steps(engine):
    """Training with them: other values in every step, none the named ones."""
    config = at_test_size(PRESETS["lesson"]).replace(dropout=0.4)
    batch = cases.padded_batch(config)
    losses = []
    for masks in "native", "named":
        model = engine.build("transformer", config, golden.shipped("lesson"))
        trainer = engine.trainer(model, TrainingConfig(
            schedule="constant", learning_rate=1e-12, masks=masks))
        losses += [float(engine.train_step(
            trainer, batch.source[None], batch.target[None])["loss"])
            for _ in range(2)]
    yield "losses", np.abs(np.subtract.outer(losses, losses)
                           )[np.triu_indices(4, 1)].min() > 1e-6


def resumed(engine):
    """A run that is saved and resumed goes on as if it had not been."""
    config = at_test_size(PRESETS["lesson"])
    weights = golden.shipped("lesson")
    training = TrainingConfig(warmup_steps=2, learning_rate=0.7)
    batch = cases.padded_batch(config)
    pairs = batch.source[None], batch.target[None]

    def trainer(arrays_):
        model = engine.build("transformer", config, arrays_)
        return model, engine.trainer(model, training)

    model, first = trainer(weights)
    for _ in range(2):
        engine.train_step(first, *pairs)
    saved, moments = (
        {name: np.array(array) for name, array in arrays_.items()}
        for arrays_ in (engine.export(model), engine.moments(first)))
    other, second = trainer(saved)
    engine.resume(second, 2, moments)
    with without_gradients(engine):
        told = [engine.train_step(one, *pairs) for one in (first, second)]
    for name, value in told[0].items():
        yield name, (isinstance(value, np.ndarray)
                     and np.array_equal(value, told[1][name]))
    yield "rate", told[0].keys() == {"loss", "norm", "rate"} and bool(
        told[0]["rate"] == training.learning_rate * config.d_model**-0.5
        * min(3**-0.5, 3 * training.warmup_steps**-1.5))
    for what, one, two in (
            ("weights", engine.export(model), engine.export(other)),
            ("moments", engine.moments(first), engine.moments(second))):
        for name, array in one.items():
            yield f"{what} {name}", (
                isinstance(array, np.ndarray)
                and array.flags["C_CONTIGUOUS"]
                and np.array_equal(array, two[name]))


def kinds(engine):
    """What is returned are arrays of the dtypes that are promised."""
    batch = cases.padded_batch(CONFIG)
    for dtype in dtypes.BOTH:
        model = engine.build(
            "transformer", CONFIG, golden.shipped("complete"), dtype)
        with without_gradients(engine):
            loss, gradients = engine.gradients(model, *batch, batch.target)
        for name, array in {"loss": loss, **gradients, **engine.forward(
                model, *batch), "": engine.predict(model, *batch)}.items():
            yield f"{dtype} {name}", of_kind(array, dtype)
    config = CONFIG.replace(
        norm="rms", norm_rounding="float32", softmax_rounding="float32")
    model = engine.build(
        "transformer", config, initial_weights(config), "bfloat16")
    for name, array in engine.forward(model, *batch).items():
        yield f"bfloat16, rounded {name}", of_kind(array, "bfloat16")
    model = engine.build("transformer", CONFIG, golden.shipped("complete"),
                         "bfloat16")
    yield "bfloat16, exported", all(
        of_kind(array, "bfloat16") for array in engine.export(model).values())
    ways = [engine.generate(model, batch.source, GenerationConfig(
        max_tokens=4, cached=cached)) for cached in (False, True)]
    yield "bfloat16, cached or not", np.array_equal(
        *(way["tokens"] for way in ways))
    for way in ways:
        yield "tokens", of_kind(way["tokens"], "int64")
        yield "scores", of_kind(way["scores"], "float64")


def one_token(engine):
    """A step of training with one token to predict."""
    config = at_test_size(PRESETS["lesson"])
    target = np.full((1, 2, 4), config.pad_id)
    target[0, 0, :2] = 1, 3
    source = cases.padded_batch(config).source[None, :2]
    losses = []
    for each in (engine, ports.engine("numpy")):
        model = each.build("transformer", config, golden.shipped("lesson"))
        trainer = each.trainer(model, TrainingConfig())
        losses.append(each.train_step(trainer, source, target)["loss"])
    yield "loss", np.allclose(*losses, 1e-12, 0)


def of_kind(value, dtype):
    """Whether a value is a NumPy array of a dtype."""
    return isinstance(value, np.ndarray) and value.dtype.name == dtype


ASKED = {function.__name__.replace("_", " "): function for function in (
    beginning, arrays, numbers, borders, attention, rounded_weights,
    native_masks, native_steps, refusals, resumed, kinds, steps_of_searches,
    choices, one_token, surroundings, manners.manners,
    manners.manners_at_work)}
ASKED |= extremes.ASKED | extremes.FAST | search_alone.ASKED


def answers(bench, name):
    """What a port's engine answers to one of ASKED: {what: Difference}."""
    fits: dict = {}
    for what, right in ASKED[name](bench.engine):
        fits[what] = fits.get(what, True) and bool(right)
    return {what: verdict(right) for what, right in fits.items()}


def verdict(right):
    """A Difference of what is as it should be, or is not."""
    return Difference(0.0 if right else None, 0.0,
                      MATCH if right else DIVERGENCE,
                      "" if right else "it is not so")
