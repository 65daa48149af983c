"""Text to token ids and back, over the ``tokenizers`` library.

The committed tokenizer is a byte-level BPE (Sennrich et al. 2016; bytes as in
GPT-2), so that no text is unknown to it, trained on both columns of
``data/sentences.tsv``: one vocabulary for source and target, as in section 5.1
of the paper. ``python -m transformer_contract.tokenizer`` trains it again, and
rewrites ``data/tokenizer.json``.
"""

import codecs
import hashlib
import json
import pathlib
import re

import numpy as np
import tokenizers
from tokenizers import (
    decoders, models, normalizers, pre_tokenizers, trainers)

from parity_io.errors import InputError, one_of
from parity_io.files import check_ordinary, write_whole
from transformer_contract.shipped import DATA, list_sums, sound

TOKENIZER, SENTENCES = DATA / "tokenizer.json", DATA / "sentences.tsv"

#: The special tokens, by id from 0.
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")

VOCAB_SIZE = 1000

#: The longest word that is trained on whole: the library takes as long as the
#: square of its length. A text with a longer one is cut into parts so long.
LONGEST = 1000

#: What others call the special tokens, by what ours calls them.
CALLED = {
    "<pad>": ("[PAD]", "<|pad|>"),
    "<s>": ("[CLS]", "[BOS]", "<bos>", "<sos>", "[START]", "<|startoftext|>"),
    "</s>": ("[SEP]", "[EOS]", "<eos>", "[END]", "<|endoftext|>"),
    "<unk>": ("[UNK]",),
}


def cut(texts):
    """Texts as a list, those with a word beyond LONGEST in parts."""
    beyond = re.compile(rf"\S{{{LONGEST + 1}}}")
    parts: list = []
    for text in texts:
        parts += [text] if not beyond.search(text) else [
            text[start:start + LONGEST]
            for start in range(0, len(text), LONGEST)]
    return parts


class Tokenizer:
    """A tokenizer and the ids of its special tokens.

    Attributes:
        pad_id, bos_id, eos_id: ids of the first three of ``SPECIAL``, or of
            their other names in CALLED.
        unknown_id: the fourth's; None if no text is unknown.
        vocab_size: V.
        framed: whether it is used as others use their own: a text is encoded
            with the special tokens that its ``tokenizer.json`` puts around it,
            one that is written in a text is meant, and any may be missing,
            whose id is None then.
    """

    def __init__(self, inner, framed=False):
        ids = [_id_of(inner, token) for token in SPECIAL]
        if None in ids[:3] and not framed:
            token = SPECIAL[ids.index(None)]
            raise InputError(
                f"the tokenizer has no token {token!r}, nor "
                f"{', '.join(CALLED[token])}; add one to it.")
        inner.encode_special_tokens = not framed  # "<s>" in a text is text
        inner.no_padding()
        inner.no_truncation()
        self.inner, self.framed = inner, framed
        self.pad_id, self.bos_id, self.eos_id, self.unknown_id = ids
        self.vocab_size = inner.get_vocab_size()
        self._special = {i: inner.id_to_token(i) for i in ids if i is not None}

    @classmethod
    def load(cls, path=None, framed=False):
        """Read a ``tokenizer.json``, by default the committed one.

        Raises:
            InputError: it cannot be read, or lacks a special token.
        """
        path = sound(TOKENIZER.name, DATA) if path is None else path
        check_ordinary(path)
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)), framed)
        except InputError:
            raise
        except Exception as error:  # the library raises Exception itself
            raise InputError(
                f"{str(path)!r} cannot be read as a tokenizer ({error}); give "
                "a tokenizer.json.") from None

    @classmethod
    def train(cls, texts, vocab_size=VOCAB_SIZE, single_digits=False,
              model="bpe"):
        """Train a tokenizer; equal texts give equal tokenizers.

        Args:
            texts: the texts to train on.
            vocab_size: V, reached where the texts have as many pieces.
            single_digits: whether every digit is a token of its own.
            model: "bpe", of bytes, to which no text is unknown; or
                "wordpiece" (Wu et al. 2016, section 4.1; as in BERT), to which
                characters outside the texts are unknown and all blanks equal.
        """
        if one_of(model, ("bpe", "wordpiece"), "model") == "wordpiece":
            return cls._train_wordpiece(cut(texts), vocab_size)
        inner = tokenizers.Tokenizer(models.BPE(unk_token=SPECIAL[3]))
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
        digits = pre_tokenizers.Digits(individual_digits=True)
        inner.pre_tokenizer = (
            pre_tokenizers.Sequence([digits, byte_level])
            if single_digits else byte_level)
        inner.decoder = decoders.ByteLevel()
        inner.train_from_iterator(cut(texts), trainers.BpeTrainer(
            vocab_size=vocab_size, special_tokens=list(SPECIAL),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False))
        return cls(inner)

    @classmethod
    def _train_wordpiece(cls, texts, vocab_size):
        inner = tokenizers.Tokenizer(models.WordPiece(unk_token=SPECIAL[3]))
        inner.normalizer = normalizers.NFC()
        inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        inner.decoder = decoders.WordPiece()
        inner.train_from_iterator(texts, trainers.WordPieceTrainer(
            vocab_size=vocab_size, special_tokens=list(SPECIAL),
            show_progress=False))
        return cls(inner)

    @property
    def last_id(self):
        """The highest id that a token has; -1 without any."""
        return max(self.inner.get_vocab().values(), default=-1)

    @property
    def digest(self):
        """SHA-256 of the vocabulary: which model this tokenizer belongs to."""
        vocab = self.inner.get_vocab()
        return hashlib.sha256(json.dumps(
            vocab, sort_keys=True).encode()).hexdigest()

    @property
    def full_digest(self):
        """SHA-256 of all that a tokenizer.json says."""
        return hashlib.sha256(self.inner.to_str().encode()).hexdigest()

    def save(self, path):
        """Write ``tokenizer.json``, whole or not at all."""
        write_whole(path, self.inner.to_str(pretty=True) + "\n")

    def encode(self, text):
        """The ids of a text, in which no special token is meant.

        Without bos or eos, unless the tokenizer frames a text by them.
        """
        return self.inner.encode(text, add_special_tokens=self.framed).ids

    def decode(self, ids):
        """The text of ids; special tokens are left out."""
        return self.inner.decode([int(i) for i in ids],
                                 skip_special_tokens=True)

    def tokens(self, ids):
        """Each id's piece as text, for display; � is part of a character."""
        return [self._special.get(int(i)) or self.inner.decode([int(i)])
                for i in ids]

    def pad(self, sequences, side="right", length=None):
        """Sequences of ids as int64 [B T], filled with padding on a side.

        T is ``length``, or without one that of the longest sequence, and 1
        where all are empty.
        """
        one_of(side, ("right", "left"), "side")
        if not sequences:
            raise InputError("there is no sequence; give at least one.")
        longest = max(1, *map(len, sequences))
        length = longest if length is None else length
        if length < longest:
            raise InputError(
                f"length is {length}, but the longest sequence needs "
                f"{longest}; give at least that.")
        out = np.full((len(sequences), length), self.pad_id, np.int64)
        for row, ids in zip(out, sequences):
            start = 0 if side == "right" else length - len(ids)
            row[start:start + len(ids)] = ids
        return out


def _id_of(inner, token):
    """The id of a special token under any of its names; None without one."""
    for name in (token, *CALLED[token]):
        if (token_id := inner.token_to_id(name)) is not None:
            return token_id
    return None


def read_pairs(path=None):
    """The two columns of a file of pairs, a pair a line, separated by a tab.

    By default the committed file.

    Raises:
        InputError: it cannot be read, or a line is not a pair; the file and
            the line's number are named.
    """
    path = sound(SENTENCES.name, DATA) if path is None else path
    check_ordinary(path)
    try:
        lines = pathlib.Path(path).read_bytes().removeprefix(
            codecs.BOM_UTF8).splitlines()
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be read ({error.strerror}); check the path."
        ) from None
    sources, targets = [], []
    for number, line in enumerate(lines, start=1):
        try:
            columns = line.decode("utf-8").split("\t")
        except UnicodeDecodeError:
            raise InputError(
                f"{path}:{number}: the line is not UTF-8; save the file as "
                "UTF-8.") from None
        if len(columns) != 2 or not all(text.strip() for text in columns):
            raise InputError(
                f"{path}:{number}: the line is not a pair; write source, one "
                "tab, target.")
        sources.append(columns[0])
        targets.append(columns[1])
    if not sources:
        raise InputError(f"{path} holds no pair; write at least one line.")
    return sources, targets


if __name__ == "__main__":
    everything = [text for column in read_pairs() for text in column]
    Tokenizer.train(everything).save(TOKENIZER)
    list_sums(DATA, [SENTENCES, TOKENIZER])
    print(f"made {TOKENIZER}")
