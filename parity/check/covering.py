"""A few models in which every two words of two choices meet.

All combinations would be hundreds of models; what goes wrong takes one choice
or two together, seldom three (Kuhn, Wallace and Gallo 2004). The choices are
read from the config, so that a new word is covered the day it is added.
"""

import dataclasses
import itertools

from transformer_contract import config


def choices():
    """What a model chooses: {field of a TransformerConfig: its words}."""
    return {**config.CHOICES, **{
        field.name: (False, True)
        for field in dataclasses.fields(config.TransformerConfig)
        if field.type is bool}}


def possible(words):
    """Whether words of some fields can be together in a model.

    A target that begins with zeros and has no position there may stay a row
    of zeros, where a standard deviation has no gradient, and of which norms and
    kernels without a bias make zeros, with which nothing is compared. One stack
    has one embedding.
    """
    without = (words.get("positions", "halves") not in (
        "interleaved", "halves", "learned") or words.get("position_padding"))
    if words.get("stacks", "both") != "both" and words.get("tied") in (
            "embeddings", "all"):
        return False
    return not (words.get("begin") == "zero" and without)


def pairs(words):
    """Every two words of two fields: ((field, word), (field, word)) each."""
    for one, two in itertools.combinations(words, 2):
        for pair in itertools.product(words[one], words[two]):
            yield tuple(zip((one, two), pair))


def covering(words, allowed=lambda row: True):
    """Rows {field: word} such that every two words share at least one.

    Each row begins with the first pair that is still left, and every other
    field takes the word that makes the most pairs; of equals, the one that
    the fewest rows have, and of these the first.

    Args:
        words: {field: its words}.
        allowed: whether a row, or a part of one, can be; what it allows must
            be possible to complete.
    """
    rows: list = []
    left = dict.fromkeys(
        pair for pair in pairs(words) if allowed(dict(pair)))
    while left:
        row = dict(next(iter(left)))
        for field in words:
            if field not in row:
                fitting = [word for word in words[field]
                           if allowed({**row, field: word})]
                row[field] = min(fitting, key=lambda word: (
                    -sum(pair in left for pair in _with(row, field, word)),
                    sum(other[field] == word for other in rows)))
        row = {field: row[field] for field in words}
        for pair in itertools.combinations(row.items(), 2):
            left.pop(pair, None)
        rows.append(row)
    return rows


def _with(row, field, word):
    """The pairs that a word would make with those of a row, in any order."""
    for other in row.items():
        yield other, (field, word)
        yield (field, word), other


def fewest(rows):
    """Of some rows a few, in which every single word occurs."""
    left, selection = {entry for row in rows for entry in row.items()}, []
    while left:
        selection.append(max(rows, key=lambda row: len(left & row.items())))
        left -= selection[-1].items()
    return selection
