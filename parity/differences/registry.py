"""What frameworks do differently by default, each shown by running them.

A row of the registry asks one question of several answerers, such as which
epsilon a layer norm adds. An answer is a word or a number that was found by
running the framework, never copied from its manual; what is recorded beside it
is what the versions in ``constraints.txt`` answer. So a release that changes a
default shows as a changed row.

Some rows also measure how much outputs differ. Some of those gaps are far
above float32's rounding; others are below HIDDEN there, and a comparison in
float32 alone would miss them.

Each topic has a file, attention several; rows are in the order of the files.
"""

import dataclasses
import itertools

from parity_io.errors import InputError, one_of
from parity.differences import (  # noqa: F401  each adds its rows
    activation, attention_masks, attention_causal, attention_shapes, decoding,
    dropout, embedding, initialisation, layout, loss, normalisation, optimiser,
    clipping, precision)
from parity.differences.asking import ADDED, SIDES, TOPICS, framework, same

#: name -> Known, by topic and in the order in which they are written.
REGISTRY = {name: known for topic in TOPICS
            for name, known in ADDED.items() if known.topic == topic}


def select(names=(), topic=None):
    """The rows of these names and this topic; every one by default.

    Raises:
        InputError: there is none of that name or topic.
    """
    rows = [REGISTRY[one_of(name, REGISTRY, "difference")]
              for name in dict.fromkeys(names)] or list(REGISTRY.values())
    if topic is not None:
        one_of(topic, TOPICS, "topic")
        rows = [row for row in rows if row.topic == topic]
        if not rows:
            raise InputError(
                f"none of {', '.join(names)} is of the topic {topic}; leave "
                "out the topic or the names.")
    return rows


def between(rows, sides):
    """The rows in which two frameworks answer differently, and their answers.

    Args:
        rows: Knowns.
        sides: two names of SIDES; to each belong the libraries built on it.

    Raises:
        InputError: it is not two names, or none of the rows is such a row.
    """
    if len(set(sides)) != 2:
        raise InputError(
            f"--between is {','.join(sides)!r}; give two of "
            f"{', '.join(SIDES)}, separated by a comma.")
    kept = [row for row in (_of(row, sides) for row in rows) if row]
    if not kept:
        raise InputError(
            f"of these differences none is between {' and '.join(sides)}; "
            "leave out the topic or the names.")
    return kept


def pairs(row):
    """The pairs of names of SIDES that answer differently, each in order."""
    return [pair for pair in itertools.combinations(SIDES, 2)
            if _of(row, pair)]


def _of(row, sides):
    """A row with two sides' answers alone; None if they do not differ."""
    groups = [{who: answer for who, answer in row.expected.items()
               if framework(who) in SIDES[one_of(side, SIDES, "framework")]}
              for side in sides]
    answers = [answer for group in groups for answer in group.values()]
    if not all(groups) or all(same(answer, answers[0], row.tolerance)
                              for answer in answers):
        return None
    expected = groups[0] | groups[1]
    return dataclasses.replace(row, expected=expected, answers={
        who: row.answers[who] for who in expected})
