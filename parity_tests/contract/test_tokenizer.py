"""Text to ids and back, and the files of pairs."""

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_contract import tokenizer
from transformer_contract.batch import Batch
from parity_io.errors import InputError
from transformer_contract.tokenizer import Tokenizer, read_pairs

SHIPPED = Tokenizer.load()


@given(st.text())
@example("🦉🏽 猫が好き  \t\n\r\n   \u00a0 ")
@example("a <s>b</s><pad> <unk>")
def test_any_text_comes_back(text):
    """Bytes know every text, emoji and runs of blanks included."""
    text = unicodedata.normalize("NFC", text)
    ids = SHIPPED.encode(text)
    assert SHIPPED.decode(ids) == text
    assert all(3 < i < SHIPPED.vocab_size for i in ids)


def test_special_tokens():
    assert (SHIPPED.pad_id, SHIPPED.bos_id, SHIPPED.eos_id,
            SHIPPED.unknown_id) == (0, 1, 2, 3)
    assert SHIPPED.decode([1, *SHIPPED.encode("Bonjour."), 2, 0]) == "Bonjour."
    assert SHIPPED.tokens([0, 1, 2]) == ["<pad>", "<s>", "</s>"]


def test_a_special_token_in_a_text_is_text():
    """Else a sentence could end itself, or hide behind the padding mask."""
    ids = SHIPPED.encode("</s>")
    assert SHIPPED.eos_id not in ids
    assert "".join(SHIPPED.tokens(ids)) == "</s>"


def test_pieces_can_be_read():
    text = "La rivière commence."
    assert "".join(SHIPPED.tokens(SHIPPED.encode(text))) == text
    assert set(SHIPPED.tokens(SHIPPED.encode("猫"))) == {"�"}


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


def test_padding_to_a_length():
    assert SHIPPED.pad([[5], []], length=3).tolist() == [[5, 0, 0], [0, 0, 0]]
    assert SHIPPED.pad([[5]], "left", 2).tolist() == [[0, 5]]
    assert SHIPPED.pad([[]]).tolist() == [[0]]


@pytest.mark.parametrize("keywords, words", [
    ({"length": 1}, "length is 1.*needs 2"), ({"length": 0}, "length is 0"),
    ({"side": "middle"}, "side 'middle' is unknown")])
def test_padding_that_cannot_be(keywords, words):
    with pytest.raises(InputError, match=words):
        SHIPPED.pad([[5, 6]], **keywords)


def test_a_batch_of_the_shipped_sentences():
    sources, targets = read_pairs()
    batch = Batch.of_text(sources, targets, SHIPPED)
    assert len(batch.source) == len(sources) == 32
    assert (batch.target[:, 0] == SHIPPED.bos_id).all()
    assert ((batch.target == SHIPPED.eos_id).sum(axis=1) == 1).all()
    assert [SHIPPED.decode(row) for row in batch.source] == sources
    assert [SHIPPED.decode(row) for row in batch.target] == targets
    assert batch.source.max() < SHIPPED.vocab_size


@pytest.mark.parametrize("content, words", [
    (b"a\tb\nno tab\n", ":2:"), (b"a\tb\tc\n", ":1:"), (b"a\t\n", ":1:"),
    (b"\tb\n", ":1:"), (b"a\tb\n \tb\n", ":2:"),
    (b"a\tb\n\xff\tb\n", ":2:.*UTF-8"), (b"a\tb\n\nc\td\n", ":2:"),
    (b"", "no pair")])
def test_bad_lines_are_named(tmp_path, content, words):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"pairs.tsv.*{words}") as caught:
        read_pairs(path)
    assert str(caught.value).endswith(".")


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
    with pytest.raises(InputError, match="no sequence"):
        SHIPPED.pad([])


def test_saving_whole_or_not_at_all(tmp_path):
    SHIPPED.save(tmp_path / "t.json")
    assert Tokenizer.load(tmp_path / "t.json").encode("owl") == (
        SHIPPED.encode("owl"))
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="taken"):
        SHIPPED.save(tmp_path / "taken")
    assert {p.name for p in tmp_path.iterdir()} == {"t.json", "taken"}


def test_others_special_tokens_are_known(tmp_path):
    """BERT's, say: [CLS] begins, [SEP] ends."""
    inner = Tokenizer.train(["a b c"], model="wordpiece").inner
    text = inner.to_str()
    for ours, theirs in (("<pad>", "[PAD]"), ("<s>", "[CLS]"),
                         ("</s>", "[SEP]"), ("<unk>", "[UNK]")):
        text = text.replace(f'"{ours}"', f'"{theirs}"')
    path = tmp_path / "tokenizer.json"
    path.write_text(text, "utf-8")
    found = Tokenizer.load(path)
    assert (found.pad_id, found.bos_id, found.eos_id,
            found.unknown_id) == (0, 1, 2, 3)
    assert found.tokens([0, 1, 2, 3]) == ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    assert found.encode("a 猫") == [inner.token_to_id("a"), 3]
    assert found.decode([1, inner.token_to_id("b"), 2]) == "b"


def test_a_tokenizer_without_an_end_is_refused(tmp_path):
    text = Tokenizer.train(["a b c"], 300).inner.to_str()
    path = tmp_path / "tokenizer.json"
    path.write_text(text.replace('"</s>"', '"<over>"'), "utf-8")
    with pytest.raises(InputError, match="no token '</s>', nor .SEP."):
        Tokenizer.load(path)


def test_a_digest_tells_vocabularies_apart():
    assert SHIPPED.digest == Tokenizer.load().digest
    assert SHIPPED.digest != Tokenizer.train(["a b"], 300).digest


def test_a_word_of_a_megabyte():
    """It is trained on in parts; shorter ones are whole."""
    assert tokenizer.cut(["a b", "c" * 2500]) == [
        "a b", "c" * 1000, "c" * 1000, "c" * 500]
    made = Tokenizer.train(["ab" * 2**19], vocab_size=300)
    assert made.decode(made.encode("abab")) == "abab"
