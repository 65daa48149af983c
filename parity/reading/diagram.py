"""What a picture of the Transformer shows: its modules as the code makes them.

What is drawn is read from a model that the reference makes of a config: which
modules stand at which path, and of which class. So a picture of a decoder
alone, or with the norm before each sub-layer, is the same few lines.
"""

import dataclasses
import importlib

from parity_io.errors import plural

#: Sizes of a model of which only its modules are looked at.
SMALL = {"source_vocab": 8, "target_vocab": 8, "d_model": 8, "n_heads": 2,
         "n_kv_heads": None, "d_head": None, "d_ff": 8, "max_length": 8,
         "n_encoder_layers": 1, "n_decoder_layers": 1,
         "source_max_length": None, "pad_id": 0}

#: What the parts of a layer are called, in the order of the data.
PARTS = {"self_attention": "Self-attention",
         "cross_attention": "Cross-attention", "feed_forward": "Feed-forward"}

#: Words of a config's choices beneath a box.
ACTIVATIONS = {"relu": "ReLU", "gelu": "GELU", "gelu_tanh": "GELU by tanh",
               "silu": "SiLU"}
POSITIONS = {"interleaved": "sines and cosines in turn",
             "halves": "sines, then cosines", "learned": "a learned table"}
NORMS = {"layer": "Layer norm", "std": "Std norm",
         "scalar_std": "Std norm of one scale", "rms": "RMS norm"}


@dataclasses.dataclass(frozen=True)
class Box:
    """A module in the picture.

    Attributes:
        path: where it stands in the model; "" for what is no module.
        words, more: what it is called, and what is special about it.
        owner: its class.
        kind: "box", "norm", "sum" or "text".
        helpers: other owners that belong to it.
    """

    path: str
    words: str
    owner: str = ""
    more: str = ""
    kind: str = "box"
    helpers: tuple = ()


@dataclasses.dataclass(frozen=True)
class Stack:
    """What one side of the picture shows, from the bottom up.

    Attributes:
        before, after: Boxes below and above the layers.
        layer: a list for each sub-layer: the Boxes of its residual.
        count: how many layers there are.
    """

    name: str
    before: list
    layer: list
    after: list
    count: int


def kinds_of(config, engine):
    """{path: class} of the modules of a model of a config."""
    package = engine.__package__
    parameters = importlib.import_module(f"{package}.parameters")
    model = importlib.import_module(f"{package}.parts").model(
        config.replace(**SMALL))
    return {path: type(each).__name__
            for path, each in parameters.modules(model)}


def stacks(config, engine):
    """The Stacks that a config has, the encoder first."""
    kinds = kinds_of(config, engine)
    return [stack_of(config, kinds, name) for name in ("encoder", "decoder")
            if config.stacks in ("both", name)]


def stack_of(config, kinds, name):
    """The Stack of this name."""
    side = "source" if name == "encoder" else "target"
    before = [Box("", f"{side} tokens", kind="text"), Box(
        f"{side}_embedding", "Embedding", kinds[f"{side}_embedding"],
        "" if config.embedding_scale == "none" else "times √d_model")]
    positions = f"{side}_positions"
    if config.positions in POSITIONS:
        before.append(Box(positions, "Positions", kinds[positions],
                          POSITIONS[config.positions]))
    if config.embedding_norm:
        before.append(norm(config, kinds, f"{positions}.norm"))
    layer = []
    for part, words in PARTS.items():
        path = f"{name}.layers.0.{part}"
        if path in kinds:
            layer.append(sub_layer(config, kinds, path, words, name))
    after = []
    if config.final_norm:
        after.append(norm(config, kinds, f"{name}.norm"))
    if name == "decoder" or config.stacks == "encoder":
        tied = "the table of the embedding" if config.output_tied else ""
        if config.output_transform:
            after += [Box("head", "Head", kinds["head"],
                          ACTIVATIONS[config.activation]),
                      norm(config, kinds, "head.norm")]
        after += [Box("projection", "Projection", kinds["projection"], tied),
                  Box("", "logits" if config.output == "logits"
                      else "log-probabilities", kind="text")]
    return Stack(name, before, layer, after,
                 getattr(config, f"n_{name}_layers"))


def norm(config, kinds, path):
    """The Box of a norm."""
    final = path in ("encoder.norm", "decoder.norm")
    eps = config.final_norm_eps if final else config.norm_eps
    return Box(path, f"{NORMS[config.norm]}, ε {eps:.0e}", kinds[path],
               kind="norm")


def sub_layer(config, kinds, path, words, stack):
    """The Boxes of a sub-layer and its residual, from the bottom up."""
    residual = f"{path}_residual"
    if path.endswith("feed_forward"):
        more = ("gated, " if config.gated else "") + (
            ACTIVATIONS[config.activation])
        box = Box(path, words, kinds[path], more)
    else:
        mask = "masked, " if (
            stack == "decoder" and path.endswith("self_attention")) else ""
        heads = plural(config.n_heads, "head")
        if config.kv_heads != config.n_heads:
            heads += f", {config.kv_heads} of keys"
        if config.attention_scale == "none":
            heads += ", not scaled"
        box = Box(path, words, kinds[path], mask + heads + knows(kinds, path),
                  helpers=("MultiHeadAttention", "SingleHeadAttention",
                           *turns(kinds, path)))
    total = Box(residual, "+", kinds[residual], kind="sum")
    normed = norm(config, kinds, f"{residual}.norm")
    if config.residual == "pre":
        return [normed, box, total]
    return [box, total, normed]


def turns(kinds, path):
    """The classes by which an attention itself knows of positions."""
    return [kinds[f"{path}.{name}"] for name in ("query_rotary", "relative")
            if f"{path}.{name}" in kinds]


def knows(kinds, path):
    """The same in words."""
    names = turns(kinds, path)
    if not names:
        return ""
    return ", rotary" if "Rotary" in names[0] else ", relative"


def signature(box):
    """What makes a Box the same in two models: its class and its words."""
    return box.owner.removeprefix("Tied"), box.words, box.more


def signatures(model):
    """{path: signature} of every Box of a model's Stacks."""
    return {box.path: signature(box) for stack in model
            for box in (*stack.before, *sum(stack.layer, []), *stack.after)
            if box.path}
