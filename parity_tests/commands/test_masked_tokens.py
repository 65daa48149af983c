"""``parity run`` on a BERT: masked tokens are guessed, the same in all four."""

import json
import re

import numpy as np
import pytest

from transformer_contract.dialects.table import SYSTEMS
from transformer_contract.weights import probe_weights
from parity import ports
from parity.runs import exchange, masked_tokens, translation
from parity_tests.support.commands import said
from parity_tests.support.engines import usable

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg"]
MARKS = WORDS[:5]

DESCRIBED = {
    "model_type": "bert", "vocab_size": len(WORDS), "hidden_size": 8,
    "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 6,
    "max_position_embeddings": 9, "type_vocab_size": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of parity import, of a BERT with a head."""
    return made(tmp_path_factory.mktemp("bert") / "model", True)


def made(out, head):
    dialect = SYSTEMS["bert"]
    config = dialect.config(DESCRIBED).replace(
        **{"output_transform": True, "output_bias": True} if head else {})
    exchange.keep(exchange.Foreign(
        dialect, DESCRIBED, config, probe_weights(config), {}, False, None),
        out, exchange.tokenizer_of(
            WORDS, r"\[[A-Z]+\]|.", ("[CLS]", "[SEP]"), "[UNK]", MARKS))
    return out


def test_a_masked_token_is_guessed(folder):
    guesser = masked_tokens.MaskedLM(
        translation.Model.load(folder / exchange.WEIGHTS))
    usable("torch")
    found = guesser.answer(
        "numpy", guesser.question("ab[MASK]d"), "float64")
    text, (token,) = found.text, found.tokens
    assert found.log_probs.argmax() == token  # a special one is not written
    word = "" if WORDS[token] in MARKS else WORDS[token]
    assert re.sub(r"\s", "", text) == f"ab{word}d"
    for words in (["--port", "torch"], ["--dtype", "float32"]):
        status, printed = said("run", folder, "ab[MASK]d", *words)
        assert status == 0 and text in printed


@pytest.mark.long
def test_padding_in_a_text_is_read(folder):
    """As transformers do: of one text no token is padding."""
    guesser = masked_tokens.MaskedLM(
        translation.Model.load(folder / exchange.WEIGHTS))
    ids = guesser.question("a[PAD][PAD][MASK]")
    assert list(ids[0, 2:4]) == [0, 0]
    model = ports.engine("numpy").build(
        "transformer", guesser.model.config, guesser.model.arrays)
    keep = np.ones((1, 1, 1, ids.shape[1]), bool)
    output = ports.engine("numpy").predict(model, ids, ids, keep, keep)
    shifted = output[0, 4] - np.logaddexp.reduce(output[0, 4])
    np.testing.assert_allclose(guesser.answer(
        "numpy", ids, "float64").log_probs[0], shifted, rtol=1e-12)


def test_all_guess_the_same(folder):
    for port in ports.known_ports():
        usable(port)
    status, printed = said("run", folder, "[MASK]b[MASK]", "--port", "all")
    assert status == 0 and "match: tokens identical" in printed


def test_what_cannot_be_guessed(folder, tmp_path):
    for words, said_so in (
            (("abc",), "has no [MASK]"),
            (("abcdefg[MASK]",), "10 tokens")):
        status, text = said("run", folder, *words)
        assert status == 2 and said_so in text and text.count("\n") <= 2
    status, text = said("run", made(tmp_path / "bare", False), "a[MASK]")
    assert status == 2 and "no head" in text


def test_a_file_of_bert_with_a_head_comes_back(folder, tmp_path):
    """Export and import again: the same arrays, and the head among them."""
    assert said("export", folder, tmp_path / "theirs", "--as", "bert")[0] == 0
    assert json.loads((tmp_path / "theirs" / "config.json").read_text()) == (
        DESCRIBED)
    again = exchange.foreign(tmp_path / "theirs")
    assert again.config.output_transform and again.config.has_output_bias
    _, arrays, _, _ = exchange.kept(folder)
    assert arrays.keys() == again.arrays.keys()
    assert all(np.array_equal(arrays[name], again.arrays[name])
               for name in arrays)
