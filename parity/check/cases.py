"""What is compared: every component alone, then every step of the model.

All inputs come from named Threefry keys, so they are the same everywhere and
no framework's generator takes part. They are chosen to hide nothing: all sizes
differ, norms see rows of deviation 1 to 1e-3 on offsets of up to 100
deviations, sequences are padded on either side, and some queries may attend to
nothing at all.
"""

import dataclasses
import functools

import numpy as np

from transformer_contract import random
from transformer_contract.batch import Batch
from transformer_contract.components import WHOLE
from transformer_contract.config import (
    CHOICES, PRESETS, TransformerConfig, at_test_size)
from transformer_contract.sinusoids import TABLES
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import select

BATCH, SOURCE, TARGET = 5, 11, 9

ALL_TIERS = ("float64", "float32", "bfloat16", "float16")


@dataclasses.dataclass(frozen=True)
class Case:
    """One run that every implementation makes on equal inputs.

    Attributes:
        name: what it is called in tables.
        kind: "run" (a component), "residual", "masks", "loss", "optimizer",
            "gradients", or a key of parity.check.calls.KINDS.
        component: a key of transformer_contract.components.COMPONENTS.
        path: where the component stands in the model; "" is the model.
        inputs: arrays, in order.
        method: which method to run; None for the call itself.
        nested: whether steps of components inside are compared too.
        tiers: the dtypes it is meant for. Inputs that only float64 can tell
            from their rounding are left out elsewhere.
        alone: whether the component is built by itself, not found in a model.
        config: its config then, where it is not the model's.
        smoothing: a loss's ε and its convention.
        training: an optimiser's TrainingConfig.
        weights: how many of its inputs are weights; the rest are gradients.
        returned: whether what the call returns is compared too, as a step of
            that name.
        key: two whole numbers from which a run drops values; none are dropped
            without.
    """

    name: str
    component: str
    inputs: tuple
    kind: str = "run"
    path: str = ""
    method: str | None = None
    nested: bool = True
    tiers: tuple = ALL_TIERS
    alone: bool = False
    config: TransformerConfig | None = None
    smoothing: tuple = (0.0, "uniform")
    training: TrainingConfig | None = None
    weights: int = 0
    returned: bool = False
    key: tuple | None = None

    @property
    def keywords(self):
        """What the call takes besides arrays: all is given at once."""
        method = {"method": self.method} if self.method else {}
        return method | WHOLE.get(self.method or self.component, {})


def values(name, *shape, scale=1.0):
    """Uniform float64 of mean 0 and deviation ``scale``, keyed by ``name``."""
    bound = scale * 3**0.5
    return random.uniform(
        random.fold_in(random.key(0), name), shape, -bound, bound)


def ids(name, batch, length, vocab):
    """Token ids [batch length] without padding, keyed by ``name``."""
    unit = random.uniform(
        random.fold_in(random.key(0), name), (batch, length), 0.0, 1.0)
    return 1 + (unit * (vocab - 1)).astype(np.int64)


def padded_batch(config, source=SOURCE, target=TARGET):
    """Five pairs: full, padded right, padded left, no source, both sides.

    All padding is hidden, a target's first token too: where it is padded on the
    left, some queries attend to nothing. A source of padding alone leaves
    nothing to cross-attention.
    """
    sources = ids("source", BATCH, source, config.source_ids)
    if config.stacks == "encoder":
        target = source  # a label for each
    targets = ids("target", BATCH, target, config.target_vocab)
    pad = config.pad_id
    sources[1, source * 2 // 3:] = targets[1, target * 2 // 3:] = pad
    sources[2, :source // 3] = targets[2, :target // 3] = pad
    sources[3] = pad
    targets[4, :target // 4] = targets[4, -(target // 4) or target:] = pad
    return Batch.of_ids(sources, targets, pad, begun=False)


def attended_batch(config):
    """Three pairs: full, padded right, a source padded left.

    Each query attends to something, as the frameworks' own layers need: they
    differ in what they give a query without a key (R2).
    """
    batch = padded_batch(config)
    return Batch.of_ids(batch.source[:3], batch.target[[0, 1, 1]],
                        config.pad_id, begun=False)


def first_layer(config):
    """The path of a model's first layer."""
    return ("decoder" if config.stacks == "decoder" else "encoder") + (
        ".layers.0")


def component_cases(config, batch=None):
    """The cases of every component of a model alone.

    Args:
        config: the model's.
        batch: whose sizes and masks they have; by default padded_batch's.
    """
    d, batch = config.d_model, batch or padded_batch(config)
    source, target = batch.source.shape, batch.target.shape
    x = values("x", *target, d)
    s = values("s", *source, d)
    memory = values("memory", *source, d)
    masks = batch.source_mask, batch.target_mask
    deviations = np.resize(
        [1, 0.1, 0.01, 0.001, 1, 1, 1, 1, 1], target[1])[:, None]
    spread = x * deviations
    layer, decoder = first_layer(config), "decoder.layers.0"
    exact = ("float64",)
    norm = functools.partial(
        Case, component="norm", path=f"{layer}.self_attention_residual.norm")
    attention = functools.partial(
        Case, component="multi_head_attention",
        path=f"{layer}.self_attention")
    yield Case("masks", "masks", (batch.source, batch.target), kind="masks")
    if config.stacks == "decoder":
        yield Case("token_embedding", "token_embedding", (batch.target,),
                   path="target_embedding")
    else:
        yield Case("token_embedding", "token_embedding", (batch.source,),
                   path="source_embedding")
    if config.stacks == "encoder":
        yield Case("positional_encoding", "positional_encoding",
                   (s, batch.source), path="source_positions")
    else:
        yield Case("positional_encoding", "positional_encoding",
                   (x, batch.target), path="target_positions")
    if config.positions in TABLES and not config.embedding_norm:
        yield Case(
            "positional_encoding, 5000 positions", "positional_encoding",
            (values("long", 1, 5000, d),
             ids("long", 1, 5000, config.target_vocab)), alone=True,
            config=config.replace(max_length=5000))
    yield norm("norm", inputs=(spread,))
    for ratio in (10, 100):
        yield norm(f"norm, mean {ratio} deviations",
                   inputs=(spread + ratio * deviations,), tiers=exact)
    yield Case("single_head_attention", "single_head_attention", (x[0],),
               alone=True,
               path=f"{layer}.self_attention")
    yield attention("self_attention", inputs=(s, s, masks[0]))
    yield attention("self_attention, causal", inputs=(x, x, masks[1]))
    if config.stacks == "both":
        yield attention("cross_attention", inputs=(x, memory, masks[0]),
                        path=f"{decoder}.cross_attention")
    for size in (30, 1000):
        root = size**0.5
        yield attention(f"self_attention, logits times {size}",
                        inputs=(s * root, s * root, masks[0]), tiers=exact)
    yield Case("feed_forward", "feed_forward", (x,),
               path=f"{layer}.feed_forward")
    yield Case("residual", "residual", (x, x * x), kind="residual",
               path=f"{layer}.self_attention_residual")
    read_memory = (memory, *masks) if config.stacks == "both" else masks[1:]
    if config.stacks != "decoder":
        yield Case("encoder_layer", "encoder_layer", (s, masks[0]),
                   path=layer, nested=False)
    if config.stacks != "encoder":
        yield Case("decoder_layer", "decoder_layer", (x, *read_memory),
                   path=decoder, nested=False)
    if config.stacks != "decoder":
        yield Case("encoder", "encoder", (s, masks[0]), path="encoder",
                   nested=False)
    if config.stacks != "encoder":
        yield Case("decoder", "decoder", (x, *read_memory), path="decoder",
                   nested=False)
    if config.output_transform:
        yield Case("head", "head", (x,), path="head")
    yield Case("projection", "projection", (x,), path="projection")
    logits = values("logits", *target, config.target_vocab)
    yield Case("loss", "loss", (logits, batch.target), kind="loss")
    for convention in CHOICES["smoothing"]:
        yield Case(f"loss, label smoothing 0.1, {convention}", "loss",
                   (logits, batch.target), kind="loss",
                   smoothing=(0.1, convention))
    yield from optimizer_cases()
    if config.stacks != "decoder":
        yield Case("encode", "transformer", (batch.source, masks[0]),
                   method="encode", nested=False)
    if config.stacks == "both":
        yield Case("decode", "transformer", (batch.target, memory, *masks),
                   method="decode", nested=False)
    yield Case("project", "transformer", (x,), method="project",
               nested=False)


#: Adam's divides by a root, and adds ε to it: the smallest gradients tell.
GRADIENT_SCALES = 10.0**-np.arange(9)[:, None]


def optimizer_cases():
    """Adam and AdamW on two weights, gradients from 1 to 1e-8, three steps."""
    shapes = (9, 4), (5,)
    inputs = [values(f"weight {i}", *shape)
              for i, shape in enumerate(shapes)]
    for step in range(3):
        for i, shape in enumerate(shapes):
            gradient = values(f"gradient {step} {i}", *shape)
            inputs.append(gradient * GRADIENT_SCALES if i == 0 else gradient)
    plain: dict = {"schedule": "constant", "learning_rate": 0.1}
    for name, training in (
            ("Adam", TrainingConfig(**plain)),
            ("Adam, warming up, clipped",
             TrainingConfig(warmup_steps=2, clip_norm=1.0)),
            ("AdamW", TrainingConfig(
                optimizer="adamw", weight_decay=0.1, **plain))):
        yield Case(name, "optimizer", tuple(inputs), kind="optimizer",
                   training=training, weights=len(shapes),
                   tiers=("float64",))


def model_case(batch, name="transformer"):
    """The case of a whole model on a batch."""
    return Case(name, "transformer", tuple(batch))


def answers_case(batch):
    """The case of a model's output, asked for in every way that there is.

    Where T = S, arrays that a form uses again have one shape in both stacks.
    """
    return Case("transformer, every way to ask", "transformer", tuple(batch),
                kind="outputs")


def prediction_case(batch):
    """The case of a model's output alone."""
    return Case("transformer's output", "transformer", tuple(batch),
                kind="predict")


def gradients_case(batch, pad_id):
    """The gradients of a model's loss, by every weight and every step.

    Each position is to predict the next target token, the last one nothing.
    """
    labels = np.full_like(batch.target, pad_id)
    labels[:, :-1] = batch.target[:, 1:]
    return Case("gradients", "transformer", (*batch, labels),
                kind="gradients", tiers=("float64", "float32"))


def weights_of(case, weights):
    """The arrays that a case's component holds when it is built alone.

    One head's kernels are square: numbers of the model's, in their order.
    """
    if case.component == "single_head_attention":
        kernels = {f"{name}.kernel": weights[f"{case.path}.{name}.kernel"]
                   for name in ("query", "key", "value")}
        return {name: np.resize(kernel, (len(kernel), len(kernel)))
                for name, kernel in kernels.items()}
    return select(weights, f"{case.path}.") if case.path else {}


def test_size(name):
    """The config of a preset at test size."""
    return at_test_size(PRESETS[name])
