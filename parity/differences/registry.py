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

#: Row -> which causes it is, where both speak of the same thing; the names are
#: those of parity.causes, which says there what each computes.
CAUSES = {
    "layer_norm_epsilon": (
        "layer norm's ε is 0.001", "layer norm's ε is 1e-05",
        "layer norm's ε is 1e-06", "layer norm's ε is 1e-07"),
    "layer_norm_on_narrow_rows": ("layer norm's ε is 0.001",),
    "layer_norm_variance": ("layer norm's variance unbiased",),
    "std_of_four": ("deviation norm's deviation biased",),
    "fast_variance": ("layer norm's variance as mean(x²) - mean(x)²",),
    "epsilon_place": ("layer norm's ε outside the root",),
    "final_norm": ("no final norm", "a norm more"),
    "norm_over_positions": ("a norm over positions too",),
    "gelu_form": ("gelu by tanh, not exact",),
    "mask_polarity": ("mask's polarity turned round in attention",),
    "mask_constant": (
        "a query that sees nothing keeps its scores' order",),
    "query_without_keys": (
        "a query that sees nothing spreads its weight evenly",
        "a hidden score is -∞, and rows of NaN are set to 0"),
    "dense_kernel": ("a kernel transposed",),
    "head_columns": ("all heads grouped by feature",),
    "position_divisor": ("positions' exponent as in Tensor2Tensor",),
    "position_layout": ("positions in halves",),
    "position_table_in_float32": ("positions computed in float32",),
    "padding_row": ("padding's embedding is zero",),
    "dropout_unless_told": ("dropout left on",),
    "dropout_by_default": ("dropout left on",),
    "label_smoothing": ("label smoothing by others, not uniform",
                        "label smoothing by kl, not uniform"),
    "mean_over_padding": ("loss over padding", "loss divided by all places"),
    "mean_of_means": ("loss averaged row by row",),
    "logits_or_probabilities": ("log-probabilities, not logits",),
    "adam_epsilon": ("Adam's ε is 1e-8",),
    "adam_epsilon_place": (
        "Adam's ε before the correction, as Keras has it",),
    "weight_decay_kind": ("weight decay added to the gradient",),
    "norm_after_clipping": (
        "clipping adds 1e-6 to the norm, as torch does",),
    "clipping_scope": ("each weight clipped by its own norm",),
    "first_step_of_a_schedule": ("schedule one step ahead",),
    "live_beams_at_first": ("one hypothesis stands twice",),
}


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


def causes_in_words(row):
    """The causes of a row of the registry in a sentence; "" for none."""
    names = [f"“{name}”" for name in CAUSES.get(row, ())]
    return f"As a cause: {', '.join(names)}." if names else ""
