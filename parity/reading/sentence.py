"""A sentence that the reader touches: what each token looks at, in each head.

As the model is, and with one thing of it taken away. Each place of the answer
is predicted from the right answer before it, as in training, so that one wrong
token does not change what the next ones read.
"""

import base64
import contextlib
import json

import numpy as np

from transformer_contract.generation import GenerationConfig
from parity.causes import catalogue
from parity.check.run import LONGEST
from parity.numerics.softmax import softmax
from parity.reading.shipped_model import EXAMPLE, Shipped
from parity.render.maps import shown

#: The sentences that come with the pages.
SENTENCES = (EXAMPLE, "Thursday, January 26, 1989", "the 4th of July 1776",
             "3. Mai 1999", "2039年11月6日日曜日")

#: What is taken away: its word -> what it is called, and the causes that do so.
CHANGES = {
    "": ("as it is", ()),
    "divisor": ("without √dₖ", ("scores not divided",)),
    "mask": ("no mask", ("no padding mask", "no causal mask")),
    "positions": ("no positions", ("no positions",))}

#: The attentions by their places in the model, and who looks at what.
KINDS = {
    "cross": ("decoder", "cross_attention",
              "cross-attention: answer → source"),
    "decoder": ("decoder", "self_attention",
                "decoder self-attention: answer → answer"),
    "encoder": ("encoder", "self_attention",
                "encoder self-attention: source → source")}

#: Sources are padded to this length, so that there is padding to be hidden; and
#: so many tokens are told of each place of the answer.
LENGTH, BEST = 32, 3


def read(values, text):
    """What a page shows of a text, as plain data.

    Args:
        values: a shipped_model.Shipped, or what has its attributes.
        text: it has at most LENGTH tokens, or as many as the model reads.
    """
    tokenizer = values.tokenizer
    ids = tokenizer.encode(text)
    source = tokenizer.pad([ids], length=max(len(ids), LENGTH))
    engine = values.engines["numpy"]
    answer = engine.generate(
        values.built(engine), source, GenerationConfig(
            bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
            max_tokens=LONGEST))["tokens"][0, 0]
    ends = np.flatnonzero(answer == tokenizer.eos_id)
    count = int(ends[0]) if len(ends) else len(answer) - 1
    target = answer[None, :count]  # from the begin token on
    return {
        "text": text, "source": pieces(tokenizer, ids),
        "read": pieces(tokenizer, target[0]),
        "right": pieces(tokenizer, answer[1:count + 1]),
        "changes": {word: changed(values, source, target, len(ids), causes)
                    for word, (_, causes) in CHANGES.items()}}


def pieces(tokenizer, ids):
    """Tokens as they stand on chips."""
    special = {tokenizer.bos_id: "begin", tokenizer.eos_id: "end",
               tokenizer.pad_id: "pad"}
    return [special.get(token, shown(piece)) for token, piece
            in zip(map(int, ids), tokenizer.tokens(ids))]


def changed(values, source, target, length, causes):
    """What the model makes of a source with some causes put into it."""
    engine, config = values.engines["numpy"], values.config
    with contextlib.ExitStack() as stack:
        for name in causes:
            stack.enter_context(catalogue.by_name(name).put(engine.NAME))
        model = values.built(engine)
        masks = engine.masks(source, target, config.pad_id)
        steps = engine.forward(model, source, target, masks["source_mask"],
                               masks["target_mask"])
    p = softmax(steps["output"][0])
    best = np.argsort(-p, axis=-1, kind="stable")[:, :BEST]
    return {
        "best": [[[piece, round(float(p[place, token]), 4)] for piece, token
                  in zip(pieces(values.tokenizer, row), row)]
                 for place, row in enumerate(best)],
        "weights": {kind: packed(steps, config, kind, length)
                    for kind in KINDS}}


def packed(steps, config, kind, length):
    """Weights [layers heads queries keys] as bytes: 255 is 1.

    Padding of the source is no query, and one key: the last.
    """
    stack, name, _ = KINDS[kind]
    layers = getattr(config, f"n_{stack}_layers")
    weights = np.stack([
        steps[f"{stack}.layers.{layer}.{name}.weights"][0]
        for layer in range(layers)])
    if kind != "decoder":
        padding = weights[..., length:].sum(-1, keepdims=True)
        weights = np.concatenate([weights[..., :length], padding], axis=-1)
    if kind == "encoder":
        weights = weights[..., :length, :]
    return {"shape": weights.shape, "bytes": base64.b64encode(
        np.round(np.clip(weights, 0, 1) * 255).astype(np.uint8)).decode()}


def shipped():
    """SENTENCES, as a script that a page opened from disk can ask for."""
    values = Shipped()
    return "window.paritySentences={};\n".format(as_json(
        [read(values, text) for text in SENTENCES]))


def as_json(data):
    """Data as JSON in few bytes, in which no // begins a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("//", "/\\/")
