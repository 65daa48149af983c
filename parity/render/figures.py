"""The look of a lesson's pictures: plain axes, few colours, labels to read."""

import numpy as np

from parity import quiet
from parity.render.curves import STYLES

#: Okabe and Ito's colours, told apart by colour-blind eyes.
COLOURS = tuple(colour for colour, _ in STYLES)


def subplots(columns=1, height=3.0, rows=1, **more):
    """A Figure 8 inches wide and its axes, without boxes around them."""
    quiet.start_matplotlib()
    from matplotlib.figure import Figure
    figure = Figure(figsize=(8, height), layout="constrained")
    axes = figure.subplots(rows, columns, **more)
    for axis in np.ravel(axes):
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def heat(axis, array, title="", rows=None, columns=None, numbers=False,
         low=None, high=None, colours="cividis"):
    """Draw a matrix, its rows and columns labelled; return the image.

    Args:
        axis: of matplotlib.
        array: [rows, columns].
        rows, columns: a label each, or None.
        numbers: whether each number is written in its cell, to two digits.
        low, high: the range of the colours, by default that of the array.
        colours: the name of a colour map.
    """
    array = np.asarray(array)
    image = axis.imshow(array, cmap=colours, vmin=low, vmax=high,
                        aspect="auto", interpolation="nearest")
    axis.set_title(title, fontsize=11)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0, labelsize=9)
    for labels, place in ((rows, axis.set_yticks), (columns, axis.set_xticks)):
        if labels is not None:
            place(range(len(labels)), labels)
    if numbers:
        middle = (image.norm.vmin + image.norm.vmax) / 2
        for (row, column), value in np.ndenumerate(array):
            axis.text(column, row, f"{value:.2f}".replace("-", "−"),
                      ha="center", va="center", fontsize=9,
                      color="white" if value < middle else "black")
    return image
