"""Attention of real strings, drawn: a head a figure, tokens on both axes."""

import numpy as np
from markupsafe import Markup, escape

from parity import ports
from parity.numerics.comparator import compare
from parity.render import pictures

#: A cell's size in the reference's picture, and room for tokens, in pixels.
CELL, ROOM = 13, 42

#: How an attention is called, and what its queries and keys are.
KINDS = (
    ("encoder", "self_attention", "Encoder", "source", "source"),
    ("decoder", "self_attention", "Decoder, of itself", "target", "target"),
    ("decoder", "cross_attention", "Decoder, of the source", "target",
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
        columns, largest = {}, 0.0
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
            "head": head + 1, "svg": drawing(weights, queries, keys, name,
                                             head),
            "ports": columns, "largest": pictures.number(largest, 2),
            "width": len(keys), "height": len(queries),
            "most": (keys[top], pictures.percent(
                float(weights.mean(axis=0)[top])))})
    return panels


def drawing(weights, queries, keys, name, head):
    """A head's weights as SVG: a row a query, a column a key."""
    tall, wide = weights.shape
    width, height = ROOM + wide * CELL, ROOM + tall * CELL
    parts = [Markup(
        '<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        'aria-label="{words}">').format(w=width, h=height, words=(
            f"{name}, head {head + 1}: {tall} queries by {wide} keys"))]
    parts.append(Markup(
        '<image href="{}" x="{}" y="{}" width="{}" height="{}" '
        'preserveAspectRatio="none" style="image-rendering:pixelated"{}/>'
    ).format(pictures.png(weights, 0, 1), ROOM, ROOM, wide * CELL,
             tall * CELL, pictures.touchable(
                 weights, names=[queries, keys])))
    for i, token in enumerate(queries):
        parts.append(Markup(
            '<text x="{}" y="{}" text-anchor="end">{}</text>').format(
                ROOM - 4, ROOM + (i + .75) * CELL, escape(token[:6])))
    for i, token in enumerate(keys):
        x, y = ROOM + (i + .75) * CELL, ROOM - 4
        parts.append(Markup(
            '<text x="{x}" y="{y}" transform="rotate(-90 {x} {y})">{t}</text>'
        ).format(x=x, y=y, t=escape(token[:6])))
    parts.append(Markup("</svg>"))
    return Markup("").join(parts)


