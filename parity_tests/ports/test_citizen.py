"""A port as a model that its framework's users can put into a program.

Each row is asked of every port, through what ``citizens/NAME.py`` says of its
framework: how a mode is set, how a file is written, how code is compiled.
"""

import importlib
import json
import pathlib

import numpy as np
import pytest

import transformer_contract.weights
from transformer_contract.batch import Batch
from parity_io.errors import InputError
from transformer_contract.generation import GenerationConfig
from transformer_contract.schema import schema
from transformer_contract.training import TrainingConfig
from parity import ports
from parity.check import cases, port_properties
from parity.ports import NotChecked
from parity_tests.support.processes import printed

NAMES = ("numpy", *ports.known_ports())
CONFIG = cases.test_size("vaswani2017_base").replace(dropout=0.25)
OTHER = CONFIG.replace(d_ff=CONFIG.d_ff + 8)

#: What is compiled takes its time for each layer.
SHALLOW = CONFIG.replace(n_encoder_layers=1, n_decoder_layers=1)

#: float32, the frameworks' usual dtype, rounds so much.
NEAR = 2e-5


@pytest.fixture(params=NAMES)
def citizen(request):
    """What is asked of a port, or a skip where its framework is missing."""
    engine = ports.engine(request.param)
    if isinstance(engine, NotChecked):
        pytest.skip(f"{request.param} is not checked: {engine.reason}")
    return importlib.import_module(
        f"parity_tests.ports.citizens.{request.param}")


def package(citizen):
    """The port itself."""
    return importlib.import_module(citizen.PACKAGE)


def engine(citizen):
    """The port's face to the harness."""
    return ports.engine(citizen.NAME)


def batch(rows=3, source=7, target=6, seed=0):
    """Ids with padding at the end of a row."""
    draw = np.random.default_rng(seed)
    source = draw.integers(3, CONFIG.source_vocab, (rows, source))
    target = draw.integers(3, CONFIG.target_vocab, (rows, target))
    source[0, -2:] = target[-1, -1] = CONFIG.pad_id
    target[:, 0] = 1
    return Batch.of_ids(source, target, CONFIG.pad_id)


def expected(model, citizen, config=CONFIG):
    """The reference's logits in float64, with a model's own weights."""
    reference = ports.engine("numpy")
    weights = {name: array.astype(np.float64)
               for name, array in engine(citizen).export(model).items()}
    return reference.predict(
        reference.build("transformer", config, weights), *batch())


def near(found, wanted):
    """Whether numbers agree as far as float32 does."""
    return np.linalg.norm(found - wanted) <= NEAR * np.linalg.norm(wanted)


def test_masks_follow_from_the_ids(citizen):
    model = package(citizen).create(CONFIG, seed=1, dtype="float32")
    ids = batch()
    found = citizen.logits(model, ids.source, ids.target)
    assert near(found, expected(model, citizen))
    np.testing.assert_array_equal(found, citizen.logits(
        model, ids.source, ids.target, source_mask=ids.source_mask,
        target_mask=ids.target_mask))


def test_a_constructor_draws_the_papers_weights(citizen):
    """Of each kind of array the distribution is ``initial_weights``'."""
    found = engine(citizen).export(citizen.new(CONFIG))
    wanted = transformer_contract.weights.initial_weights(CONFIG, 0)
    assert {name: array.shape for name, array in found.items()} == schema(
        CONFIG)
    for name, array in wanted.items():
        if name.endswith((".bias", ".scale")):
            np.testing.assert_array_equal(found[name], array)
            continue
        largest = np.abs(found[name]).max() / np.abs(array).max()
        assert 0.8 < largest < 1.25, name
        assert 0.8 < found[name].std() / array.std() < 1.25, name
    again = engine(citizen).export(citizen.new(CONFIG, seed=1))
    name = "encoder.layers.0.self_attention.query.kernel"
    assert np.abs(again[name] - found[name]).max() > 0.01


def test_a_first_loss_is_as_it_should_be(citizen):
    """By the framework's own numbers; the means of eight seeds, by 5 %."""
    ids, engine_ = batch(rows=64), engine(citizen)
    labels = np.roll(ids.target, -1, axis=1)

    def loss(weights):
        reference = ports.engine("numpy")
        model = reference.build("transformer", CONFIG, weights)
        return float(reference.loss(
            reference.predict(model, *ids), labels, CONFIG.pad_id,
            CONFIG.label_smoothing, CONFIG.smoothing))
    wanted = np.mean([
        loss(transformer_contract.weights.initial_weights(CONFIG, seed))
        for seed in range(8)])
    found = np.mean([loss({
        name: array.astype(np.float64) for name, array
        in engine_.export(citizen.new(CONFIG, seed)).items()})
        for seed in range(8)])
    assert abs(found / wanted - 1) < 0.05


@pytest.mark.parametrize("dtype", transformer_contract.weights.FLOATS)
def test_a_seed_gives_the_same_numbers_in_all(citizen, dtype):
    """To the bit: they are rounded once, and not by way of float32."""
    found = engine(citizen).export(package(citizen).create(
        CONFIG, seed=3, dtype=dtype))
    for name, array in transformer_contract.weights.initial_weights(
            CONFIG, 3).items():
        assert found[name].dtype.name == dtype
        assert found[name].tobytes() == array.astype(dtype).tobytes(), name


def test_training_drops_and_evaluation_does_not(citizen):
    model, ids = citizen.new(CONFIG), batch()
    first, second = (citizen.logits(
        model, ids.source, ids.target, training=True) for _ in range(2))
    assert np.abs(first - second).max() > 1e-3
    first, second = (citizen.logits(
        model, ids.source, ids.target) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert near(first, expected(model, citizen))


def test_so_many_values_are_dropped(citizen):
    """What is left is divided by 1 less the rate."""
    dropped = citizen.dropped(np.ones((64, 512), np.float32), 0.25)
    assert set(np.unique(dropped)) == {
        np.float32(0), np.float32(1) / np.float32(0.75)}
    assert abs((dropped == 0).mean() - 0.25) < 0.02
    for one, other in ((dropped[1:], dropped[:-1]),
                       (dropped[:, 1:], dropped[:, :-1])):
        assert (one != other).mean() > 0.3  # each has a mask of its own


def test_a_seed_repeats_what_is_dropped(citizen):
    ids = batch()
    first, again, other = (
        citizen.logits(citizen.new(CONFIG, seed), ids.source, ids.target,
                       training=True) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_a_model_in_training_mode_is_checked_without_dropout(citizen):
    """The harness' runs drop only what their key says; the modes stay."""
    model, ids, face = citizen.new(CONFIG), batch(), engine(citizen)
    citizen.logits(model, ids.source, ids.target, training=True)
    modes = port_properties.modes(face, model)
    first = face.predict(model, *ids)
    assert near(first, expected(model, citizen))
    np.testing.assert_array_equal(first, face.predict(model, *ids))
    one, other = (face.forward(model, *ids, key=np.array(
        [3, 4], np.uint32))["output"] for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert np.abs(one - first).max() > 1e-3
    assert port_properties.modes(face, model) == modes


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_models_of_one_stack_make_their_masks(citizen, stack):
    if citizen.NAME == "numpy":
        pytest.skip("not asked: the reference is given both")
    model = package(citizen).create(CONFIG.replace(
        stacks=stack, tied="output", dropout=0.0), seed=1)
    source, target = map(citizen.ids, (batch().source, batch().target))
    found = model(source) if stack == "encoder" else model(None, target)
    assert found.shape == (
        *(source if stack == "encoder" else target).shape,
        CONFIG.target_vocab)


def test_shipped_models_load_by_name(citizen):
    """In evaluation mode; and what the fast form answers is the same."""
    model = package(citizen).load("dates", dtype="float64")
    draw = np.random.default_rng(0)
    source = draw.integers(3, model.config.source_vocab, (2, 9))
    target = draw.integers(3, model.config.target_vocab, (2, 5))
    reference = ports.engine("numpy")
    wanted = reference.predict(reference.build(
        "transformer", model.config, engine(citizen).export(model)),
        *Batch.of_ids(source, target, model.config.pad_id))
    found = citizen.logits(model, source, target)
    assert np.abs(found - wanted).max() < 1e-10


@pytest.mark.parametrize("other", [
    "numpy", *(pytest.param(name, marks=pytest.mark.long)
               for name in ports.known_ports())])
def test_a_saved_model_loads_in_every_port(citizen, other, tmp_path):
    if isinstance(ports.engine(other), NotChecked):
        pytest.skip(f"{other} is not checked: it is not installed")
    model = package(citizen).create(CONFIG, seed=2, dtype="float32")
    package(citizen).save(model, tmp_path / "model.safetensors")
    loaded = importlib.import_module(ports.package(other)).load(
        tmp_path / "model.safetensors")
    assert loaded.config == CONFIG
    kept = ports.engine(other).export(loaded)
    for name, array in engine(citizen).export(model).items():
        np.testing.assert_array_equal(kept[name], array)


def test_the_frameworks_own_files(citizen, tmp_path):
    """Each way of the framework gives a new model the same numbers."""
    model, ids = citizen.new(CONFIG), batch()
    wanted = citizen.logits(model, ids.source, ids.target)
    ways = citizen.native_round_trip(model, CONFIG, tmp_path)
    assert ways
    for way, loaded in ways.items():
        np.testing.assert_array_equal(
            citizen.logits(loaded, ids.source, ids.target), wanted, way)


def test_the_frameworks_files_of_another_model_are_refused(citizen, tmp_path):
    """None is loaded in part, silently."""
    refusals = citizen.native_refusals(citizen.new(CONFIG), OTHER, tmp_path)
    assert refusals
    for what, load in refusals.items():
        try:
            load()
        except Exception:
            continue
        pytest.fail(f"{what} was loaded")


def test_the_frameworks_own_files_are_not_ours(citizen, tmp_path):
    """``load`` reads what ``save`` wrote; it says what else a file is."""
    citizen.native_round_trip(citizen.new(CONFIG), CONFIG, tmp_path)
    for path in tmp_path.iterdir():
        with pytest.raises(InputError, match="save"):
            package(citizen).load(path)


def test_names_of_no_file(citizen, tmp_path):
    for name, word in (("date", "dates"), (tmp_path, "folder"), (None, "path")):
        with pytest.raises(InputError, match=word):
            package(citizen).load(name)


@pytest.mark.parametrize("damage", [
    "another config", "more layers than arrays", "an unknown field", "cut",
    "renamed"])
def test_our_files_of_another_model_are_refused(citizen, damage, tmp_path):
    path = tmp_path / "model.safetensors"
    arrays = transformer_contract.weights.initial_weights(CONFIG, 0)
    if damage == "another config":
        transformer_contract.weights.save(path, arrays, config=OTHER.as_dict())
    elif damage == "more layers than arrays":
        transformer_contract.weights.save(path, arrays, config={
            **CONFIG.as_dict(), "n_encoder_layers": 10**9})
    elif damage == "an unknown field":
        transformer_contract.weights.save(
            path, arrays, config={**CONFIG.as_dict(), "depth": 2})
    elif damage == "renamed":
        name = next(iter(arrays))
        arrays[f"{name}x"] = arrays.pop(name)
        transformer_contract.weights.save(path, arrays, config=CONFIG.as_dict())
    else:
        transformer_contract.weights.save(path, arrays, config=CONFIG.as_dict())
        path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError):
        package(citizen).load(path)


def test_copies(citizen):
    """A copy computes the same, and shares nothing with the original."""
    model, ids = citizen.new(CONFIG), batch()
    wanted = citizen.logits(model, ids.source, ids.target)
    for way, copy in citizen.copies(model).items():
        np.testing.assert_array_equal(
            citizen.logits(copy, ids.source, ids.target), wanted, way)


@pytest.mark.parametrize("config, ways", [(CONFIG, 1), (SHALLOW, None)],
                         ids=["deep", "shallow"])
def test_compiled(citizen, config, ways):
    """In every way; of a model of several layers, in the first."""
    model, ids = citizen.new(config), batch()
    wanted = citizen.logits(model, ids.source, ids.target)
    for way, function in [*citizen.compiled(model).items()][:ways]:
        assert near(function(ids.source, ids.target), wanted), way


def test_the_usual_loop_learns(citizen):
    """To copy short sequences, with the framework's own optimiser."""
    def batches(count):
        draw = np.random.default_rng(0)
        for _ in range(count):
            source = draw.integers(3, 9, (16, 5))
            target = np.concatenate(
                [np.ones((16, 1), int), source, np.full((16, 1), 2)], 1)
            yield source, target[:, :-1], target[:, 1:]
    losses = list(citizen.loop(
        citizen.new(SHALLOW.replace(dropout=0.0)), batches(60)))
    assert len(losses) == 60 and np.mean(losses[-5:]) < 0.6 * losses[0]


def test_generate(citizen):
    """Of a user's own model: as the reference finds them."""
    model = package(citizen).create(CONFIG, seed=1, dtype="float64")
    source = batch().source
    reference = ports.engine("numpy")
    own = reference.build(
        "transformer", CONFIG, engine(citizen).export(model))
    for words in ({"beam": 1, "max_tokens": 6}, {"beam": 3, "max_tokens": 6},
                  {"method": "sample", "seed": 4, "max_tokens": 6}):
        beam = words.get("beam", 1)
        method = words.get("method", "beam" if beam > 1 else "greedy")
        wanted = reference.generate(own, source, GenerationConfig(
            **{**words, "method": method}))["tokens"][:, 0]
        found = citizen.numpy(model.generate(citizen.ids(source), **words))
        np.testing.assert_array_equal(found, wanted)


def test_a_users_subclass_keeps_its_weights(citizen):
    model, path = citizen.new(CONFIG), "feed_forward_residual.norm"
    model.encoder.layers[0].feed_forward_residual.norm = citizen.Gained(
        CONFIG.d_model, CONFIG.norm_eps)
    names = [f"encoder.layers.0.{path}.{name}"
             for name in ("scale", "bias", "gain")]
    assert set(engine(citizen).export(model)) >= set(names)
    trainer = engine(citizen).trainer(model, TrainingConfig())
    before = engine(citizen).export(model)
    ids = batch()
    engine(citizen).train_step(trainer, ids.source[None], ids.target[None])
    after = engine(citizen).export(trainer.model)
    assert all(np.abs(after[name] - before[name]).max() > 0
               for name in names)


@pytest.mark.parametrize("word", ["source", "target"])
def test_ids_outside_the_vocabulary(citizen, word):
    model, ids = citizen.new(CONFIG), batch()
    for wrong in (-1, CONFIG.source_vocab):
        bad = {"source": ids.source.copy(), "target": ids.target.copy()}
        bad[word][0, 0] = wrong
        with pytest.raises(InputError, match=str(wrong)):
            citizen.logits(model, **bad)


def test_a_source_that_is_too_long(citizen):
    model, ids = citizen.new(CONFIG), batch(source=CONFIG.max_length + 1)
    with pytest.raises(InputError, match=str(CONFIG.max_length)):
        citizen.logits(model, ids.source, ids.target)


MASKS = {
    "inverted": lambda mask: ~mask,
    "inverted, one for all": lambda mask: ~mask.any(0, keepdims=True),
    "nothing": np.zeros_like,
    "another shape": lambda mask: mask[..., :-1],
    "numbers": lambda mask: np.where(mask, 0, -np.inf).astype(np.float32)}


@pytest.mark.parametrize("how", MASKS)
@pytest.mark.parametrize("name", ["source_mask", "target_mask"])
def test_masks_that_mean_something_else(citizen, name, how):
    model, ids = citizen.new(CONFIG), batch()
    with pytest.raises(InputError, match="mask"):
        citizen.logits(model, ids.source, ids.target,
                       **{name: MASKS[how](getattr(ids, name))})


@pytest.mark.parametrize("axes", [2, 4])
def test_a_target_mask_of_padding_alone(citizen, axes):
    """It would let each token read later ones."""
    model, ids = citizen.new(CONFIG), batch()
    mask = ids.target != CONFIG.pad_id
    with pytest.raises(InputError, match="target mask"):
        citizen.logits(model, ids.source, ids.target, target_mask=(
            mask if axes == 2 else mask[:, None, None]))


def test_a_source_mask_by_row(citizen):
    """It may be [B S], as the ids are; and one's own, which shows padding."""
    model, ids = citizen.new(CONFIG), batch()
    own = np.roll(ids.source_mask, 1, axis=0)
    assert (own & ~ids.source_mask).any()
    for whole in ids.source_mask, own:
        np.testing.assert_array_equal(*(
            citizen.logits(model, ids.source, ids.target, source_mask=mask)
            for mask in (whole, whole[:, 0, 0])))


@pytest.mark.parametrize("what", ["text", None, [["text"]], 3])
def test_what_are_no_ids(citizen, what):
    model, ids = citizen.new(CONFIG), batch()
    for call in (lambda: model.generate(what),
                 lambda: model(what, citizen.ids(ids.target)),
                 lambda: model(citizen.ids(ids.source), what)):
        with pytest.raises(InputError, match="ids") as raised:
            call()
        assert "\n" not in str(raised.value)


def test_batches_of_different_sizes(citizen):
    model, ids = citizen.new(CONFIG), batch()
    for rows in (1, 2):
        with pytest.raises(InputError, match="3 sequences"):
            citizen.logits(model, ids.source, ids.target[:rows])


@pytest.mark.parametrize("settings, word", [
    ({"beam": 0}, "beam is 0"), ({"beam": "four"}, "four"),
    ({"num_beams": 4}, "num_beams"), ({"max_token": 4}, "max_tokens"),
    ({"method": "greedy", "beam": 4}, "leave out one"),
    ({"temperature": 0.5}, "sample"), ({"max_tokens": 10**6}, "rows")])
def test_searches_that_cannot_be(citizen, settings, word):
    model = citizen.new(CONFIG)
    with pytest.raises(InputError, match=word):
        model.generate(citizen.ids(batch().source), **settings)


def test_a_config_of_another_class(citizen):
    """One stack is another model: it is named, and how it is made."""
    with pytest.raises(InputError, match="create"):
        citizen.new(CONFIG.replace(stacks="decoder", tied="output"))


def test_a_dtype_or_device_that_is_not_there(citizen):
    with pytest.raises(InputError, match="float17"):
        package(citizen).create(CONFIG, dtype="float17")
    with pytest.raises(InputError, match="warp"):
        package(citizen).create(CONFIG, device="warp")


def test_what_is_no_model(citizen, tmp_path):
    face, model = package(citizen), citizen.new(CONFIG)
    for wrong in ("lesson", CONFIG.as_dict()):
        for make in (face.create, citizen.new):
            with pytest.raises(InputError, match="TransformerConfig"):
                make(wrong)
    with pytest.raises(InputError, match="seed"):
        face.create(CONFIG, seed="one")
    for arguments in (("model", tmp_path / "x"), (tmp_path / "x", model),
                      (model, None)):
        with pytest.raises(InputError, match="came as"):
            face.save(*arguments)
    assert not list(tmp_path.iterdir())


IMPORT = """
import json
{framework}
from parity.check import manners
def state():
    return manners.process() | manners.STATES.get({name!r}, dict)()
before = state()
import {package}, {package}.engine
after = state()
print(json.dumps({{name: [repr(before[name]), repr(after[name])]
                  for name in before if before[name] != after[name]}}))
"""


def test_an_import_changes_nothing(citizen):
    """Not the environment, nor streams, filters, threads or defaults."""
    told = printed("-c", IMPORT.format(
        name=citizen.NAME, package=citizen.PACKAGE,
        framework=citizen.FRAMEWORK))
    assert json.loads(told.splitlines()[-1]) == {}


def test_the_face_without_the_harness(citizen, tmp_path):
    """Five lines of a user: nothing of ``parity``, and nobody is warned."""
    script = tmp_path / "mine.py"
    script.write_text(f"""
import sys, warnings
import numpy
{citizen.FRAMEWORK}
from {citizen.PACKAGE} import create, load, save
model = load("dates")
save(model, {str(tmp_path / "again.safetensors")!r})
model = load({str(tmp_path / "again.safetensors")!r})
warnings.simplefilter("error", UserWarning)
ids = model.generate({citizen.ARRAY}(numpy.full((1, 3), 5)), max_tokens=3)
assert (ids[:, 0] + 0).shape == (1,)
assert not [name for name in sys.modules if name.partition(".")[0] in (
    "parity", "parity_tests")]
""")
    printed(script, here=tmp_path)
    assert pathlib.Path(tmp_path / "again.safetensors").exists()
