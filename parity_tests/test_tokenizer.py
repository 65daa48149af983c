"""Text to ids and back, and the files of pairs."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import tokenizer
from contract.batch import Batch
from contract.errors import InputError
from contract.tokenizer import Tokenizer, read_pairs

SHIPPED = Tokenizer.load()


@given(st.text())
def test_any_text_comes_back(text):
    """Bytes know every text, emoji and runs of blanks included."""
    text = unicodedata.normalize("NFC", text)
    assert SHIPPED.decode(SHIPPED.encode(text)) == text


def test_special_tokens():
    assert (SHIPPED.pad_id, SHIPPED.begin_id, SHIPPED.end_id,
            SHIPPED.unknown_id) == (0, 1, 2, 3)
    assert SHIPPED.decode([1, *SHIPPED.encode("Bonjour."), 2, 0]) == "Bonjour."
    assert SHIPPED.tokens([0, 1, 2]) == ["<pad>", "<s>", "</s>"]


def test_the_shipped_tokenizer_is_what_training_gives(tmp_path):
    texts = [text for column in read_pairs() for text in column]
    Tokenizer.train(texts).save(tmp_path / "t.json")
    assert (tmp_path / "t.json").read_bytes() == (
        tokenizer.TOKENIZER.read_bytes())


@pytest.mark.parametrize("side, expected", [
    ("right", [[5, 6, 7], [8, 0, 0], [0, 0, 0]]),
    ("left", [[5, 6, 7], [0, 0, 8], [0, 0, 0]])])
def test_padding(side, expected):
    found = SHIPPED.pad([[5, 6, 7], [8], []], side=side)
    assert found.dtype == np.int64
    assert found.tolist() == expected


def test_a_batch_of_the_shipped_sentences():
    sources, targets = read_pairs()
    batch = Batch.of_text(sources, targets, SHIPPED)
    assert len(batch.source) == len(sources) == 32
    assert (batch.target[:, 0] == SHIPPED.begin_id).all()
    assert ((batch.target == SHIPPED.end_id).sum(axis=1) == 1).all()
    assert [SHIPPED.decode(row) for row in batch.source] == sources
    assert [SHIPPED.decode(row) for row in batch.target] == targets
    assert batch.source.max() < SHIPPED.vocab_size


@pytest.mark.parametrize("content, words", [
    (b"a\tb\nno tab\n", ":2:"), (b"a\tb\tc\n", ":1:"), (b"a\t\n", ":1:"),
    (b"a\tb\n\xff\tb\n", ":2:.*UTF-8"), (b"a\tb\n\nc\td\n", ":2:"),
    (b"", "no pair")])
def test_bad_lines_are_named(tmp_path, content, words):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"pairs.tsv.*{words}|{words}"):
        read_pairs(path)


def test_unreadable_files(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        read_pairs(tmp_path / "nowhere.tsv")
    for content in (None, "not json", "{}"):
        path = tmp_path / "t.json"
        if content is not None:
            path.write_text(content)
        with pytest.raises(InputError, match="t.json"):
            Tokenizer.load(path)


def test_a_tokenizer_without_our_special_tokens(tmp_path):
    import tokenizers
    tokenizers.Tokenizer(tokenizers.models.BPE()).save(str(tmp_path / "t.json"))
    with pytest.raises(InputError, match="<pad>"):
        Tokenizer.load(tmp_path / "t.json")


def test_nothing_to_pad():
    with pytest.raises(InputError):
        SHIPPED.pad([])
