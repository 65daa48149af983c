"""The training runs that are compared step by step, as data.

The run of ``parity check --train`` has all that a run can have, in one way
each. The others, few steps of a tiny model each, vary what a run can vary, so
that every two conditions occur together in one of them: whatever the contract
has a word for is among the conditions from the day on which it has the word.

In float32 four things are no port's fault, and are kept away. A ReLU's
gradient jumps where rounding decides the sign of its input. The gradient of a
norm's only scale is a sum over all values of which nearly all cancels, so that
its rounding is chance; so does that of a key's bias under rotary positions,
which adds nearly the same to all scores of a query. These three run in float64
only. And Adam divides a gradient by
its own size, so that one that is nearly rounding moves its weight by as much as
any other; an ε of the size of the gradients keeps that in bounds.
"""

import dataclasses
import functools

import numpy as np

import transformer_contract.config
import transformer_contract.training
from transformer_contract.config import PLAIN, TransformerConfig
from parity_io.errors import plural
from transformer_contract.training import TrainingConfig
from parity.check import cases, covering
from parity.numerics.dtypes import BOTH
from parity.ports import COMPILED

#: What tables have as the preset of the runs that vary conditions.
TITLE = "conditions"

#: All that a run can have: a schedule, clipping, and two batches a step.
TRAINING = TrainingConfig(warmup_steps=400, clip_norm=1.0)
ACCUMULATED = 2

SMOOTHING = 0.1

#: Steps of a run that varies conditions. Warm-ups end at 1 and 3, and after
#: SAVED steps it is saved, where it is.
STEPS, SAVED = 4, 2

#: B, S and T of its batches. Of a large one so much is padding that every form
#: leaves padding out that can.
SIZES = {"small": (3, 5, 6), "large": (6, 24, 25),
         "one pair": (1, 5, 3)}

#: What its tokens are: batches of different counts; and at FIRST or LATER
#: steps one batch, or all, of padding alone.
UNEVEN, BATCH_OF_PADDING, STEP_OF_PADDING, FIRST_STEP_OF_PADDING = TOKENS = (
    "uneven", "a batch of padding", "a step of padding",
    "a first step of padding")

#: Whether it is saved and resumed, and from whose checkpoint.
THROUGH, OWN, REFERENCES = RESUMED = (
    "not", "from its own checkpoint", "from the reference's checkpoint")

#: What runs in float64 only, and the least ε of Adam in float32.
FLOAT64_ONLY = {("activation", "relu"), ("norm", "scalar_std")}
STEADY_EPS = 1e-3

#: Every condition: fields of both configs, and what they do not have.
AXES = {
    **transformer_contract.training.CHOICES,
    **transformer_contract.config.CHOICES,
    "seed": (0, 7, 2**32 + 5, 2**64 - 1),
    "tokens": TOKENS,
    "clip_norm": (0.0, 0.02, 1e6),
    "warmup_steps": (3, 1, 50),
    "dropout": (0.1, 0.0, 0.35),
    "label_smoothing": (0.15, 0.0),
    "accumulated": (2, 1, 3),
    "batches": tuple(SIZES),
    "resumed": RESUMED,
    "dtype": BOTH,
    "final_norm": (False, True),
    "pad_id": (0, 3),
    "padding_learns": (True, False),
    "beta1": (0.9, 0.6),
    "beta2": (0.98, 0.9),
    "eps": (1e-9, STEADY_EPS),
}

TINY = PLAIN.replace(
    source_vocab=11, target_vocab=13, d_model=12, n_heads=2, d_ff=10,
    n_encoder_layers=1, n_decoder_layers=1, max_length=32, norm_eps=1e-5,
    final_norm_eps=1e-3)
ONE_TABLE = TINY.replace(source_vocab=TINY.target_vocab)


def go_together(conditions):
    """Whether conditions can be met at once, and mean something together."""
    low = conditions.get("dtype", "float64") != "float64"
    # The mean that a final norm subtracts is all that the one bias of the norm
    # before it adds, so that this bias has no gradient but rounding.
    unused = {"residual": "post", "norm": "scalar_std", "final_norm": True}
    return covering.possible(conditions) and not (
        unused.items() <= conditions.items()
        # NumPy's own generator and a framework's drop other values
        or conditions.get("masks") == "native" and conditions.get("dropout")
        or low and FLOAT64_ONLY & conditions.items()
        or low and conditions.get("positions", "").startswith("rotary")
        and conditions.get("attention_bias") == "all"
        or low and conditions.get("eps", STEADY_EPS) < STEADY_EPS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """A training run that the reference and every port make.

    Attributes:
        name: what it is called in tables.
        config, training: of the model, and how it is trained.
        pairs: for each step sources [A B S] and targets [A B T].
        dtype: in which ports compute.
        saved: the step after which it is saved and resumed; 0 for none.
        resumed: one of RESUMED.
        conditions: {axis: word} of AXES.
    """

    name: str
    config: TransformerConfig
    training: TrainingConfig
    pairs: tuple = dataclasses.field(compare=False, repr=False)
    dtype: str = "float64"
    saved: int = 0
    resumed: str = THROUGH
    conditions: dict = dataclasses.field(
        default_factory=dict, compare=False, repr=False)

    @property
    def steps(self):
        """How many steps it has."""
        return len(self.pairs)

    @property
    def asked(self):
        """Whether its model is asked for an answer before and afterwards.

        Once for every condition: what compiles does so for each question.
        """
        return self.conditions in [run.conditions for run in varied_few()]


# The run of ``parity check --train``

def usual(config, steps):
    """A preset's run, with label smoothing whether it has some or not."""
    config = configured(config)
    return TrainingRun(
        name=f"training, {plural(steps, 'step')}", config=config,
        training=TRAINING,
        pairs=tuple(batches(config, step) for step in range(1, steps + 1)))


def configured(config):
    """A preset's config with label smoothing, whether it has some or not."""
    return config.replace(
        label_smoothing=config.label_smoothing or SMOOTHING)


def batches(config, step):
    """Sources [A B S] and targets [A B T] of a step, padded on any side."""
    pairs = []
    for i in range(ACCUMULATED):
        batch = cases.padded_batch(config)
        sources, targets = batch.source.copy(), batch.target.copy()
        for ids, what, vocab in (
                (sources, "source", config.source_vocab),
                (targets, "target", config.target_vocab)):
            values = cases.ids(f"{what} {step} {i}", *ids.shape, vocab)
            ids[...] = np.where(ids == config.pad_id, ids, values)
        if i:  # other batches have fewer tokens to predict
            targets[2, targets.shape[1] // 2:] = config.pad_id
        pairs.append((sources, targets))
    return tuple(map(np.stack, zip(*pairs)))


# Runs that vary conditions

@functools.cache
def varied():
    """Runs in which every two conditions that go together occur together."""
    return tuple(
        varied_run(number, conditions) for number, conditions in enumerate(
            covering.covering(AXES, go_together), start=1))


@functools.cache
def varied_few():
    """Of those a few, in which every condition occurs: for what compiles.

    Much padding, which is left out, occurs in every stack and with dropout.
    """
    every = {run: run.conditions | left_out(run) for run in varied()}
    few = covering.fewest([*every.values()])
    return tuple(run for run in every if every[run] in few)


def left_out(run):
    """Where a run with large batches leaves padding out, as conditions."""
    if run.conditions["batches"] != "large":
        return {}
    return {"left out": run.config.stacks,
            "left out with dropout": run.config.dropout > 0}


def makes(port, form, run):
    """Whether a port in a form makes a run: one that compiles, only a few."""
    return (not run.conditions or (port, form) not in COMPILED
            or run in varied_few())


def varied_run(number, conditions):
    """The TrainingRun of some conditions, {axis: word}."""
    names = {field.name for field in dataclasses.fields(TransformerConfig)}
    config = (TINY if conditions["tied"] == "none" else ONE_TABLE).replace(**{
        axis: word for axis, word in conditions.items() if axis in names})
    names = {field.name for field in dataclasses.fields(TrainingConfig)}
    constant = conditions["schedule"] == "constant"
    training = TrainingConfig(
        learning_rate=0.01 if constant else 0.1,
        weight_decay=0.0 if conditions["optimizer"] == "adam" else 0.3,
        **{axis: word for axis, word in conditions.items() if axis in names})
    return TrainingRun(
        name=f"training {number}: {conditions['optimizer']}, "
        f"{conditions['schedule']}",
        config=config, training=training, pairs=tuple(
            varied_batches(config, step, conditions)
            for step in range(1, STEPS + 1)),
        dtype=conditions["dtype"],
        saved=0 if conditions["resumed"] == THROUGH else SAVED,
        resumed=conditions["resumed"], conditions=conditions)


def varied_batches(config, step, conditions):
    """Sources [A B S] and targets [A B T] of a step of a varied run.

    Each row has padding of another length, on the right or on the left; each
    batch of several rows has fewer tokens than the one before.
    """
    pairs, pad = [], config.pad_id
    rows, sources, targets = SIZES[conditions["batches"]]
    for i in range(conditions["accumulated"]):
        pair = []
        for what, length, vocab in (
                ("source", sources, config.source_ids),
                ("target", sources + 1 if config.stacks == "encoder"
                 else targets, config.target_vocab)):
            ids = cases.ids(f"{what} {step} {i}", rows, length, vocab)
            ids[ids == pad] = 0  # an id like any other where it is not padding
            if rows == 1:
                ids[0, 3 + step % 2:] = pad
                pair.append(ids)
                continue
            ids[0, length - i - step % 2:] = pad
            ids[1, :2 * i + step % 2] = pad
            ids[2, 2 + step % 3:] = pad
            for row in range(3, rows):
                ids[row, length // row - i - step % 2:] = pad
            pair.append(ids)
        if step == 3:  # nothing to cross-attend to, a row without a label
            pair[0][0] = pad
            pair[1][-1] = pad
        pairs.append(pair)
    sources, targets = map(np.stack, zip(*pairs))
    first, word = step == 1, conditions["tokens"]
    if word == BATCH_OF_PADDING and step in (2, 3):
        empty = slice(-1, None) if step == 2 else slice(1)
    elif word == (FIRST_STEP_OF_PADDING if first else STEP_OF_PADDING) and (
            step < 3):
        empty = slice(None)
    else:
        empty = slice(0)
    sources[empty] = targets[empty] = pad
    return sources, targets
