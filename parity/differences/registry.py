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

from contract.errors import InputError, one_of
from parity.differences import (  # noqa: F401  each adds its rows
    activation, attention_masks, attention_shapes, decoding, dropout,
    embedding, initialisation, layout, loss, normalisation, optimiser,
    precision)
from parity.differences.asking import ADDED, TOPICS

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
