"""The hand-written byte-pair encoding against the library's."""

import json

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_contract.tokenizer import Tokenizer, read_pairs
from reference_numpy import bpe

SENNRICH = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3


def test_the_papers_example():
    """Sennrich et al. 2016, figure 1, without the end-of-word sign."""
    merges = bpe.train(SENNRICH, 3)
    assert merges == [("e", "s"), ("es", "t"), ("l", "o")]
    assert bpe.encode("lowest", merges) == ["lo", "w", "est"]


def library(merges, pieces):
    """The library's BPE with our merges, on one word at a time."""
    return tokenizers.models.BPE(pieces, merges)


@pytest.mark.parametrize("count", [0, 1, 10, 60, 400])
def test_our_merges_in_the_library(count):
    """Trained by hand on the committed sentences, encoded by both."""
    words = " ".join(read_pairs()[0][:200]).split()
    merges = bpe.train(words, count)
    pieces = bpe.vocabulary(words, merges)
    theirs = library(merges, pieces)
    for word in sorted(set(words)):
        expected = [token.value for token in theirs.tokenize(word)]
        assert bpe.encode(word, merges) == expected


def test_the_librarys_merges_in_ours():
    """The shipped tokenizer's, on words that it cut itself."""
    inner = Tokenizer.load().inner
    model = json.loads(inner.to_str())["model"]
    merges = [tuple(pair) if isinstance(pair, list)
              else tuple(pair.split(" ")) for pair in model["merges"]]
    cut = inner.pre_tokenizer.pre_tokenize_str
    compared = 0
    for sentence in sum(read_pairs(), []) + ["naïve 猫 🦉", "aaaaaaaa"]:
        ours = [piece for word, _ in cut(sentence)
                for piece in bpe.encode(word, merges)]
        assert ours == inner.encode(sentence, add_special_tokens=False).tokens
        compared += len(ours)
    assert compared > 500


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text("ab c", min_size=1, max_size=8), min_size=1,
                max_size=6), st.integers(0, 12))
def test_any_words(words, count):
    merges = bpe.train(words, count)
    theirs = library(merges, bpe.vocabulary(words, merges))
    for word in words:
        pieces = bpe.encode(word, merges)
        assert "".join(pieces) == word
        assert pieces == [token.value for token in theirs.tokenize(word)]
