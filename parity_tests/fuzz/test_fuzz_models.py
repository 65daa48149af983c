"""Damaged and crafted files of others: models, mappings, sounds, artefacts."""

import json
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_contract import sound, weights
from parity_io.checkpoints.folder import read
from transformer_contract.dialects import searches
from transformer_contract.dialects.table import SYSTEMS
from transformer_contract.generation import GenerationConfig
from parity.conversion import mapping_file
from parity.matrix import artefact
from parity.runs import exchange
from parity_tests.commands.test_dialects import theirs
from parity_tests.contract.test_checkpoints import FORMATS
from parity_tests.contract.test_sound import tone, written
from parity_tests.fuzz.test_fuzz_files import (
    changed, mangled, read_or_refused)
from parity_tests.support.fuzzing import answered, tries
from parity_tests.support.places import ROOT

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(params=SYSTEMS, scope="module")
def system(request, here):
    """A dialect's name, and a folder as its library would write it."""
    return request.param, theirs(request.param, here / request.param)


@pytest.fixture(scope="module")
def configured(system):
    """The same, of a dialect whose settings are a file of their own."""
    if not (system[1] / "config.json").exists():
        pytest.skip("its settings are among its weights")
    return system


def text_of(data):
    """JSON of data that may hold what no UTF-8 has."""
    return json.dumps(data).encode("utf-8", "surrogatepass")


@tries(12)
@given(st.data())
def test_configs_of_others(configured, data):
    name, folder = configured
    path, out = folder / "config.json", folder.with_name(f"{name}-ours")
    whole = path.read_bytes()
    made = changed(data.draw, json.loads(whole))
    chosen = [] if data.draw(st.booleans()) else ["--as", name]
    try:
        path.write_bytes(text_of(made))
        found = answered(["import", folder, out, *chosen])
    finally:
        path.write_bytes(whole)
    assert out.exists() == (found.exit_code == 0)
    shutil.rmtree(out, ignore_errors=True)


@tries(12)
@given(st.data())
def test_what_was_imported_and_then_damaged(system, data):
    """What stands beside the weights is put back as it was, or refused."""
    name, folder = system
    ours, out = (folder.with_name(f"{name}-{word}") for word in (
        "kept", "again"))
    if not ours.exists():
        assert answered(["import", folder, ours, "--as", name]).exit_code == 0
    path = ours / exchange.WEIGHTS
    whole = path.read_bytes()
    try:
        arrays, metadata = weights.load(path)
        made = changed(data.draw, weights.described(metadata))
        if isinstance(made, dict) and all(
                isinstance(key, str) for key in made):
            made.pop(weights.CHECKSUM, None)
            weights.save(path, arrays, **made)
        answered(["export", ours, out, "--as", name])
    finally:
        path.write_bytes(whole)
        shutil.rmtree(out, ignore_errors=True)


#: What stands for an array of a model and has other axes, or none at all.
SHAPES = {"gone": None, "number": (), "vector": (1,), "empty": (0,), "matrix":
          (3, 5), "three axes": (2, 3, 4), "wide": (0, 10**9)}


@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_of_others(system, shape):
    """Each array in turn has another shape: refused, with a sentence."""
    name, folder = system
    dialect, checkpoint = SYSTEMS[name], read(folder)
    described = dict.fromkeys(dialect.asked, 2) | dialect.told(checkpoint)
    for array in checkpoint.arrays:
        arrays = dict(checkpoint.arrays)
        if SHAPES[shape] is None:
            del arrays[array]
        else:
            arrays[array] = np.zeros(SHAPES[shape], np.float32)

        def taken():
            config = dialect.config(described, arrays)
            weights.check_layers(config, len(arrays), str(folder))
            weights.check(dialect.read(arrays, config), dialect.wanted(config))
            assert dialect.holds_nothing(array) or (
                array == "final_logits_bias" and shape == "gone")
        read_or_refused(taken)


@tries(30)
@given(st.data())
@pytest.mark.parametrize("kind", FORMATS)
def test_files_of_others(here, kind, data):
    path = here / f"file-{kind.replace(' ', '-')}.npz"
    if not path.exists():
        FORMATS[kind](path)
    damaged = here / "damaged"
    damaged.write_bytes(mangled(data.draw, path.read_bytes()))
    read_or_refused(read, damaged)


@tries(30)
@given(st.data())
def test_shards(here, data):
    folder = here / "shards"
    folder.mkdir(exist_ok=True)
    FORMATS["safetensors"](folder / "one.safetensors")
    names = list(read(folder / "one.safetensors").arrays)
    made = changed(data.draw, {
        "metadata": {"total_size": 1},
        "weight_map": dict.fromkeys(names, "one.safetensors")})
    (folder / "model.safetensors.index.json").write_bytes(text_of(made))
    read_or_refused(read, folder)


#: What Hugging Face's generation_config.json may say.
GENERATION = {
    "max_length": 20, "max_new_tokens": None, "num_beams": 2, "eos_token_id":
    [1, 2], "bos_token_id": 0, "decoder_start_token_id": 2, "pad_token_id": 3,
    "forced_bos_token_id": 1, "forced_eos_token_id": 2, "length_penalty": 1.2,
    "no_repeat_ngram_size": 3, "min_length": 2, "min_new_tokens": 1,
    "bad_words_ids": [[5]], "early_stopping": True, "suppress_tokens": [4],
    "begin_suppress_tokens": [6], "repetition_penalty": 1.0, "do_sample":
    False, "temperature": 0.7, "top_k": 50, "forced_decoder_ids": [[1, 4]]}


@tries(20)
@given(st.data())
def test_searches_of_others(configured, data):
    name, folder = configured
    described = json.loads((folder / "config.json").read_text())
    made = changed(data.draw, GENERATION)
    if not isinstance(made, dict):
        return

    def fields():
        found, _ = searches.fields(SYSTEMS[name], described, made, 1)
        GenerationConfig(**{"bos_id": 0, "eos_id": 1, "max_tokens": 5,
                            **found})
    read_or_refused(fields)


MAPPING = """\
[a]
"one.weight" = [4, 6]
"one.bias" = [4]
"q" = [2, 3]
[b]
"kernel" = [6, 4]
"bias" = [4]
"both" = [4, 3]
[tied.a]
"two.weight" = "one.weight"
[tied.b]
[left_out]
a = []
b = []
[[parameter]]
b = "kernel"
a = "one.weight"
take = "transpose 1 0"
by = "run"
[[parameter]]
b = "bias"
a = "one.bias"
by = "user"
[[parameter]]
b = "both"
a = ["q", "q"]
take = ["reshape 2 3", "slice 0 2 along 0"]
join = "concatenate 0"
by = "run"
"""


@tries(100)
@given(st.data())
def test_mappings_of_weights(here, data):
    path = here / "mapping.toml"
    path.write_bytes(mangled(data.draw, MAPPING.encode()))
    read_or_refused(mapping_file.read, path)


@tries(60)
@given(st.data())
def test_sounds(here, data):
    path = written(here / "a.wav", tone())
    whole = path.read_bytes()
    content = mangled(data.draw, whole[:60]) + whole[60:]
    if data.draw(st.booleans()):
        content = mangled(data.draw, whole)
    path.write_bytes(content)
    read_or_refused(sound.read, path)


@pytest.fixture(scope="module")
def exported(here):
    """An artefact, its model made of a few bytes."""
    folder = here / "artefact"
    folder.mkdir()
    vectors = {f"0.{word}": np.ones((2, 3), np.int64)
               for word in artefact.INPUTS}
    weights.save(folder / artefact.VECTORS, {
        **vectors, "0.output": np.ones((2, 3, 4))})
    (folder / artefact.MODEL).write_bytes(b"\x08\x07\x12\x04one ")
    (folder / artefact.FACTS).write_text(json.dumps({
        "schema": 1, "format": "onnx", "name": "lesson", "port": "torch",
        "versions": {"torch": "2"}, "dtype": "float64", "limits": [1e-12],
        "sha256": artefact.hashes(
            (folder / artefact.MODEL).read_bytes(),
            (folder / artefact.VECTORS).read_bytes())}))
    return folder


@tries(60)
@given(st.data())
def test_artefacts(exported, data):
    crafted = exported.with_name("crafted")
    shutil.rmtree(crafted, ignore_errors=True)
    shutil.copytree(exported, crafted)
    name = data.draw(st.sampled_from(
        [artefact.FACTS, artefact.MODEL, artefact.VECTORS]))
    path = crafted / name
    if name == artefact.FACTS and data.draw(st.booleans()):
        path.write_bytes(text_of(changed(
            data.draw, json.loads(path.read_text()))))
    else:
        path.write_bytes(mangled(data.draw, path.read_bytes()))
    if data.draw(st.booleans()):  # with right hashes
        facts = json.loads((exported / artefact.FACTS).read_text())
        facts["sha256"] = artefact.hashes(
            (crafted / artefact.MODEL).read_bytes(),
            (crafted / artefact.VECTORS).read_bytes())
        if name != artefact.FACTS:
            (crafted / artefact.FACTS).write_text(json.dumps(facts))
    answered(["check", "--artefact", crafted])


@tries(20)
@given(st.data())
def test_answers_to_exercises(here, data):
    """A file of a pupil's; its process may do what it likes, and ends."""
    start = (ROOT / "lessons" / "exercises" / "1_1.py").read_bytes()
    path = here / "answer.py"
    path.write_bytes(mangled(data.draw, start))
    answered(["lesson", "1.1", path])


def test_undamaged_they_are_read(here):
    """So that what is refused above is refused for its damage."""
    path = here / "whole.toml"
    path.write_text(MAPPING)
    assert len(mapping_file.read(path).entries) == 3
    assert len(sound.read(written(here / "whole.wav", tone())))
