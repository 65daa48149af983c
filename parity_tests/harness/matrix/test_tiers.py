"""Precision tiers: ports match, and what such tiers hide is seen."""

from unittest import mock

import numpy as np
import pytest

from transformer_contract.config import PRESETS, at_test_size
from parity_io.errors import InputError
from transformer_contract.loss_scale import LossScale
from transformer_contract.training import TrainingConfig
from parity import ports
from parity.check import golden, training_runs, workers
from parity.matrix import cells, measuring, tiers
from parity.numerics import mixed, tolerances
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.dtypes import EPS, MIXED, TIERS
from parity.subjects import Subject

EVERY = pytest.mark.parametrize(
    "engine", ["torch", "keras", "jax"], indirect=True)


def cell(engine, tier, work):
    """The SubjectCell of a port in a tier, measured in this process."""
    subject = Subject(engine.NAME, dtype=tier)
    found = measuring.measured(
        workers.Workbench(engine), subject, work, "lesson")
    if isinstance(found, str):
        return cells.left_out(subject, work, found)
    return cells.cell_of(subject, work, found)


@pytest.mark.long(16)
@EVERY
@pytest.mark.parametrize("tier", MIXED)
def test_a_forward_pass_matches(engine, tier):
    found = cell(engine, tier, "forward")
    assert found.verdict == MATCH, found
    assert found.compared > 100
    assert .3 < found.beside < 3


@pytest.mark.parametrize("engine", ["torch", *(
    pytest.param(port, marks=pytest.mark.long) for port in ("keras", "jax"))],
    indirect=True)
@pytest.mark.parametrize("tier", MIXED)
@pytest.mark.parametrize("work", ["gradients", "training"])
def test_a_port_trains(engine, tier, work):
    found = cell(engine, tier, work)
    assert found.verdict == MATCH, found
    assert .3 < found.beside < 3


FAULTS = {
    "a norm in 16 bits": "it holds no more than bfloat16",
    "residual sums in 16 bits": "it holds no more than bfloat16",
    "nothing in 16 bits": "it was not computed in bfloat16",
    "gradients with nothing in 16 bits": "it was not computed so",
    "training with nothing in 16 bits": "it was not computed so",
    "the output alone in 16 bits": "it was not computed in bfloat16",
    "gradients in 16 bits": "it holds no more than bfloat16",
    "the other 16 bits": "it was not computed in bfloat16",
    "a loss in 16 bits": "it holds no more than bfloat16",
    "a lost master copy": "",
    "first moments in 16 bits": "step 1 m.source_embedding.table: it holds no",
    "second moments in 16 bits": "step 1 v.source_embedding.table: it holds no",
    "a loss scale off by one step": "",
    "clipped before it is unscaled": "norm",
    "an overflow that moves weights": "a step that overflows moved them",
    "an overflow that counts as a step": "step 2",
    "a scale that grows a step late": "scale",
    "one master copy in 16 bits": "step 2 movement",
    "one first moment in 16 bits":
        "step 1 m.source_embedding.table: it holds no more than bfloat16",
    "a direction in 16 bits": "it is not what its moments say",
    "corrections in 16 bits": "it is not what its moments say",
    "squares in 16 bits": "step 1 v",
    "clipped gradients in 16 bits": "step 1 m",
    "a factor of clipping in 16 bits": "step 1 clipped norm",
    "an overflow that moves moments": "step 2",
    "a pass of the weights before": "of a new model of the same weights",
}


@pytest.mark.parametrize("engine", ["torch"], indirect=True)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.long(12)
def test_what_a_tier_hides_is_seen(engine, fault):
    from parity_tests.support import tiers as planted
    work, tier, put = planted.FAULTS[fault]
    with put():
        found = cell(engine, tier, work)
    assert found.verdict == DIVERGENCE, found
    assert FAULTS[fault] in found.reason
    assert set(FAULTS) == set(planted.FAULTS)


@pytest.mark.parametrize("engine", ["torch"], indirect=True)
@pytest.mark.parametrize("tier, products, verdict", [
    ("tf32", "tf32", MATCH), ("tf32", "bfloat16", DIVERGENCE),
    ("tf32", "bfloat16x3", MATCH),
    ("bfloat16x3", "bfloat16x3", MATCH), ("bfloat16x3", "tf32", DIVERGENCE)])
def test_products_of_a_device_are_judged(engine, tier, products, verdict):
    """By a stand-in of a GPU: torch with NumPy's rounding of operands."""
    from parity_tests.support import tiers as planted
    theirs = ports.module_of("torch", "targets.mixed")
    with mock.patch.object(theirs, "missing", lambda tier, device: ""), \
            mock.patch.object(theirs, "products", lambda tier: (
                planted.Products(planted.PRODUCTS[products]))):
        found = cell(engine, tier, "forward")
    assert found.verdict == verdict, found
    if products == tier == "tf32":  # it is no float32
        assert found.error > tolerances.fixed_limit("float32")


@pytest.mark.parametrize("engine", ["torch"], indirect=True)
@pytest.mark.parametrize("work", ["forward", "gradients", "training"])
@pytest.mark.parametrize("tier", MIXED)
def test_a_gpus_autocast_is_judged(engine, tier, work):
    """By a stand-in: torch with a softmax in float32, as autocast's there."""
    torch = pytest.importorskip(
        "torch", reason="not checked: torch is not installed")
    theirs = ports.module_of("torch", "targets.mixed")
    of_gpu = theirs.kind("cuda")
    assert of_gpu == mixed.LONG_SOFTMAX
    with mock.patch.object(
            ports.module_of("torch", "attention"), "softmax",
            lambda x: torch.softmax(x.float(), dim=-1)), mock.patch.dict(
            ports.module_of("torch", "dialects.output").OUTPUTS,
            log_probs=lambda x: torch.log_softmax(x.float(), dim=-1)):
        if work == "forward":  # it is not a processor's
            assert "not computed in" in cell(engine, tier, work).reason
        with mock.patch.object(theirs, "kind", lambda device: of_gpu):
            found = cell(engine, tier, work)
    assert found.verdict == MATCH, found
    assert .3 < found.beside < 3


@EVERY
def test_a_processor_has_no_other_products(engine):
    for tier in TIERS:
        if tier not in MIXED:
            assert cell(engine, tier, "forward").verdict == cells.NOT_CHECKED


def test_tf32_keeps_ten_bits():
    ones = np.float32(1) + np.float32(2)**-np.arange(1, 24, dtype=np.float32)
    rounded = mixed.to_tf32(ones)
    assert (rounded[:10] == ones[:10]).all()
    assert (rounded[10:] == 1).all()  # half of the last bit goes to the even
    assert mixed.to_tf32(np.float32([1 + 3 * 2.0**-11])) == 1 + 2.0**-9
    assert (mixed.to_tf32(-ones) == -rounded).all()


def test_three_products_are_nearly_float32():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(64, 64)).astype("f4") for _ in range(2))
    truth = a.astype("f8") @ b

    def error(product):
        return np.linalg.norm(product - truth) / np.linalg.norm(truth)

    assert error(mixed.in_tf32(a, b)) < TIERS["tf32"].eps
    assert error(mixed.in_three(a, b)) < TIERS["bfloat16x3"].eps
    assert error(a @ b) < 4 * EPS["float32"] < error(mixed.in_three(a, b)) < (
        error(mixed.in_tf32(a, b)))


def test_what_16_bits_hold():
    assert mixed.holds_no_more(np.float32([1, .5, 3]), "bfloat16")
    assert not mixed.holds_no_more(np.float32([1, 1 / 3]), "bfloat16")
    assert mixed.holds_no_more(np.float32([2.0**-24]), "float16")
    assert not mixed.holds_no_more(np.float32([2.0**-25]), "float16")


def test_the_works_of_a_tier():
    assert all(set(cells.WORKS[work]) >= set(MIXED) for work in tiers.COMPARED)


@pytest.mark.long(48)
@EVERY
def test_a_step_has_one_batch_and_each_model_its_own_loss(engine):
    """Two batches are refused; a second model is not taken for the first."""
    mixed_engine = ports.module_of(engine.NAME, "targets.mixed").MixedEngine(
        "bfloat16", "mixed-bfloat16")
    losses = []
    for smoothing in (0.0, 0.5):
        config = at_test_size(PRESETS["lesson"]).replace(
            label_smoothing=smoothing, dropout=0.0)
        trainer = mixed_engine.trainer(mixed_engine.build(
            "transformer", config, golden.shipped("lesson"), "float32"),
            TrainingConfig())
        ids = np.array([[[1, 5, 6, 2]]])
        with pytest.raises(InputError, match="one batch, and not 2"):
            mixed_engine.train_step(trainer, *[np.repeat(ids, 2, 0)] * 2)
        losses.append(float(mixed_engine.train_step(
            trainer, ids, ids)["loss"]))
    assert abs(losses[1] - losses[0]) > 1e-3


def test_the_step_that_all_share_is_the_trainers_own():
    """In no tier, at any scale, it moves weights as the reference does."""
    config, arrays, _ = tiers.smooth_model("lesson")
    shared = tiers.EmulatedTrainer(
        tiers.Emulated(config, arrays), tiers.TRAINING)
    engine = ports.engine("numpy")
    model = engine.build("transformer", config, arrays)
    trainer = engine.trainer(model, tiers.TRAINING)
    for number in (1, 2, 3):
        pairs = [ids[:1] for ids in training_runs.batches(config, number)]
        expected = engine.train_step(trainer, *pairs)
        found = shared.train_step(*(ids[0] for ids in pairs), False)
        for name in ("loss", "norm"):
            assert found[name] == expected[name]
        for name, array in engine.export(model).items():
            np.testing.assert_array_equal(found["weights"][name], array)


@EVERY
def test_what_a_tier_has_not_is_no_other_engines(engine):
    """Such as a search, which would compute in float32 without a word."""
    mixed_engine = ports.module_of(engine.NAME, "targets.mixed").MixedEngine(
        "bfloat16", "mixed-bfloat16")
    assert mixed_engine.masks is engine.masks
    for name in ("predict", "forward", "generate"):
        assert not hasattr(mixed_engine, name)


def test_a_scale_goes_as_torchs_does():
    torch = pytest.importorskip(
        "torch", reason="not checked: torch is not installed")
    ours = LossScale(value=2.0**16, backoff=0.5, interval=3)
    theirs = torch.amp.GradScaler(
        "cpu", init_scale=ours.value, growth_factor=ours.growth,
        backoff_factor=ours.backoff, growth_interval=ours.interval)
    weight = torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    seen = set()
    for finite in np.random.default_rng(0).random(60) < 0.7:
        theirs.scale(torch.zeros(()))  # it is made where it is first used
        weight.grad = torch.tensor(1.0 if finite else torch.inf)
        theirs.step(optimizer)
        theirs.update()
        ours.update(bool(finite))
        assert ours.value == theirs.get_scale()
        seen.add(ours.value)
    assert len(seen) > 4
