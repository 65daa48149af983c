"""What has to be varied, and the case that varies it.

A condition is a name and what a case must have. ``parity check --list`` prints
each with the first case that has it, and a test fails if one has none. Another
part of the check adds its own with a Group: what its cases are, each with a
name, and its conditions on one.
"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

from transformer_contract.config import DEPENDENT
from parity.check import (
    calls, covering, long_sequences, search_conditions, training_runs, wide)


@dataclasses.dataclass(frozen=True)
class Group:
    """Conditions on the cases of one part of the check.

    Attributes:
        title: what they are about.
        cases: without arguments, yields (name, whatever conditions look at).
        conditions: without arguments: {name: a predicate of such a case}.
    """

    title: str
    cases: Callable
    conditions: Callable

    def first(self):
        """{name of a condition: that of the first case that has it, or None}.
        """
        every = list(self.cases())
        return {name: next((case for case, one in every if holds(one)), None)
                for name, holds in self.conditions().items()}


@dataclasses.dataclass(frozen=True)
class WideCase:
    """A case of a wide model, as conditions look at it."""

    model: wide.WideModel
    case: wide.Case

    @property
    def config(self):
        """The model's."""
        return self.model.config

    @property
    def batch(self):
        """The source and target ids, where the whole model is run on them."""
        if self.case.method or len(self.case.inputs) < calls.INPUTS or (
                self.case.component != "transformer"):
            return None
        return self.case.inputs[:2]

    @property
    def sizes(self):
        """B, S and T of the batch; zeros without one."""
        if self.batch is None:
            return 0, 0, 0
        return *self.batch[0].shape, self.batch[1].shape[1]


@functools.cache
def wide_cases():
    """Every case of every wide model: (name, WideCase). They take seconds."""
    return tuple((f"{model.name}, {case.name}", WideCase(model, case))
                 for model in (*wide.models(), *long_sequences.models())
                 for case in model.cases())


def on_sizes(holds):
    """A predicate of B, S and T."""
    return lambda one: any(one.sizes) and holds(*one.sizes)


def on_config(holds):
    """A predicate of a config, of whichever case runs the whole model."""
    return lambda one: one.batch is not None and holds(one.config)


def on_padding(kind):
    """Whether some source is padded so, and is longer than one token."""
    def holds(one):
        if one.batch is None or one.sizes[1] < 3:
            return False
        mask = wide.padding(kind, one.sizes[1])
        return any(np.array_equal(row == one.config.pad_id, mask)
                   for row in one.batch[0])
    return holds


def on_many(holds):
    """A predicate that holds as well, where source and target are long."""
    return lambda one: min(one.sizes[1:]) >= 512 and holds(one)


def has_id(which):
    """Whether the lowest or highest id that is not padding is a source's."""
    def holds(one):
        if one.batch is None:
            return False
        others = np.delete(
            np.arange(one.config.source_ids), one.config.pad_id)
        return bool((one.batch[0] == others[which]).any())
    return holds


def named(*ends, kind=None):
    """Whether a case's name ends so, or it is of a kind."""
    return lambda one: (kind is not None and one.case.kind == kind
                        or bool(ends) and one.case.name.endswith(ends))


def two_widths(norm):
    """Whether a norm has another width here than where it was met first."""
    def holds(one):
        widths = [model.config.d_model for model in wide.models()
                  if model.config.norm == norm]
        return one.config.norm == norm and one.config.d_model != widths[0]
    return holds


def far(name):
    """Whether kernels or tables are far from the scale that they begin at."""
    place = ("kernels", "tables").index(name)
    return lambda one: not 0.5 < wide.SCALES[
        one.model.number % len(wide.SCALES)][place] < 2


def forward_conditions():
    """What a config, a batch and a call can vary: {name: predicate}."""
    return batch_conditions() | config_conditions() | call_conditions()


def batch_conditions():
    """What a batch can vary: ids, padding, lengths and rows."""
    return {
        "pad_id is not 0, 1 or 2": on_config(lambda c: c.pad_id > 2),
        "pad_id is the highest id": on_config(lambda c: c.pad_id == min(
            c.source_vocab, c.target_vocab) - 1),
        "pad_id is 0": on_config(lambda c: c.pad_id == 0),
        **{f"padding {kind}": on_padding(kind) for kind in wide.PADDINGS},
        "the lowest id": has_id(0),
        "the highest id": has_id(-1),
        "B = 1": on_sizes(lambda b, s, t: b == 1),
        "B = 2": on_sizes(lambda b, s, t: b == 2),
        "B > 8": on_sizes(lambda b, s, t: b > 8),
        "T = S": on_sizes(lambda b, s, t: s == t > 1),
        "T > S": on_sizes(lambda b, s, t: t > s > 1),
        "T < S": on_sizes(lambda b, s, t: 1 < t < s),
        "S = 1": on_sizes(lambda b, s, t: s == 1 < t),
        "T = 1": on_sizes(lambda b, s, t: t == 1 < s),
        "S = T = 1": on_sizes(lambda b, s, t: s == t == 1),
        "S > 64": on_sizes(lambda b, s, t: s > 64),
        "T > 64": on_sizes(lambda b, s, t: t > 64),
        "S > 128": on_sizes(lambda b, s, t: s > 128),
        "S and T > 512, not in whole blocks": on_sizes(
            lambda b, s, t: min(s, t) > 512 and s % 512 and t % 512),
        "S and T in whole blocks of 512": on_sizes(
            lambda b, s, t: not (s % 512 or t % 512)),
        **{f"padding {kind}, more than 512 tokens": on_many(
            on_padding(kind)) for kind in wide.PADDINGS},
        "more than 512 tokens, with dropout": on_many(
            lambda one: one.config.dropout and one.case.key),
        "more than 512 tokens, relative positions": on_many(
            on_config(lambda c: c.positions == "relative")),
        "more than 512 tokens, a softmax rounded to float32": on_many(
            on_config(lambda c: c.softmax_rounding == "float32")),
        "more than 512 tokens, scores far apart": named("tokens, large"),
        "masks of one target token": lambda one: (
            one.case.kind == "masks" and one.case.inputs[1].shape[1] == 1),
        "masks of one pair": lambda one: (
            one.case.kind == "masks" and len(one.case.inputs[0]) == 1),
    }


def config_conditions():
    """What a config can vary: heads, sizes, norms, positions, tables."""
    return {
        "H = 1": on_config(lambda c: c.n_heads == 1),
        "H > 1": on_config(lambda c: c.n_heads > 1),
        **{f"{positions}, another base than 10000": on_config(
            lambda c, positions=positions: (
                c.positions == positions and c.rotary_base != 1e4))
           for positions in ("rotary_halves", "rotary_interleaved")},
        "rotary positions, base 10000": on_config(
            lambda c: c.positions.startswith("rotary")
            and c.rotary_base == 1e4),
        **{f"relative positions up to {distance}": on_config(
            lambda c, words=("relative", distance): (
                c.positions, c.relative_distance) == words)
           for distance in (128, 11)},
        "rotary positions and shared heads": on_config(
            lambda c: c.positions.startswith("rotary")
            and c.kv_heads < c.n_heads),
        "a softmax rounded to float32": on_config(
            lambda c: c.softmax_rounding == "float32"),
        "as many heads of keys as of queries": on_config(
            lambda c: c.n_heads == c.kv_heads > 1),
        "half as many heads of keys": on_config(
            lambda c: c.n_heads == 2 * c.kv_heads > 2),
        "one head of keys for several": on_config(
            lambda c: c.kv_heads == 1 < c.n_heads),
        "d_k = d_model / H": on_config(lambda c: c.d_head is None),
        "H · d_k < d_model": on_config(
            lambda c: c.n_heads * c.d_k < c.d_model),
        "H · d_k > d_model": on_config(
            lambda c: c.n_heads * c.d_k > c.d_model),
        "d_model > 512": on_config(lambda c: c.d_model > 512),
        "d_ff < d_model": on_config(lambda c: c.d_ff < c.d_model),
        "fewer encoder layers than decoder layers": on_config(
            lambda c: c.n_encoder_layers < c.n_decoder_layers),
        "source_vocab > target_vocab": on_config(
            lambda c: c.source_vocab > c.target_vocab),
        "source_vocab < target_vocab": on_config(
            lambda c: c.source_vocab < c.target_vocab),
        **{f"a second width of norm {norm}": two_widths(norm)
           for norm in covering.choices()["norm"]},
        **{f"norm_rounding {word}": on_config(
            lambda c, word=word: (c.norm, c.norm_rounding) == ("rms", word))
           for word in DEPENDENT["norm_rounding"]},
        "final_norm_eps > norm_eps": on_config(
            lambda c: c.final_norm and c.final_norm_eps > c.norm_eps),
        "final_norm_eps < norm_eps": on_config(
            lambda c: c.final_norm and c.final_norm_eps < c.norm_eps),
        **{f"position_start {start}": on_config(
            lambda c, start=start: c.position_start == start)
           for start in (0, 1, 2)},
        **{f"learned positions from {start}": on_config(
            lambda c, start=start: (c.positions, c.position_start) == (
                "learned", start)) for start in (0, 2)},
        **{f"token_types {count}": on_config(
            lambda c, count=count: c.token_types == count)
           for count in (0, 1, 2, 3)},
        **{f"a projection {'tied' if tied else 'of its own'}, with"
           f"{'' if bias else 'out'} a bias": on_config(
            lambda c, tied=tied, bias=bias: (
                c.output_tied, c.has_output_bias) == (tied, bias))
           for tied in (False, True) for bias in (False, True)},
        "a longer table of positions for the source": on_config(
            lambda c: c.source_length > c.max_length),
    }


def call_conditions():
    """What weights and a call can vary: scales, dropout, what is returned."""
    return {
        "large activations": named(", large"),
        "exact zeros": named(", zeros"),
        "ties": named(", ties"),
        "kernels far from their first scale": far("kernels"),
        "tables far from their first scale": far("tables"),
        "a ReLU's input of exactly 0, with gradients": lambda one: (
            one.case.kind == "gradients"
            and one.config.activation == "relu"),
        "a second batch of the same shape, then the first again": named(
            kind="again"),
        "compiled, where a port has it": named(kind="compiled"),
        "what a component returns": lambda one: (
            one.case.returned and one.case.component != "transformer"),
        "what a model returns, forward and predict": named(kind="outputs"),
        "gradients with dropout": lambda one: (
            one.case.kind == "gradients" and one.case.key is not None),
        "gradients without": lambda one: (
            one.case.kind == "gradients" and one.case.key is None),
        "the forward pass with dropout": named(kind="forward"),
        "a loss of padding alone": named(kind="padding_loss"),
        "no label smoothing, each convention": named(", no smoothing"),
        "weights as they are handed out": named(kind="exported"),
        "initial weights of a seed above 2³²": lambda one: (
            one.case.kind == "initial"
            and bool((one.case.inputs[0] > 2**32).any())),
        **{f"every kind of call: {kind}": named(kind=kind)
           for kind in calls.KINDS},
    }


def pair_conditions():
    """Every pair of choices: {name: predicate}."""
    def both(pair):
        # Gradients are of the loss, and so of every choice.
        return lambda one: one.case.kind == "gradients" and all(
            getattr(one.config, field) == word for field, word in pair)

    return {", ".join(f"{field} {word}" for field, word in pair): both(pair)
            for pair in covering.pairs(covering.choices())
            if covering.possible(dict(pair))}


def training_cases():
    """Yield every training run that varies conditions: (name, TrainingRun)."""
    return ((run.name, run) for run in training_runs.varied())


def training_conditions():
    """What a training run can vary: {name: predicate}."""
    def has(axis, word):
        return lambda run: run.conditions[axis] == word
    return {f"{axis} {word}": has(axis, word)
            for axis, words in training_runs.AXES.items() for word in words}


def handed():
    """Yield all that hands arrays to a port: (name, what it is)."""
    yield from wide_cases()
    yield from search_conditions.searches()
    yield from training_cases()


def hands_arrays(one):
    """Whether a WideCase hands a port arrays; seeds are single numbers."""
    return bool(one.case.inputs) and one.case.kind != "initial"


def handed_conditions():
    """In which calls arrays are handed to a port: {name: predicate}."""
    def of_kind(kind):
        return lambda one: (isinstance(one, WideCase)
                            and one.case.kind == kind and hands_arrays(one))

    return {
        **{f"what a call gives: {kind}": of_kind(kind)
           for kind in sorted({one.case.kind for _, one in wide_cases()
                               if hands_arrays(one)})},
        "the sources of a search": lambda one: isinstance(one, tuple),
        "weights and batches of a training step": lambda one: isinstance(
            one, training_runs.TrainingRun),
    }


#: Every list of conditions.
GROUPS = [
    Group("Forward pass and gradients (--wide)", wide_cases,
          forward_conditions),
    Group("Pairs of choices (--wide)", wide_cases, pair_conditions),
    Group("Searches (--wide)", search_conditions.searches,
          search_conditions.conditions),
    Group("Rules of searches: each two choose otherwise (--wide)",
          search_conditions.searches, search_conditions.rules),
    Group("Training, every two of these together (--wide)", training_cases,
          training_conditions),
    Group("Inputs: a port has copies, compared afterwards (always)", handed,
          handed_conditions),
]


def listed():
    """Yield (title, {condition: the case that has it, or None}) of groups."""
    for group in GROUPS:
        yield group.title, group.first()
