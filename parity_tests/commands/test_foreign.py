"""Folders that transformers wrote: imported, and answering as they do there."""

import json
import shutil

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from transformer_contract.dialects.table import SYSTEMS
from parity_io.errors import InputError
from parity import ports
from parity.commands.shell import USAGE
from parity_tests.originals.proof import forward
from parity_tests.originals.random_models import Asked
from parity.runs import exchange, speech
from parity.runs.pieces import FILES, Pieces
from parity_tests.support.commands import invoke

STACK = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 12,
         "encoder_attention_heads": 2, "decoder_attention_heads": 2,
         "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "vocab_size": 40,
         "max_position_embeddings": 30}
MARIAN = {**STACK, "pad_token_id": 39, "eos_token_id": 0,
          "decoder_start_token_id": 39, "scale_embedding": True,
          "decoder_vocab_size": 40, "activation_function": "swish"}
GPT2 = {"vocab_size": 40, "n_embd": 12, "n_layer": 2, "n_head": 3,
        "n_positions": 30, "bos_token_id": 1, "eos_token_id": 1}
T5 = {"vocab_size": 20, "d_model": 12, "d_kv": 5, "d_ff": 20, "num_layers": 1,
      "num_heads": 2, "decoder_start_token_id": 0}


def saved(folder, name, config, words, **generation):
    """A folder of a model with random weights, and the model."""
    torch, transformers = (pytest.importorskip(each) for each in (
        "torch", "transformers"))
    torch.manual_seed(3)
    model = getattr(transformers, name)(
        getattr(transformers, config)(**words)).eval()
    with torch.no_grad():
        for parameter in filter(lambda p: p.requires_grad,
                                model.parameters()):
            parameter.copy_(torch.randn(parameter.shape) / 2)
    for key, value in generation.items():
        setattr(model.generation_config, key, value)
    model.save_pretrained(folder)
    return model


def rewritten(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


# What a configuration and a file may say in another way

@pytest.mark.parametrize("name, other, key, value, field", [
    ("gpt2", "num_attention_heads", "n_head", 6, "n_heads"),
    ("bart", "hidden_size", "d_model", 64, "d_model"),
    ("t5", "head_dim", "d_kv", 5, "d_head")])
def test_another_name_of_a_key_is_read(name, other, key, value, field):
    """transformers reads both; heads are told by no array's shape."""
    dialect = SYSTEMS[name]
    assert getattr(dialect.config({other: value}), field) == value
    assert dialect.config({other: value, key: value}) == dialect.config(
        {key: value})
    with pytest.raises(InputError, match=f"{other} is {value}, but {key}"):
        dialect.config({other: value, key: 2 * value})


def test_tables_of_positions_in_a_file_are_read(tmp_path):
    """As transformers reads them: not only of sines. And no other is lost."""
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file, save_file
    model = saved(tmp_path / "theirs", "MarianMTModel", "MarianConfig", MARIAN)
    names = [f"model.{stack}.embed_positions.weight"
             for stack in ("encoder", "decoder")]
    sines = model.state_dict()[names[0]]
    arrays = load_file(tmp_path / "theirs" / "model.safetensors")
    for table, positions in ((sines, "halves"), (sines.half(), "learned")):
        save_file(arrays | {name: table.clone() for name in names},
                  tmp_path / "theirs" / "model.safetensors")
        ours = exchange.foreign(tmp_path / "theirs")
        assert ours.config.positions == positions
    again = type(model).from_pretrained(
        tmp_path / "theirs", attn_implementation="eager").double()
    ids = np.arange(2, 9)[None]
    with torch.no_grad():
        expected = again(
            input_ids=torch.tensor(ids), decoder_input_ids=torch.tensor(ids)
        ).logits.numpy()
    found = forward(ports.engine("numpy"), ours.config, {
        name: array.astype(np.float64)
        for name, array in ours.arrays.items()}, Asked(ids, ids, ids, 39))
    np.testing.assert_allclose(found["output"], expected, atol=1e-12)


@pytest.mark.parametrize("name, config, words", [
    ("BartModel", "BartConfig", STACK),
    ("MarianModel", "MarianConfig", MARIAN)])
def test_a_model_stored_without_its_projection(tmp_path, name, config, words):
    """Its arrays have no prefix, and a bias that is not there is 0."""
    saved(tmp_path / "theirs", name, config, words)
    ours = exchange.foreign(tmp_path / "theirs")
    assert ours.bare and ours.config.output_bias is False


# Tokenizers as they are, without tokens that ours have

def bytewise(*special):
    """A tokenizer of bytes; its special tokens have the first ids."""
    inner = tokenizers.Tokenizer(models.BPE(vocab={
        token: i for i, token in enumerate([*special, *"abcdefghijklmnop"])},
        merges=[]))
    inner.add_special_tokens(list(special))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return inner


def answered(folder, model, inner, text, tmp_path):
    """What ours and theirs answer to a text, their tokenizer being inner."""
    torch = pytest.importorskip("torch")
    inner.save(str(folder / "tokenizer.json"))
    done = invoke("import", folder, tmp_path / "ours")
    assert done.exit_code == 0, done.output
    done = invoke("run", tmp_path / "ours", text)
    assert done.exit_code == 0, done.output
    ids = torch.tensor([inner.encode(text).ids])
    found = model.double().generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False)[0]
    if not model.config.is_encoder_decoder:
        found = found[ids.shape[1]:]
    return done.stdout.splitlines()[0], inner.decode(found.tolist())


@pytest.mark.parametrize("text", ["abca", "a<|endoftext|>ba", "!cab"])
@pytest.mark.parametrize("padding", [None, 1])
def test_a_prompt_is_read_whole(tmp_path, text, padding):
    """Nothing in it is padding: not id 0, nor an end that is padding too."""
    model = saved(tmp_path / "theirs", "GPT2LMHeadModel", "GPT2Config", {
        **GPT2, "pad_token_id": padding})
    ours, theirs = answered(
        tmp_path / "theirs", model, bytewise("!", "<|endoftext|>"), text,
        tmp_path)
    assert ours == theirs != ""


def test_a_special_token_in_a_text_is_meant(tmp_path):
    """As T5's marks of what is left out; T5 has no begin of its own."""
    model = saved(tmp_path / "theirs", "T5ForConditionalGeneration",
                  "T5Config", T5, num_beams=2, min_length=7,
                  suppress_tokens=[0, 2, 3])
    inner = bytewise("<pad>", "</s>", "<unk>", "<extra_id_0>")
    ours, theirs = answered(
        tmp_path / "theirs", model, inner, "ab<extra_id_0>c", tmp_path)
    assert ours == theirs != ""
    done = invoke("translate", "--weights",
                  tmp_path / "ours" / "weights.safetensors", "ab")
    assert done.exit_code == USAGE and "parity run" in done.output
    rewritten(tmp_path / "ours" / "generation_config.json",
              lambda content: content.pop("decoder_start_token_id"))
    folder = shutil.copytree(tmp_path / "ours", tmp_path / "more")
    assert invoke("run", folder, "ab").exit_code == 0


def test_an_end_that_nothing_tells_is_asked_for(tmp_path):
    saved(tmp_path / "theirs", "GPT2LMHeadModel", "GPT2Config", GPT2)
    for name in ("config.json", "generation_config.json"):
        rewritten(tmp_path / "theirs" / name, lambda content: [
            content.pop(key, None) for key in ("eos_token_id",)])
    bytewise("!").save(str(tmp_path / "theirs" / "tokenizer.json"))
    assert invoke("import", tmp_path / "theirs", tmp_path / "ours"
                  ).exit_code == 0
    done = invoke("run", tmp_path / "ours", "ab")
    assert done.exit_code == USAGE and "'eos_token_id'" in done.output


# A Marian's: two models of sentencepiece, and a vocabulary of both

@pytest.fixture
def marian(tmp_path):
    """Such a folder, and its model."""
    sentencepiece = pytest.importorskip("sentencepiece")
    model = saved(tmp_path / "theirs", "MarianMTModel", "MarianConfig", MARIAN)
    folder = tmp_path / "theirs"
    (folder / "text").write_text("\n".join(
        f"{a}{b} {b}a {a}{a}" for a in "abcde" for b in "abcde"))
    for name in FILES[:2]:
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / "text"), model_prefix=str(folder / "piece"),
            vocab_size=18, minloglevel=2)
        (folder / "piece.model").rename(folder / name)
    reader = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / FILES[0]))
    pieces = ["</s>", "<unk>", ">>fr<<", *(
        reader.id_to_piece(i) for i in range(3, 18))]
    pieces += [f"x{i}" for i in range(39 - len(pieces))] + ["<pad>"]
    (folder / FILES[2]).write_text(json.dumps(
        {piece: i for i, piece in enumerate(pieces)}))
    return folder, model


def test_pieces_are_those_of_transformers(marian, tmp_path):
    folder, model = marian
    transformers = pytest.importorskip("transformers")
    theirs, ours = transformers.MarianTokenizer(
        *(str(folder / name) for name in FILES)), Pieces(folder)
    for text in ("ab ca", ">>fr<< abba zzz", "", "aa >>fr<< b", "  d  e "):
        assert ours.encode(text) == theirs(text)["input_ids"]
        ids = [3, 7, 1, 9, 39, 20, 4, 0]
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    assert len(ours.tokens(ids)) == len(ids)
    assert invoke("import", folder, tmp_path / "ours").exit_code == 0
    done = invoke("run", tmp_path / "ours", "ab ca")
    found = model.double().generate(**theirs("ab ca", return_tensors="pt"))[0]
    assert done.stdout.splitlines()[0] == theirs.decode(
        found, skip_special_tokens=True) != ""


@pytest.mark.parametrize("name, content, words", [
    ("vocab.json", "{}", "no token '</s>'"), ("vocab.json", "[", "cannot be"),
    ("vocab.json", '{"a": 3}', "no token '</s>'"),
    ("vocab.json", '{"</s>": 0, "<unk>": 1, "<pad>": 99}', "is not the"),
    ("source.spm", "nothing", "cannot be read")])
def test_pieces_that_cannot_be_read(marian, tmp_path, name, content, words):
    folder, _ = marian
    (folder / name).write_text(content)
    assert invoke("import", folder, tmp_path / "ours").exit_code == 0
    done = invoke("run", tmp_path / "ours", "ab")
    assert done.exit_code == USAGE and words in done.output


def test_pieces_need_their_library(tmp_path, monkeypatch):
    import importlib.util
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install sentencepiece"):
        Pieces(tmp_path)


# A Whisper of many languages

def test_a_language_is_heard(tmp_path):
    """The model says which; then it writes what transformers' does."""
    from transformer_contract import sound
    from parity_tests.contract.test_sound import tone, written
    torch = pytest.importorskip("torch")
    special = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|fr|>",
               "<|de|>", "<|translate|>", "<|transcribe|>",
               "<|notimestamps|>"]
    told = {"lang_to_id": {"<|en|>": 2, "<|fr|>": 3, "<|de|>": 4},
            "task_to_id": {"translate": 5, "transcribe": 6},
            "is_multilingual": True, "no_timestamps_token_id": 7,
            "decoder_start_token_id": 1, "eos_token_id": 0, "pad_token_id": 0,
            "bos_token_id": 0, "suppress_tokens": [1, 2, 3, 4, 5, 6, 7],
            "begin_suppress_tokens": [0], "max_length": 16}
    model = saved(tmp_path / "theirs", "WhisperForConditionalGeneration",
                  "WhisperConfig", {
        "d_model": 12, "encoder_layers": 1, "decoder_layers": 2,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "vocab_size": 24,
        "num_mel_bins": 4, "max_target_positions": 20, "pad_token_id": 0,
        "bos_token_id": 0, "eos_token_id": 0, "decoder_start_token_id": 1},
        **told)
    inner = bytewise(*special)
    inner.save(str(tmp_path / "theirs" / "tokenizer.json"))
    file = written(tmp_path / "a.wav", tone())
    assert invoke("import", tmp_path / "theirs", tmp_path / "ours"
                  ).exit_code == 0
    done = invoke("run", tmp_path / "ours", file, "--max-tokens", "9")
    assert done.exit_code == 0, done.output
    folder, samples = tmp_path / "ours", sound.read(file)
    listener = speech.WhisperRunner(
        *exchange.kept(folder), folder / "tokenizer.json")
    heard = listener.answer(
        "numpy", listener.vectors(samples), "float64", 9)
    model, picture = model.double(), torch.from_numpy(
        sound.log_mel(samples, 4)[None])
    assert heard.tokens[:4] == [1, *model.detect_language(picture), 6, 7]
    with torch.no_grad():
        logits = model(picture, decoder_input_ids=torch.tensor(
            [heard.tokens])).logits[0, 3:-1].numpy()
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = exponents / exponents.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(heard.score, np.log(
        p[np.arange(len(p)), heard.tokens[4:]]).sum(), rtol=1e-12)
    logits[:, 1:8] = logits[0, 0] = -np.inf
    assert heard.tokens[4:] == logits.argmax(axis=-1).tolist()
    assert listener.tokenizer.decode(heard.tokens) in done.stdout
    assert not listener.undone and "raise --max-tokens" in done.stderr
    rewritten(folder / "generation_config.json", lambda content:
              content.update(num_beams=2, task="translate",
                             forced_decoder_ids=[[1, 3], [2, 6]]))
    done = invoke("run", folder, file, "--max-tokens", "1")
    assert done.exit_code == 0 and all(word in done.stderr for word in (
        "beam", "task 'translate'", "forced_decoder_ids [[1, 3]"))
    for told in ({"hop_length": 80}, {"feature_extractor": {"n_fft": 512}}):
        (folder / "preprocessor_config.json").write_text(json.dumps(told))
        done = invoke("run", folder, file)
        assert done.exit_code == USAGE and "seen here" in done.output
    (folder / "preprocessor_config.json").unlink()
    rewritten(tmp_path / "ours" / "generation_config.json",
              lambda content: content.update(lang_to_id=[3]))
    done = invoke("run", tmp_path / "ours", file)
    assert done.exit_code == USAGE and "lang_to_id" in done.output
