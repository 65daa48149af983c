"""parity dialects, import, export and fetch: models there and back."""

import hashlib
import json
import os
import subprocess
import sys
import types
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from transformer_contract import weights
from parity_io.checkpoints.folder import read
from transformer_contract.dialects import searches
from transformer_contract.dialects.table import SYSTEMS
from parity_io.errors import InputError
from transformer_contract.weights import probe_weights
from parity.commands.shell import USAGE
from parity.render import dialects as tables
from parity.runs import exchange, packages
from parity_tests.contract.test_dialects import small
from parity_tests.originals import page
from parity_tests.support.commands import said
from parity_tests.support.places import ROOT


#: What a file without a configuration does not say.
WORDS = {"torch_nn": ["nhead=2"], "tutorial": ["n_heads=2"],
         "keras_hub": ["num_heads=2"]}


def theirs(name, folder):
    """A folder of a dialect as its library would write it, in float32."""
    dialect = SYSTEMS[name]
    described = {**small(dialect), **dialect.only}
    config = dialect.config(described)
    wanted = dialect.wanted(config)
    weights = {each: array.astype(np.float32)
               for each, array in probe_weights(config).items()
               if each in wanted}
    arrays = {each: np.ascontiguousarray(array) for each, array
              in dialect.write(weights, config).items()}
    folder.mkdir()
    if dialect.inside:
        np.savez(folder / exchange.NPZ, **dialect.inside(described), **arrays)
        return folder
    (folder / "config.json").write_text(json.dumps(described))
    save_file(arrays, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_model_comes_back_equal_to_the_bit(tmp_path, name):
    folder = theirs(name, tmp_path / "theirs")
    status, words = said("import", folder, tmp_path / "ours", "--as", name)
    assert status == 0 and name in words
    status, words = said("export", tmp_path / "ours", tmp_path / "again",
                         "--as", name)
    assert status == 0
    files = {file.name for file in folder.iterdir()}
    assert files == {file.name for file in (tmp_path / "again").iterdir()}
    for file in files:
        first, second = (tmp_path / each / file
                         for each in ("theirs", "again"))
        if file == "config.json":
            assert json.loads(first.read_text()) == json.loads(
                second.read_text())
        else:
            assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_model_is_recognised(tmp_path, name):
    """By its configuration or, without one, by its names."""
    folder = theirs(name, tmp_path / "theirs")
    if SYSTEMS[name].model_types:
        assert exchange.foreign(folder).dialect.name == name
    else:
        (folder / "config.json").unlink(missing_ok=True)
        words = [] if name not in WORDS else ["--set", *WORDS[name]]
        status, text = said("import", folder, tmp_path / "ours", *words)
        assert status == (0 if SYSTEMS[name].asked else USAGE) or (
            f": {name}," in text)


@pytest.mark.parametrize("name, told, assumed", [
    ("torch_nn", ("norm_first=True", "nhead=2"), [
        "activation=relu", "layer_norm_eps=1e-05"]),
    ("gpt2", ("n_head=2", "n_embd=12", "n_layer=3", "n_inner=20",
              "vocab_size=17", "n_positions=9"), [
        "activation_function=gelu_new", "layer_norm_epsilon=1e-05"])])
def test_what_no_file_says_is_printed(tmp_path, name, told, assumed):
    """Weights alone do not say, for example, whether a norm comes first."""
    file = theirs(name, tmp_path / "theirs") / "model.safetensors"
    words = [word for each in told for word in ("--set", each)]
    status, text = said("import", file, tmp_path / "ours", *words)
    assert status == 0 and all(each in text for each in assumed), text
    assert not any(each.split("=")[0] in text for each in told)
    status, text = said("import", file.parent, tmp_path / "again")
    assert status == 0 and "defaults" not in text


def test_one_becomes_another(tmp_path):
    """torch.nn's stacks in keras_hub's names: the same numbers, turned."""
    folder = theirs("torch_nn", tmp_path / "theirs")
    arrays = load_file(folder / "model.safetensors")
    assert said("import", folder, tmp_path / "ours", "--as",
                "torch_nn")[0] == 0
    status, words = said("export", tmp_path / "ours", tmp_path / "other",
                         "--as", "keras_hub")
    assert status == USAGE and "final_norm" in words
    assert not (tmp_path / "other").exists()
    assert len(arrays) > 20


def test_what_is_missing_is_named_and_nothing_is_written(tmp_path):
    folder = theirs("torch_nn", tmp_path / "theirs")
    arrays = load_file(folder / "model.safetensors")
    bias = "encoder.layers.0.linear1.bias"

    def broken(**changes):
        save_file({name: array for name, array in {
            **arrays, **changes}.items() if array is not None},
            folder / "model.safetensors")
        return said("import", folder, tmp_path / "out", "--as", "torch_nn")

    for changes, words in (
            ({bias: None}, bias), ({"more": np.zeros(2)}, "more"),
            ({bias: np.full_like(arrays[bias], np.nan)}, "NaN"),
            ({bias: np.zeros(3, np.float32)}, "shape"),
            ({bias: np.zeros(20, np.int64)}, "floating point")):
        status, text = broken(**changes)
        assert status == USAGE and words in text, text
        assert text.count("\n") == 1
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("described, words", [
    ({"rope_parameters": 3}, "rope_parameters is '3'"),
    ({"rope_scaling": "yarn"}, "rope_scaling is 'yarn'"),
    ({"rope_parameters": {"rope_theta": [1]}}, "rotary_base is [1]"),
    ({"rope_parameters": {"rope_theta": 10**400}}, "too large"),
    ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
    ({"num_hidden_layers": 10**9}, "layers"),
])
def test_a_rotation_or_a_depth_that_cannot_be_is_named(
        tmp_path, described, words):
    folder = theirs("llama", tmp_path / "theirs")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **described}))
    status, text = said("import", folder, tmp_path / "ours")
    assert status == 2 and words in " ".join(text.split())


def test_a_model_larger_than_memory_is_refused(tmp_path, monkeypatch):
    """When it is read, and when it would be computed in a wider dtype."""
    folder = theirs("llama", tmp_path / "theirs")
    assert said("import", folder, tmp_path / "ours")[0] == 0
    config, arrays, _, _ = exchange.kept(tmp_path / "ours")
    monkeypatch.setattr(os, "sysconf", lambda name: 10)
    status, text = said("import", folder, tmp_path / "more")
    assert status == USAGE and "GiB" in text and text.count("\n") == 1
    assert not (tmp_path / "more").exists()
    from parity.runs import translation
    with pytest.raises(InputError, match="needs 0.0 GiB"):
        translation.Translator("numpy", translation.Model(
            "it", config, arrays, None))


@pytest.mark.parametrize("name, described, words", [
    ("llama", {"attention_bias": True}, "attention_bias is True"),
    ("llama", {"mlp_bias": True}, "mlp_bias is True"),
    ("llama", {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
     "rope_type is 'linear'"),
    ("llama", {"rope_parameters": {"rope_type": "llama3"}}, "'llama3'"),
    ("llama", {"hidden_act": "relu2"}, "hidden_act 'relu2'"),
    ("llama", {"num_key_value_heads": 5}, "n_kv_heads 5"),
    ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights is False"),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx"),
    ("gpt2", {"add_cross_attention": True}, "add_cross_attention is True"),
    ("gpt2", {"tie_word_embeddings": False}, "tie_word_embeddings is False"),
    ("bart", {"decoder_ffn_dim": 21}, "decoder_ffn_dim"),
    ("bart", {"decoder_attention_heads": 3}, "decoder_attention_heads is 3"),
    ("bart", {"activation_function": "tanh"}, "'tanh'"),
    ("bart", {"tie_word_embeddings": False}, "tie_word_embeddings is False"),
    ("hf_marian", {"share_encoder_decoder_embeddings": False},
     "share_encoder_decoder_embeddings is False"),
    ("t5", {"feed_forward_proj": "gated-relu"}, "'gated-relu'"),
    ("bert", {"is_decoder": True}, "is_decoder is True"),
    ("bert", {"position_embedding_type": "relative_key"}, "relative_key"),
    ("whisper", {"scale_embedding": True}, "scale_embedding is True"),
    ("marian", {"right-left": True}, "right-left is True"),
    ("marian", {"transformer-ffn-activation": "gelu"}, "activation 'gelu'"),
    ("marian", {"transformer-pool": True}, "transformer-pool is True"),
    ("marian", {"transformer-disable-position-embeddings": True},
     "transformer-disable-position-embeddings is True"),
    ("marian", {"transformer-postprocess": "da"}, "transformer-postprocess"),
    ("marian", {"transformer-postprocess-emb": "n"}, "postprocess-emb 'n'"),
])
def test_a_setting_without_a_table_is_named(name, described, words):
    """Each changes what transformers computes, and no array's shape."""
    dialect = SYSTEMS[name]
    with pytest.raises(InputError, match=words):
        dialect.config({**small(dialect), **dialect.only, **described})


def test_a_word_that_sets_nothing_is_told(tmp_path):
    folder = theirs("llama", tmp_path / "theirs")
    status, text = said("import", folder, tmp_path / "ours", "--set",
                        "rope_thetta=3")
    assert status == 2 and "rope_theta" in text
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("described, words", [
    ({"model_type": "nobodys"}, "'nobodys'"), ({"activation": "mish"}, "mish"),
    ({"nhead": 5}, "n_heads"), ({"bias": False}, "bias is False"),
])
def test_a_config_that_cannot_be_computed_is_named(
        tmp_path, described, words):
    folder = theirs("torch_nn", tmp_path / "theirs")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **described}))
    status, text = said("import", folder, tmp_path / "out")
    assert status == USAGE and words in text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name, value", [
    ("decoder/pre_norm", 0), ("decoder/activation", 0),
    ("decoder/scale_embeddings", 1), ("decoder/alibi", 1),
    ("decoder/start_from_zero_embedding", 1), ("encoder/num_heads", 1)])
def test_a_setting_inside_a_file_is_read(name, value):
    """CTranslate2 keeps its settings among the weights."""
    dialect = SYSTEMS["whisper_ct2"]
    config = dialect.config(small(dialect))
    arrays = dialect.write({
        each: array for each, array in probe_weights(config).items()
        if each in dialect.wanted(config)}, config)
    arrays["decoder/num_heads"] = np.array(config.n_heads, np.int16)
    assert dialect.config({}, arrays).n_heads == config.n_heads
    for wrong in (value, [value]):
        with pytest.raises(InputError, match=name):
            dialect.config({}, {**arrays, name: np.array(wrong, np.int8)})


def test_a_vocabulary_that_does_not_fit_is_refused(tmp_path):
    folder = theirs("tutorial", tmp_path / "theirs")
    exchange.tokenizer_of(
        ["<unk>", "<pad>", "<sos>", "<eos>", *map(str, range(30))], ".",
        ("<sos>", "<eos>")).save(folder / "tokenizer.json")
    status, text = said("import", folder, tmp_path / "out", "--as",
                        "tutorial")
    assert status == USAGE and "a token 33" in text
    (folder / "tokenizer.json").write_text("{")
    status, text = said("import", folder, tmp_path / "out", "--as",
                        "tutorial")
    assert status == USAGE and "tokenizer.json" in text
    assert not (tmp_path / "out").exists()


def test_words_and_folders_that_are_none(tmp_path):
    folder = theirs("torch_nn", tmp_path / "theirs")
    for command, words in (
            (["import", folder, folder], "exists"),
            (["import", folder, tmp_path / "o", "--as", "marian2"],
             "unknown"),
            (["import", folder, tmp_path / "o", "--set", "nhead"],
             "KEY=VALUE"),
            (["export", folder, tmp_path / "o", "--as", "torch_nn"],
             "weights.safetensors"),
            (["export", tmp_path / "x", tmp_path / "o", "--as", "torch_nn"],
             "weights.safetensors"),
            (["dialects", "torch_nn"], "two"),
            (["dialects", "torch_nn", "bert", "t5"], "two"),
            (["dialects", "--markdown", tmp_path / "x" / "y.md"],
             "cannot be written"),
            (["dialects", "torch_nn", "nobody"], "unknown"),
            (["import", "nobody"], "or one of annalog")):
        status, text = said(*command)
        assert status == USAGE and words in text, text


def test_dialects_are_listed_and_compared(tmp_path):
    status, text = said("dialects", "--markdown", tmp_path / "page.md")
    assert status == 0
    assert all(name in text for name in SYSTEMS)
    page = (tmp_path / "page.md").read_text()
    assert all(f"## {name}\n" in page for name in SYSTEMS)
    status, text = said("dialects", "torch_nn", "keras_hub")
    assert status == 0 and "final_norm" in text and "part in" in text


def test_the_page_is_true(tmp_path):
    """But for the tables of what the originals' libraries answered."""
    import re
    from parity_tests.support.places import ROOT
    assert said("dialects", "--markdown", tmp_path / "page.md")[0] == 0
    page = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")
    page = re.sub(r"\n## (Proved|Searches)\n.*?(?=\n## )", "", page, flags=re.S)
    assert page == (tmp_path / "page.md").read_text(encoding="utf-8")


# Packages

@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A package like ANNalog's that pip "fetches", with small weights."""
    folder = theirs("tutorial", tmp_path / "theirs")
    import pickle
    torch = pytest.importorskip("torch")
    torch.save({name: torch.from_numpy(array) for name, array in load_file(
        folder / "model.safetensors").items()}, folder / "model.pt")
    words = ["<unk>", "<pad>", "<sos>", "<eos>", *"CON()=1c2", "Cl", "Br",
             "[nH]", "%10"]
    path = tmp_path / "annalog-1.0.6-py3-none-any.whl"
    members = packages.PACKAGES["annalog"].members
    with zipfile.ZipFile(path, "w") as archive:
        for member, name in members.items():
            archive.writestr(member, (folder / name).read_bytes()
                             if name == "model.pt" else
                             pickle.dumps({"itos": words}))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()

    def pip(command, **more):
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert "--no-deps" in command and command[-1] == "annalog==1.0.6"
        target = command[command.index("--dest") + 1]
        os.link(path, os.path.join(target, path.name))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", pip)
    import dataclasses
    monkeypatch.setitem(packages.PACKAGES, "annalog", dataclasses.replace(
        packages.PACKAGES["annalog"], digest=digest, words={"n_heads": 2}))
    return path


def test_a_package_is_fetched_and_answers(wheel, tmp_path):
    status, text = said("import", "annalog", tmp_path / "model")
    assert status == 0, text
    assert {path.name for path in (tmp_path / "model").iterdir()} == {
        "weights.safetensors", "tokenizer.json"}
    status, text = said("translate", "--weights",
                        tmp_path / "model" / "weights.safetensors",
                        "--port", "numpy", "--max-tokens", "5", "CC(=O)Cl")
    assert status == 0 and "cut" in text or text.strip()


def test_a_molecule_is_read_and_written(wheel, tmp_path):
    from transformer_contract.tokenizer import Tokenizer
    assert said("import", "annalog", tmp_path / "model")[0] == 0
    tokenizer = Tokenizer.load(tmp_path / "model" / "tokenizer.json", True)
    ids = tokenizer.encode("CCl[nH]%10(Br)")
    assert tokenizer.tokens(ids) == [
        "<sos>", "C", "Cl", "[nH]", "%10", "(", "Br", ")", "<eos>"]
    assert tokenizer.decode(ids) == "CCl[nH]%10(Br)"


def test_a_package_that_was_changed_is_not_read(wheel, tmp_path):
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    status, text = said("import", "annalog", tmp_path / "model")
    assert status == USAGE and "SHA-256" in text
    assert not (tmp_path / "model").exists()


def test_a_package_that_cannot_be_had_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(
        subprocess, "run", lambda command, **more:
        subprocess.CompletedProcess(command, 1, "", "no connection"))
    status, text = said("import", "annalog", tmp_path / "model")
    assert status == USAGE and "no connection" in text


# Speech

@pytest.fixture
def listening(tmp_path):
    """A folder of a small Whisper, and a sound."""
    from parity_tests.contract.test_sound import tone, written
    folder = theirs("whisper", tmp_path / "theirs")
    arrays = load_file(folder / "model.safetensors")
    draw = np.random.default_rng(0)
    for name, shape in (("conv1.weight", (12, 4, 3)), ("conv1.bias", (12,)),
                        ("conv2.weight", (12, 12, 3)), ("conv2.bias", (12,))):
        arrays[f"model.encoder.{name}"] = draw.normal(
            size=shape).astype(np.float32)
    config = json.loads((folder / "config.json").read_text())
    arrays["model.encoder.embed_positions.weight"] = np.zeros(
        (1500, 12), np.float32)
    save_file(arrays, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({
        **config, "max_source_positions": 1500, "suppress_tokens": [5],
        "begin_suppress_tokens": [6]}))
    exchange.tokenizer_of(
        ["<unk>", "<pad>", "<s>", "</s>", "<|startoftranscript|>", "a", "b",
         "<|notimestamps|>", "<|endoftext|>", *"cdefghij"[:8]], ".",
        ("<s>", "</s>")).save(folder / "tokenizer.json")
    return folder, written(tmp_path / "a.wav", tone())


def test_a_sound_is_answered_alike(listening, tmp_path):
    folder, file = listening
    status, text = said("import", folder, tmp_path / "ours")
    assert status == 0 and "4 kept apart" in text, text
    status, text = said("run", tmp_path / "ours", file, "--port",
                        "numpy,torch", "--max-tokens", "6")
    assert status == 0 and "match: tokens identical in numpy, torch" in text
    status, _ = said("export", tmp_path / "ours", tmp_path / "again", "--as",
                     "whisper")
    assert status == 0
    assert load_file(tmp_path / "again" / "model.safetensors").keys() == (
        load_file(folder / "model.safetensors").keys())


def test_a_model_of_speech_without_its_tokenizer(listening, tmp_path):
    folder, file = listening
    (folder / "tokenizer.json").unlink()
    assert said("import", folder, tmp_path / "ours")[0] == 0
    status, text = said("run", tmp_path / "ours", file)
    assert status == USAGE and "no tokenizer.json" in text
    status, text = said("run", tmp_path / "ours", tmp_path / "no.wav")
    assert status == USAGE


@pytest.mark.long
def test_the_molecules_of_annalog(tmp_path):
    """The published weights: aspirin is answered by aspirin, in all four."""
    status, text = said("import", "annalog", tmp_path / "model")
    if status:
        pytest.skip(f"not checked: {text}")
    assert len(read(tmp_path / "model" / "weights.safetensors").arrays) == 132
    for port in ("numpy", "torch", "keras", "jax"):
        status, text = said(
            "translate", "--weights",
            tmp_path / "model" / "weights.safetensors", "--port", port,
            "CC(=O)Oc1ccccc1C(=O)O")
        assert status == 0 and text.strip() == "CC(=O)Oc1ccccc1C(=O)O"


# Searches

#: What the files of a small model say of its search.
GENERATION = {
    "decoder_start_token_id": 2, "eos_token_id": 2, "num_beams": 3,
    "early_stopping": True, "length_penalty": 2.0, "min_length": 4,
    "max_length": 9, "forced_bos_token_id": 0, "forced_eos_token_id": 2,
    "bad_words_ids": [[5]], "no_repeat_ngram_size": 3,
    "repetition_penalty": 1.5}


@pytest.fixture
def answering(tmp_path):
    """A folder of ours, of a small BART with a tokenizer and a search."""
    folder = theirs("bart", tmp_path / "theirs")
    described = json.loads((folder / "config.json").read_text())
    words = [chr(0x61 + i) for i in range(described["vocab_size"] - 4)]
    words = ["<s>", "<pad>", "</s>", "<unk>", *words]
    exchange.tokenizer_of(words, r"\w", ("<s>", "</s>")).save(
        folder / "tokenizer.json")
    (folder / "config.json").write_text(json.dumps(
        {**described, "pad_token_id": 1}))
    (folder / "generation_config.json").write_text(json.dumps(GENERATION))
    status, text = said("import", folder, tmp_path / "ours")
    assert status == 0, text
    return tmp_path / "ours"


def test_a_model_searches_as_its_files_say(answering):
    """And says what they ask for and is not done."""
    from parity.runs import translation
    model = translation.Model.load(answering / "weights.safetensors")
    settings, undone = exchange.searching(answering, model, ["abc"])
    assert undone == ["repetition_penalty 1.5"]
    assert settings.no_repeat_ngram == 3
    assert (settings.method, settings.beam, settings.length_rule,
            settings.finishing, settings.alpha) == (
                "beam", 3, "hf_true", "top", 2.0)
    assert (settings.bos_id, settings.eos_id, settings.forced_bos_id,
            settings.forced_eos_id, settings.suppress_tokens,
            settings.min_tokens, settings.max_tokens) == (
                2, 2, 0, 2, (5,), 4, 8)
    translator = translation.Translator("numpy", model)
    answer = translator.answer(
        [translation.read(model, "abc", "it")], settings)[0]
    status, text = said("run", answering, "abc")
    assert status == 0 and answer.best in text
    assert "repetition_penalty 1.5" in text
    status, text = said("run", answering, "abc", "--beam", "99")
    assert status == USAGE and "99 wide" in text


@pytest.mark.parametrize("changes, words", [
    ({"early_stopping": "often"}, "early_stopping"),
    ({"num_beams": "four"}, "num_beams"),
    ({"suppress_tokens": 3}, "suppress_tokens"),
    ({"bad_words_ids": [3]}, "bad_words_ids"),
    ({"max_length": []}, "max_length"),
    ({"forced_eos_token_id": []}, "forced_eos_id"),
    ({"length_penalty": -1.0}, "length_penalty"),
    ({"length_penalty": "long"}, "length_penalty"),
    ({"eos_token_id": "</s>"}, "eos_id"),
    ({"eos_token_id": [2, "x"]}, "more_eos_ids"),
    ({"no_repeat_ngram_size": "two"}, "no_repeat_ngram_size")])
def test_a_search_that_cannot_be_read_is_named(answering, changes, words):
    (answering / "generation_config.json").write_text(
        json.dumps({**GENERATION, **changes}))
    status, text = said("run", answering, "abc")
    assert status == USAGE and words in text
    assert text.count("\n") == 1


@pytest.mark.parametrize("asked, word", [
    ({"num_return_sequences": 2}, "num_return_sequences 2"),
    ({"forced_eos_token_id": [6, 7]}, "forced_eos_token_id 7")])
def test_what_is_not_done_has_the_name_in_their_file(asked, word):
    asked = {"eos_token_id": 2, **asked}
    assert searches.fields(SYSTEMS["bart"], {}, asked)[1] == [word]


def test_padding_in_a_text_is_told(answering):
    """transformers read it; here it would be hidden."""
    status, text = said("run", answering, "ab<pad>c")
    assert status == USAGE and "the token 1, which the model takes" in text
    assert said("run", answering, "abc")[0] == 0


def test_a_decoder_counts_its_prompt():
    """max_length counts it in theirs, min_length too; new tokens do not."""
    fields, _ = searches.fields(SYSTEMS["gpt2"], {
        "eos_token_id": [7, 8]}, {
            "eos_token_id": [7, 8], "max_length": 20, "min_length": 9}, 5)
    assert fields["max_tokens"] == 15 and fields["min_tokens"] == 5
    assert fields["eos_id"] == 7 and fields["more_eos_ids"] == (8,)
    fields, undone = searches.fields(SYSTEMS["gpt2"], {}, {
        "eos_token_id": 7, "max_new_tokens": 3, "min_new_tokens": 2,
        "no_repeat_ngram_size": 2,
        "do_sample": True, "top_p": 0.5, "bad_words_ids": [[], [1, 2], [7]]}, 5)
    assert fields["max_tokens"] == 3 and fields["min_tokens"] == 3
    assert (fields["method"], fields["top_k"], fields["top_p"],
            fields["top_p_of_top_k"]) == ("sample", 50, 0.5, True)
    assert undone == ["no_repeat_ngram_size 2", "bad_words_ids [1, 2]"]
    _, undone = searches.fields(
        SYSTEMS["gpt2"], {"eos_token_id": 7}, {"num_beams": 1})
    assert undone == ["answers without an end"]
    fields, undone = searches.fields(SYSTEMS["gpt2"], {}, {
        "eos_token_id": 7, "temperature": 0.0, "top_p": 0.5,
        "cache_implementation": "quantized", "prefill_chunk_size": 2})
    assert not {"temperature", "top_p"} & fields.keys()
    assert undone == ["prefill_chunk_size 2",
                      "cache_implementation 'quantized'"]


def test_what_a_page_says_of_other_dialects_stays(tmp_path):
    """A dialect may be proved alone, in some ports, or none at all."""
    path = tmp_path / "dialects.md"
    text = (ROOT / "docs" / "dialects.md").read_text("utf-8")
    path.write_text(text, "utf-8")
    tables.write(path)
    assert path.read_text("utf-8") == text
    page.fill(path, [], [])
    assert path.read_text("utf-8") == text
    page.fill(path, [types.SimpleNamespace(
        dialect="bert", kind="steps", port="torch", error=3e-16, seed=0)], [])
    before, after = (set(each.splitlines()) for each in (
        text, path.read_text("utf-8")))
    assert all(line.startswith("| bert | ") for line in before - after)
    assert [*map(str.split, after - before)] == [
        "| bert | 1 | steps | | 3e-16 | | |".split()]


def test_a_bit_that_flipped_in_what_was_imported_is_seen(tmp_path):
    folder = theirs("torch_nn", tmp_path / "theirs")
    ours = tmp_path / "ours"
    assert said("import", folder, ours, "--as", "torch_nn")[0] == 0
    path = ours / exchange.WEIGHTS
    content = bytearray(path.read_bytes())
    content[-5] ^= 16
    path.write_bytes(content)
    for words in (["export", ours, tmp_path / "again", "--as", "torch_nn"],
                  ["export", ours, tmp_path / "again", "--to", "onnx"],
                  ["run", ours, "a"]):
        status, text = said(*words)
        assert status == USAGE and "its checksum is not" in text
    assert not (tmp_path / "again").exists()


def test_weights_that_are_not_of_their_configuration(tmp_path):
    folder = theirs("torch_nn", tmp_path / "theirs")
    ours = tmp_path / "ours"
    assert said("import", folder, ours, "--as", "torch_nn")[0] == 0
    arrays, metadata = weights.load(ours / exchange.WEIGHTS)
    sound = weights.described(metadata)
    for name, value, words in (
            ("config", {**sound["config"], "gated": True}, "lack"),
            ("dialect", "nobodys", "does not say which"),
            ("dialect", [1], "does not say which"),
            ("original", 3, "does not say which")):
        weights.save(ours / exchange.WEIGHTS, arrays, **{
            key: value if key == name else kept for key, kept in sound.items()
            if key != weights.CHECKSUM})
        status, text = said("export", ours, tmp_path / "again", "--as",
                            "torch_nn")
        assert status == USAGE and words in text, text
