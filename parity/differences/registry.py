"""What frameworks do differently by default, each shown by running them.

A row of the registry asks one question of several answerers, such as which
epsilon a layer norm adds. An answer is a word or a number that was found by
running the framework, never copied from its manual; what is recorded beside it
is what the versions in ``constraints.txt`` answer. So a release that changes a
default shows as a changed row.

Some rows also measure how far outputs part. Some of those gaps are far above
what float32 rounds to; others stay below HIDDEN there, and a comparison in
float32 alone would pass over them.

A file a topic, attention in two; rows stand in the order in which they are
written there.
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
    chosen = [REGISTRY[one_of(name, REGISTRY, "difference")]
              for name in dict.fromkeys(names)] or list(REGISTRY.values())
    if topic is not None:
        one_of(topic, TOPICS, "topic")
        chosen = [known for known in chosen if known.topic == topic]
        if not chosen:
            raise InputError(
                f"none of {', '.join(names)} is of the topic {topic}; leave "
                "out the topic or the names.")
    return chosen
