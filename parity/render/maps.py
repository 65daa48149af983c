"""Attention of real strings, drawn: a head a figure, tokens on both axes."""

import numpy as np

from parity import ports
from parity.numerics.comparator import compare
from parity.render import pictures, worded

#: How an attention is called, and what its queries and keys are.
KINDS = (
    ("encoder", "self_attention", "Encoder self-attention", "source", "source"),
    ("decoder", "self_attention", "Decoder self-attention", "target", "target"),
    ("decoder", "cross_attention", "Decoder cross-attention", "target",
     "source"),
)


def figures(run, tokenizer, row, source, target, number):
    """Everything about one string of a run.

    Args:
        run: a values.ModelRun.
        row: which row of its batch.
        source, target: the texts.
        number: the string's own, for anchors.
    """
    ids = {"source": run.batch.source[row], "target": run.batch.target[row]}
    plain_ids = {name: array[array != run.config.pad_id]
                 for name, array in ids.items()}
    tokens = {name: [shown(t) for t in tokenizer.tokens(array)]
              for name, array in plain_ids.items()}
    groups = []
    for stack, kind, words, queries, keys in KINDS:
        layers = getattr(run.config, f"n_{stack}_layers")
        for layer in range(layers):
            name = f"{stack}.layers.{layer}.{kind}.weights"
            groups.append({
                "name": name, "words": f"{words}, layer {layer + 1}",
                "of": f"{stack}-{kind} layer-{layer + 1}",
                "id": f"s{number}-{stack}-{layer}-{kind}",
                "queries": queries, "keys": keys,
                "heads": heads(run, row, name, tokens[queries],
                               tokens[keys])})
    return {"source": source, "target": target, "groups": groups,
            "tokens": tokens, "id": f"s{number}"}


def choices(config):
    """{what can be chosen: {a word in a map's ``data-of``: what it is}}."""
    layers = max(config.n_encoder_layers, config.n_decoder_layers)
    return {
        "attention": {f"{stack}-{kind}": words
                      for stack, kind, words, _, _ in KINDS},
        "layer": {f"layer-{i + 1}": i + 1 for i in range(layers)},
        "head": {f"head-{i + 1}": i + 1 for i in range(config.n_heads)}}


def shown(token):
    """A token as it stands on an axis: a space is seen."""
    return token.replace(" ", "␣") or "·"


def heads(run, row, name, queries, keys):
    """A figure for each head, and how far the ports' differ from it."""
    part = np.s_[row, :, :len(queries), :len(keys)]
    truth = run.steps["numpy"][name][part]
    panels = []
    for head, weights in enumerate(truth):
        largest = 0.0
        columns: dict = {}
        for column in ports.usual_ports():
            if column not in run.steps:
                columns[column] = None
                continue
            theirs = run.steps[column][name][part][head]
            gap = float(np.abs(theirs - weights).max())
            largest = max(largest, gap)
            columns[column] = {
                "src": pictures.png(theirs, 0, 1),
                "gap": pictures.number(gap, 2),
                "verdict": compare(theirs, weights, 1e-12).verdict}
        top = int(weights.mean(axis=0).argmax())
        panels.append({
            "head": head + 1, "svg": worded.map_of(
                weights, queries, keys, f"{name}, head {head + 1}: "
                f"{len(queries)} queries by {len(keys)} keys", shares=True),
            "ports": columns, "largest": pictures.number(largest, 2),
            "width": len(keys), "height": len(queries),
            "most": (keys[top], pictures.percent(
                float(weights.mean(axis=0)[top])))})
    return panels
