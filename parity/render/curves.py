"""Learning curves of several runs, on one picture."""

import io
import pathlib

from parity_io.errors import InputError
from parity_io.files import write_whole
from parity import quiet
from parity.runs import training

#: Okabe and Ito's colours, told apart by colour-blind eyes, and line styles
#: that tell them apart without colour.
STYLES = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."),
          ("#CC79A7", ":"), ("#E69F00", (0, (5, 1))), ("#56B4E9", (0, (1, 1))))

#: How much of the loss before counts in its running mean.
MEMORY = 0.95


def smooth(values):
    """The running mean of a noisy curve, free of its start's bias."""
    mean, means = 0.0, []
    for count, value in enumerate(values, start=1):
        mean = MEMORY * mean + (1 - MEMORY) * value
        means.append(mean / (1 - MEMORY**count))
    return means


def read(folders):
    """{a run's name: its curve}, of folders of runs or curve files."""
    curves = {}
    for folder in map(pathlib.Path, folders):
        path = folder / training.CURVE if folder.is_dir() else folder
        name = path.parent.name if path.name == training.CURVE else path.stem
        if name in curves:
            raise InputError(
                f"two runs are called {name!r}; rename one of the folders.")
        curves[name] = training.read_curve(path)
    return curves


def draw(curves, path):
    """Draw the losses, what they differ by, and the share of exact answers.

    Args:
        curves: {name: rows of training.COLUMNS}; the first is what the others
            are held against.
        path: a .png, .svg or .pdf file, written whole or not at all.
    """
    quiet.start_matplotlib()
    from matplotlib.figure import Figure
    path = pathlib.Path(path)
    names = list(curves)
    figure = Figure(figsize=(8, 2.8 * (2 + (len(names) > 1))),
                    layout="constrained")
    axes = figure.subplots(2 + (len(names) > 1), sharex=True)
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("step")
    axes[0].set_ylabel("training loss (running mean)")
    axes[1].set_ylabel("exact on validation")
    axes[1].set_ylim(-0.02, 1.02)
    for (name, rows), (colour, style) in zip(curves.items(), STYLES * 9):
        line = {"color": colour, "linestyle": style, "label": name}
        steps = [row[0] for row in rows]
        axes[0].plot(steps, smooth([row[1] for row in rows]), **line)
        axes[1].plot(*zip(*[(row[0], row[5]) for row in rows
                            if row[5] is not None] or [(0, 0)]),
                     marker="o", markersize=3, **line)
        if name != names[0]:
            first = {row[0]: row[1] for row in curves[names[0]]}
            apart = [(row[0], abs(row[1] - first[row[0]])
                      / (abs(first[row[0]]) or 1.0))
                     for row in rows if row[0] in first]
            where, gaps = zip(*apart or [(0, 0.0)])
            axes[2].plot(where, smooth(gaps), **line)
    if len(names) > 1:
        axes[2].set_yscale("log")
        axes[2].set_ylabel(f"loss apart from {names[0]}'s,\n"
                           "relative (running mean)")
    axes[0].legend(frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=144, format=path.suffix[1:] or "png",
                   metadata={"Software": None} if path.suffix == ".png"
                   else None)
    write_whole(path, buffer.getvalue())


def write_table(curves, path):
    """Write all runs' losses and shares of exact answers as one table."""
    columns = {(name, what): {row[0]: row[place] for row in rows}
               for name, rows in curves.items()
               for what, place in (("loss", 1), ("exact", 5))}
    steps = sorted({row[0] for rows in curves.values() for row in rows})
    lines = ["\t".join(["step", *(f"{name}.{what}" for name, what in columns)])]
    for step in steps:
        values = [column.get(step) for column in columns.values()]
        lines.append("\t".join([str(step), *(
            "" if value is None else f"{value:.9g}" for value in values)]))
    write_whole(path, "\n".join(lines) + "\n")
