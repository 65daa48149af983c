"""The words of a path, and how similar two paths are."""

import re

import numpy as np

from parity.tracing.trace import WHOLE

#: Words of paths that mean the same.
SYNONYMS = {word: words.split()[0] for words in (
    "attention attn att mha selfattn sa",
    "norm layernorm ln rmsnorm layernormalization normalization",
    "feedforward ffn ff mlp", "inner fc1 lin1 wi dense1 intermediate",
    "outer fc2 lin2 wo2 dense2", "bias beta b", "query q wq bq",
    "key k wk bk", "value v wv bv", "encoder enc", "decoder dec",
    "embedding embed embeddings emb embd wte table tok token",
    "layer layers h block blocks", "weight kernel w",
    "scale gamma alpha", "linear dense fc lin proj projection",
    "output out o wo bo", "dropout drop", "position positions pos wpe")
    for word in words.split()}

FAMILIES = (
    ("norm", "norm"), ("dropout", "dropout"), ("embed", "embedding"),
    ("attention", "attention"), ("linear", "linear"), ("dense", "linear"),
    ("conv", "linear"), ("relu", "activation"), ("gelu", "activation"),
    ("activation", "activation"), ("softmax", "activation"))

ROLES = {"query", "key", "value"}


def words_of(path):
    """The words of a path, one word for all synonyms, and its numbers."""
    if path == WHOLE:
        return [], []
    path = re.sub(r"([a-z])([A-Z])", r"\1_\2", path).lower()
    words, numbers = [], []
    for text in re.split(r"[^a-z0-9]+", path):
        if text in SYNONYMS:
            words.append(SYNONYMS[text])
            continue
        for word in re.findall(r"[a-z]+|\d+", text):
            if word.isdigit():
                numbers.append(int(word))
            else:
                words.append(SYNONYMS.get(word, word))
    return words, numbers


def likeness(names, others):
    """How similar paths are: a matrix of numbers from 0 to 1."""
    split = [words_of(name) for name in names], [
        words_of(name) for name in others]
    columns = {word: i for i, word in enumerate(dict.fromkeys(
        word for side in split for words, _ in side for word in words))}
    tables = []
    for side in split:
        table = np.zeros((len(side), len(columns) + 1), np.float32)
        for row, (words, _) in zip(table, side):
            for word in words:
                row[columns[word]] = 1
            if words:  # the last word says most
                row[columns[words[-1]]] = 2
        tables.append(table)
    inner = tables[0] @ tables[1].T
    lengths = [np.square(t).sum(1) for t in tables]
    whole = lengths[0][:, None] + lengths[1] - inner
    alike = inner / np.maximum(whole, 1)
    same, first = (np.equal.outer(*codes(*(
        [key(numbers) for _, numbers in side] for side in split)))
        for key in (tuple, lambda numbers: tuple(numbers[:1])))
    some = np.logical_and.outer(*(
        np.array([bool(numbers) for _, numbers in side], bool)
        for side in split))
    alike *= 0.7
    alike += np.where(same, 0.3, np.where(first & some, 0.2, 0))
    return alike


def codes(*sides):
    """Values of several lists as numbers, equal where they are: an array each.
    """
    known = {value: code for code, value in enumerate(
        dict.fromkeys(value for side in sides for value in side))}
    return [np.array([known[value] for value in side], int) for side in sides]


def family(kind):
    """The family of a class of modules, by its name; "" if unknown."""
    kind = kind.lower()
    return next((name for word, name in FAMILIES if word in kind), "")
