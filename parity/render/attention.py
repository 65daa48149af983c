"""What attends to what, as a picture: a panel for each layer and head."""

import functools
import io
import re
import warnings

import numpy as np
from markupsafe import Markup

from parity_io.files import write_whole
from parity import quiet
from parity.render import markup

TITLES = {
    "cross": "Cross-attention: each target token to the source",
    "encoder": "Encoder self-attention: each source token to the source",
    "decoder": "Decoder self-attention: each target token to those before",
}

def figure(weights, rows, columns, title):
    """A matplotlib figure of weights [layers H T S].

    Args:
        rows, columns: T and S labels.
    """
    quiet.start_matplotlib()
    from matplotlib.figure import Figure
    layers, heads = weights.shape[:2]
    width = max(2.2, 0.22 * len(columns) + 0.6)
    height = max(1.8, 0.2 * len(rows) + 0.6)
    picture = Figure(figsize=(width * heads + 1, height * layers + 0.8),
                     layout="constrained", dpi=120)
    axes = picture.subplots(layers, heads, squeeze=False)
    for layer in range(layers):
        for head in range(heads):
            ax = axes[layer, head]
            image = ax.imshow(weights[layer, head], vmin=0, vmax=1,
                              cmap="cividis", aspect="auto")
            ax.set_title(f"layer {layer}, head {head}", fontsize=8)
            ax.set_xticks(range(len(columns)), columns, rotation=90,
                          fontsize=7)
            ax.set_yticks(range(len(rows)), rows, fontsize=7)
            if head:
                ax.set_yticklabels([])
            if layer < layers - 1:
                ax.set_xticklabels([])
    picture.colorbar(image, ax=axes, shrink=0.6, label="weight")
    if title:
        picture.suptitle(title, fontsize=10)
    return picture


@functools.cache
def _drawable():
    """The code points that the pictures' font has."""
    quiet.start_matplotlib()
    from matplotlib import font_manager, ft2font
    font = ft2font.FT2Font(font_manager.findfont(
        font_manager.FontProperties(family=["sans-serif"])))
    return frozenset(font.get_charmap())


def drawable(label):
    """A label, with U+… for every character that the font lacks."""
    return "".join(sign if ord(sign) in _drawable() else f"U+{ord(sign):X}"
                   for sign in label)


def labels(tokenizer, ids):
    """Tokens as labels: a blank can be seen."""
    return [token.replace(" ", "␣").replace("$", r"\$")
            for token in tokenizer.tokens(ids)]


def parts(answer, ids, bos_id, tokenizer):
    """{kind: (row labels, column labels)}; ids are the answer's."""
    source = labels(tokenizer, answer.ids)
    target = labels(tokenizer, [bos_id, *ids])
    return {"cross": (target, source), "encoder": (source, source),
            "decoder": (target, target)}


def save_png(path, weights, axes):
    """Draw the cross-attention into a file."""
    picture = figure(weights["cross"], *(
        list(map(drawable, words)) for words in axes["cross"]),
        TITLES["cross"])
    buffer = io.BytesIO()
    picture.savefig(buffer, format="png")
    write_whole(path, buffer.getvalue())


def save_html(path, title, caption, weights, axes):
    """Write a page of all three, each with its numbers as tables."""
    sections = [{
        "kind": kind, "heading": heading, "rows": axes[kind][0],
        "columns": axes[kind][1],
        "svg": Markup(_svg(weights[kind], axes[kind])),
        "tables": [(*place, weights[kind][place])
                   for place in np.ndindex(weights[kind].shape[:2])]}
        for kind, heading in TITLES.items()]
    template = markup.environment().get_template("report-attention.html")
    write_whole(path, template.render(
        style=Markup(markup.style()), title=title, caption=caption,
        parts=sections))


def _svg(weights, axes):
    """A figure whose labels the browser draws, in a font that has them."""
    quiet.start_matplotlib()
    import matplotlib
    buffer = io.StringIO()
    with (matplotlib.rc_context({"svg.fonttype": "none"}),
          warnings.catch_warnings()):
        warnings.filterwarnings("ignore", message="Glyph")
        figure(weights, *axes, None).savefig(
            buffer, format="svg", metadata={"Date": None})
    return re.sub(r"^.*?(?=<svg)", "", buffer.getvalue(), flags=re.DOTALL)
