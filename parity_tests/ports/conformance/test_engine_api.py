"""What an engine is asked beside models: settings, arrays, numbers, dtypes."""

import contextlib
import dataclasses
import importlib

import numpy as np
import pytest

from transformer_contract import random
from transformer_contract.config import PRESETS, at_test_size
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import initial_weights, probe_weights, select
from parity import assert_parity, ports
from parity.check import canary, cases, golden, port_properties
from parity.check.runners import EngineRunner, Reference, compare_steps
from parity.numerics import dtypes, rounding
from parity.numerics.comparator import DIVERGENCE
from parity_tests.support.conformance import equal, holds, quick, refuses

pytestmark = pytest.mark.long

CONFIG = at_test_size(PRESETS["complete"])

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


def test_name_versions_and_devices(subject):
    engine = subject
    equal("package", ports.package(engine.NAME), engine.__package__)
    for library, version in engine.versions().items():
        equal(f"version of {library}", version, installed(library))
    holds("devices", "cpu" in engine.devices(), "there is no cpu")
    for device in engine.devices():
        error = canary.canary(engine, device)
        holds(f"product on {device}", error <= canary.CANARY_LIMIT,
              f"error {error} eps, limit {canary.CANARY_LIMIT}")
    refuses("an unknown device", engine.to_native, np.ones(1), "abacus",
            kind=Exception)


def test_full_precision_is_set(subject):
    """Also where somebody had set another, and where nothing tells of it."""
    usual = subject.NAME != "keras" or "tensorflow" in subject.versions()
    name = subject.NAME if usual else None
    disturb, in_force = FRAMEWORKS.get(name, (list, list))
    disturb()
    found = subject.set_precision()
    if name in PRECISION:
        equal("settings", found, PRECISION[name])
    holds("settings", all(in_force()), "not all are in force")


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
    """Without gradients, as a caller under torch's no_grad is."""
    return (importlib.import_module("torch").no_grad()
            if engine.NAME == "torch" else contextlib.nullcontext())


def installed(name):
    """The version of what is imported as ``name``; its distribution's, where
    the module has none."""
    return (getattr(importlib.import_module(name), "__version__", None)
            or ports.installed(name))


@quick("keras")
@pytest.mark.parametrize("dtype", (*dtypes.DTYPES, "int64", "bool"))
def test_arrays_there_and_back(subject, dtype):
    """Every dtype, strides of any kind, no dimension."""
    plain = np.arange(24).reshape(2, 3, 4).astype(
        dtypes.NUMPY.get(dtype, dtype))
    for what, given in (("whole", plain), ("turned", plain[::-1, :, ::-2]),
                        ("transposed", plain.T), ("one", plain[1, 2, 3])):
        found = subject.to_numpy(subject.to_native(given, "cpu"))
        equal(f"{what}: kind", type(found), np.ndarray)
        equal(f"{what}: dtype", found.dtype, given.dtype)
        equal(what, found.ravel(), np.ravel(given))


@quick()
@pytest.mark.parametrize("seed", SEEDS)
def test_random_numbers(subject, seed):
    """Keys and bits to the bit, at any seed; normals to rounding."""
    engine = subject
    theirs = importlib.import_module(f"{engine.__package__}.random")
    names, shape = ["a", "encoder.layers.0.dropout", "b"], (7, 3, 101)

    def array(value):
        value = np.asarray(engine.to_numpy(value))
        return value.view(UNSIGNED.get(value.dtype.name, value.dtype.name))

    key, other = random.key(seed), theirs.key(seed)
    equal(f"key of {seed}", array(other), key)
    for name in ("encoder.layers.0", 5, 2**32 - 1, 2**33 + 6):
        key, other = random.fold_in(key, name), theirs.fold_in(other, name)
        equal(f"fold_in {name}", array(other), key)
    each = theirs.fold_in_each(other, names)
    equal("fold_in_each", array(each), random.fold_in_each(key, names))
    equal("bits of several keys", array(theirs.bits(each, (4, 5))), np.stack([
        random.bits(random.fold_in(key, name), (4, 5)) for name in names]))
    for draw in ("bits", "bits64"):
        value = getattr(theirs, draw)(other, shape)
        found, expected = array(value), getattr(random, draw)(key, shape)
        equal(f"dtype of {draw}", found.dtype, expected.dtype)
        # What says "As int32" is the same bits, signed.
        equal(f"{draw} are signed", engine.to_numpy(value).dtype.kind != "u",
              "As int" in getattr(theirs, draw).__doc__)
        equal(draw, found, expected)
    equal("uniform", array(theirs.uniform(other, shape, -0.3, 0.7)),
          random.uniform(key, shape, -0.3, 0.7))
    assert_parity(array(theirs.normal(other, shape)),
                  random.normal(key, shape), name="normal", limit=1e-12)


def test_numbers_above_32_bits_are_folded_in(subject):
    """By their low word."""
    theirs = importlib.import_module(f"{subject.__package__}.random")
    one, other = (np.asarray(subject.to_numpy(theirs.fold_in(
        theirs.key(1), number))) for number in (6, 2**33 + 6))
    equal("2³³ + 6", other, one)


def test_initial_weights(subject):
    found = subject.initial_weights(CONFIG, SEEDS[1])
    for name, array in initial_weights(CONFIG, SEEDS[1]).items():
        equal(name, found[name], array)


@quick()
def test_dropout_at_the_border_of_the_rate(subject):
    """What is dropped where bits are exactly the rate's, and next to it.

    A value stays if its bits are not below rate · 2³².
    """
    dropout, theirs = (importlib.import_module(
        f"{subject.__package__}.{name}") for name in ("dropout", "random"))
    bits = random.bits(random.key(5), (9,)).astype(np.int64)
    for word in map(int, bits):
        for share in (0, 0.5, 1):  # in float32 all would be one number
            kept = subject.to_numpy(dropout.kept(
                theirs.key(5), (9,), (word + share) / 2**32))
            equal(f"{word} + {share}", np.asarray(kept),
                  bits >= int(word + share))


def test_loss_masks_and_product_of_little(subject):
    logits, labels = cases.values("one", 1, 3, 7), np.array([[0, 0, 4]])
    log_p = logits[0, 2] - np.log(np.exp(logits[0, 2]).sum())
    found = subject.loss(logits, labels, 0, 0.0, "uniform")
    holds("the loss of one token", abs(found + log_p[4]) < 1e-14,
          f"expected {-log_p[4]}, found {found}")
    masks = subject.masks(labels, labels, 0)
    equal("source_mask", masks["source_mask"].shape, (1, 1, 1, 3))
    equal("target_mask", masks["target_mask"].shape, (1, 1, 3, 3))
    equal("product", float(subject.matmul(
        np.ones((1, 2)), np.ones((2, 1)))[0, 0]), 2.0)


@pytest.mark.parametrize("shape", ((2, 1, 1, 6), (2, 1, 4, 6)))
def test_attention_of_given_heads(subject, shape):
    """Equation 1 by itself; test_refusals has masks of other shapes."""
    module = subject.build("multi_head_attention", CONFIG, select(
        probe_weights(CONFIG), "encoder.layers.0.self_attention."))
    query, key, value = (cases.values(name, 2, 3, length, CONFIG.d_k)
                         for name, length in (
                             ("query", 4), ("key", 6), ("value", 6)))
    mask = cases.values("mask", *shape) > 0
    mask[0, 0, 0] = False
    given = [subject.to_native(array, "cpu")
             for array in (query, key, value, mask)]
    steps = [{}] if subject.NAME == "numpy" else []
    found = module.attend(*given, 0, *steps)
    scores = query @ key.swapaxes(-1, -2) / CONFIG.d_k**0.5
    weights = np.where(mask, np.exp(scores), 0)
    total = weights.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(
        subject.to_numpy(found), weights @ value / np.where(total, total, 1),
        1e-12, 1e-13, err_msg="context")


@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
def test_softmax_in_float32_rounds_once(subject, dtype):
    """Of scores of 16 bits, at its end."""
    theirs = importlib.import_module(
        f"{subject.__package__}.dialects.attention")
    scores = (4 * cases.values("scores", 40, 3, 2, 40)).astype(
        dtypes.NUMPY[dtype])
    mask = cases.values("mask", 40, 1, 2, 40) > -1
    found = subject.to_numpy(theirs.rounded_softmax(
        subject.to_native(scores, "cpu"), subject.to_native(mask, "cpu")))
    weights = np.where(mask, np.exp(scores.astype("float64")), 0)
    weights /= weights.sum(axis=-1, keepdims=True)
    equal("dtype", found.dtype, scores.dtype)
    share = np.mean(found == weights.astype(scores.dtype))
    holds("the nearest number", share > NEARLY_ALL,
          f"of {share} of all, not of more than {NEARLY_ALL}")


@quick("keras", "jax")
@pytest.mark.forms("readable", "fast")
def test_native_masks(subject):
    """The framework's own: as many are kept, and others in every place."""
    wrong = [what for what, right in port_properties.native_masks(subject)
             if not right]
    equal("native masks", wrong, [])
    theirs, of_one = (ports.module_of(subject.NAME, name)
                      for name in ("random", "dropout"))
    key, rate = theirs.key(3), 0.3
    if subject.NAME == "numpy":
        return  # it draws by one key at a time
    several = theirs.fold_in_each(key, ["a", "b", "c"])
    # JAX's own generator has one key for all places
    for draw in (of_one.kept, of_one.native_kept)[:1 + (
            subject.NAME != "jax")]:
        masks = subject.to_numpy(draw(several, (4, 50), rate))
        equal("shape of several", masks.shape, (3, 4, 50))
        holds("share of several", 0.5 < masks.mean() < 0.9,
              f"found {masks.mean()}")


@pytest.mark.forms("readable", "fast")
def test_training_with_native_masks(subject):
    """Other values in every step, and none the named ones."""
    config = at_test_size(PRESETS["lesson"]).replace(dropout=0.4)
    batch = cases.padded_batch(config)
    losses = []
    for masks in "native", "named":
        model = subject.build("transformer", config, golden.shipped("lesson"))
        trainer = subject.trainer(model, TrainingConfig(
            schedule="constant", learning_rate=1e-12, masks=masks))
        losses += [float(subject.train_step(
            trainer, batch.source[None], batch.target[None])["loss"])
            for _ in range(2)]
    least = np.abs(np.subtract.outer(losses, losses))[
        np.triu_indices(4, 1)].min()
    holds("two losses", least > 1e-6, f"differ by {least} alone: {losses}")


def test_a_resumed_run_goes_on(subject):
    """As if it had not been saved; also where no gradients are wanted."""
    engine, config = subject, at_test_size(PRESETS["lesson"])
    weights = golden.shipped("lesson")
    training = TrainingConfig(warmup_steps=2, learning_rate=0.7)
    batch = cases.padded_batch(config)
    pairs = batch.source[None], batch.target[None]

    def trainer(arrays):
        model = engine.build("transformer", config, arrays)
        return model, engine.trainer(model, training)

    model, first = trainer(weights)
    for _ in range(2):
        engine.train_step(first, *pairs)
    saved, moments = (
        {name: np.array(array) for name, array in arrays.items()}
        for arrays in (engine.export(model), engine.moments(first)))
    other, second = trainer(saved)
    engine.resume(second, 2, moments)
    with without_gradients(engine):
        found, again = (
            engine.train_step(one, *pairs) for one in (first, second))
    for name, value in found.items():
        equal(f"kind of {name}", type(value), np.ndarray)
        equal(name, again[name], value)
    equal("names", found.keys(), {"loss", "norm", "rate"})
    equal("rate", float(found["rate"]),
          training.learning_rate * config.d_model**-0.5
          * min(3**-0.5, 3 * training.warmup_steps**-1.5))
    for what, one, two in (
            ("weights", engine.export(model), engine.export(other)),
            ("moments", engine.moments(first), engine.moments(second))):
        for name, array in one.items():
            equal(f"kind of {what} {name}", type(array), np.ndarray)
            holds(f"{what} {name}", array.flags["C_CONTIGUOUS"],
                  "it does not lie by rows")
            equal(f"{what} {name}", two[name], array)


@pytest.mark.parametrize("dtype", dtypes.BOTH)
def test_dtypes_of_what_is_returned(subject, dtype):
    batch = cases.padded_batch(CONFIG)
    model = subject.build(
        "transformer", CONFIG, golden.shipped("complete"), dtype)
    with without_gradients(subject):
        loss, gradients = subject.gradients(model, *batch, batch.target)
    for name, array in {"loss": loss, **gradients, **subject.forward(
            model, *batch), "predict": subject.predict(model, *batch)}.items():
        of_kind(name, array, dtype)


def test_dtypes_of_a_model_in_bfloat16(subject):
    batch = cases.padded_batch(CONFIG)
    config = CONFIG.replace(
        norm="rms", norm_rounding="float32", softmax_rounding="float32")
    model = subject.build(
        "transformer", config, initial_weights(config), "bfloat16")
    for name, array in subject.forward(model, *batch).items():
        of_kind(f"rounded {name}", array, "bfloat16")
    model = subject.build("transformer", CONFIG, golden.shipped("complete"),
                          "bfloat16")
    for name, array in subject.export(model).items():
        of_kind(f"exported {name}", array, "bfloat16")
    ways = [subject.generate(model, batch.source, GenerationConfig(
        max_tokens=4, cached=cached)) for cached in (False, True)]
    equal("tokens, cached", ways[1]["tokens"], ways[0]["tokens"])
    for way in ways:
        of_kind("tokens", way["tokens"], "int64")
        of_kind("scores", way["scores"], "float64")


def test_training_on_one_token(subject):
    config = at_test_size(PRESETS["lesson"])
    target = np.full((1, 2, 4), config.pad_id)
    target[0, 0, :2] = 1, 3
    source = cases.padded_batch(config).source[None, :2]
    found, expected = (each.train_step(each.trainer(each.build(
        "transformer", config, golden.shipped("lesson")), TrainingConfig()),
        source, target)["loss"] for each in (subject, ports.engine("numpy")))
    np.testing.assert_allclose(found, expected, 1e-12, 0)


@quick("keras")
@pytest.mark.parametrize("dtype", dtypes.BOTH)
def test_optimizer_in_each_precision(subject, dtype):
    """Each of Adam's steps, which `parity check` compares in float64 alone."""
    for case in cases.optimizer_cases():
        every_step(subject, "complete", dtype, case)


@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
def test_gradients_in_16_bits(subject, dtype):
    """Of the paper's model; `parity check` asks a smaller one."""
    preset = "vaswani2017_base"
    config = at_test_size(PRESETS[preset])
    every_step(subject, preset, dtype, dataclasses.replace(
        cases.gradients_case(cases.padded_batch(config), config.pad_id),
        tiers=cases.ALL_TIERS))


def every_step(engine, preset, dtype, case):
    """Fail where a step of a Case is farther off than its derived limit."""
    config = at_test_size(PRESETS[preset])
    reference = Reference(config, golden.shipped(preset), dtype)
    steps = compare_steps(
        EngineRunner(engine, config, reference.arrays, dtype).steps(
            case, [rounding.rounded(x, dtype) for x in case.inputs]),
        reference.truth(case), dtype)
    for step, found in steps.items():
        holds(f"{case.name}, {step}", found.verdict != DIVERGENCE,
              f"error {found.error}, limit {found.limit}; {found.reason}")


def of_kind(place, value, dtype):
    """Fail unless a value is a NumPy array of a dtype."""
    equal(f"kind of {place}", type(value), np.ndarray)
    equal(f"dtype of {place}", value.dtype.name, dtype)


@pytest.mark.parametrize("name", port_properties.ASKED)
def test_properties(subject, name):
    """What `parity check` asks of it once, beside models."""
    wrong = {what: words for what, right in port_properties.ASKED[name](
        subject) if (words := port_properties.shortcoming(right))}
    equal(name, wrong, {})
