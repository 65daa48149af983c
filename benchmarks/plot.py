"""The ratios of a run as a picture."""

import io
import pathlib

from parity_io.files import write_whole
from parity.render.curves import STYLES

#: A colour and a mark for each form; they are told apart in grey too.
FORMS = {"": ("#777777", "D"), "readable": (STYLES[0][0], "o"),
         "fast": (STYLES[1][0], "s")}


def draw(rows, path):
    """Draw every row's ratio to its peer, work by work, with a line at 1.

    Args:
        rows: as ``python -m benchmarks`` prints them.
        path: a .png, .svg or .pdf file, written whole or not at all.
    """
    from matplotlib.figure import Figure
    rows = [row for row in rows
            if row["ratio"] and row["peer"] != row["implementation"]]
    path = pathlib.Path(path)
    figure = Figure(figsize=(9, 1.6 + 0.28 * len(rows)), layout="constrained")
    axis = figure.subplots()
    labels, place, works = [], 0, list(dict.fromkeys(
        row["work"] for row in rows))
    for work in works:
        place += 0.6
        axis.text(0, place - 0.35, work, weight="bold", va="bottom",
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                  transform=axis.get_yaxis_transform())
        place += 0.4
        for row in (row for row in rows if row["work"] == work):
            colour, mark = FORMS[row["form"]]
            axis.plot([1, row["ratio"]], [place] * 2, color=colour, lw=1)
            axis.plot(row["ratio"], place, mark, color=colour)
            axis.annotate(f"{row['ratio']:.2f}", (row["ratio"], place),
                          (7, 0) if row["ratio"] >= 1 else (-7, 0),
                          textcoords="offset points", va="center",
                          ha="left" if row["ratio"] >= 1 else "right",
                          fontsize="small")
            labels.append((place, row["implementation"]))
            place += 1
    axis.axvline(1, color="black", lw=1)
    axis.set_xscale("log")
    ratios = [1, *(row["ratio"] for row in rows)]
    low, high = min(ratios), max(ratios)
    axis.set_xlim(low / 1.25, high * 1.25)
    ticks = [tick for tick in (.1, .2, .5, .7, 1, 1.5, 2, 3, 5, 10, 20, 50)
             if low / 1.25 <= tick <= high * 1.25]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.set_yticks([place for place, _ in labels],
                    [name for _, name in labels])
    axis.set_ylim(place, -0.2)
    axis.set_xlabel("time, as a ratio to the peer's: below 1 is quicker")
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=144, format=path.suffix[1:],
                   metadata={"Software": None} if path.suffix == ".png"
                   else None)
    write_whole(path, buffer.getvalue())
