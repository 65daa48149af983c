"""The page of the four training runs: losses, and where float32 shows."""

import base64

from parity.check import golden
from parity.render import curves, pictures

#: The distances of a loss from the reference's, relative, whose first step is
#: named. Rounding of the loss alone is below the first: ε is 1.2e-7.
APART = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)

#: The picture of the whole run has a point for so many steps.
EVERY = 10


def of_curves(site):
    """The learning curves that ship with the models, if they do."""
    first, second = (picture_of(name) for name in golden.MODELS)
    shown = {"picture": first, "second": second,
             "file": f"weights/{golden.TRAINED}.png",
             "config": site.values.config.as_dict(), "data": None,
             "apart": ()}
    table = golden.FOLDER / f"{golden.TRAINED}.curves.tsv"
    if table.is_file():
        losses, exact = read(golden.sound(table.name))
        shown |= {"data": data(losses), "apart": apart(losses),
                  "exact": exact}
    return shown


def picture_of(name):
    """The picture of a model's curves as an address, or "" without one."""
    if not (golden.FOLDER / f"{name}.png").is_file():
        return ""
    return "data:image/png;base64," + base64.b64encode(
        golden.sound(f"{name}.png").read_bytes()).decode()


def read(path):
    """({column: losses, a step each}, {column: its last share exact})."""
    head, *rows = (line.split("\t") for line in
                   path.read_text(encoding="utf-8").splitlines())
    at = {name: place for place, name in enumerate(head)}
    columns = [name.removesuffix(".loss") for name in head
               if name.endswith(".loss")]
    losses = {column: [float(row[at[f"{column}.loss"]]) for row in rows]
              for column in columns}
    exact = {column: [row[at[f"{column}.exact"]] for row in rows
                      if row[at[f"{column}.exact"]]][-1]
             for column in columns}
    return losses, {column: pictures.percent(float(share))
                    for column, share in exact.items()}


def gaps(losses):
    """{port: how far each of its losses is from the reference's, relative}."""
    (_, first), *others = losses.items()
    return {column: [abs(theirs - ours) / abs(ours)
                     for theirs, ours in zip(values, first)]
            for column, values in others}


def data(losses):
    """What the page's script draws."""
    return {
        "columns": list(losses), "losses": list(losses.values()),
        "every": EVERY, "smooth": [
            [round(value, 5) for value in curves.smooth(values)[::EVERY]]
            for values in losses.values()]}


def apart(losses):
    """[(a distance, {port: the first step beyond it, or None})]."""
    distances = gaps(losses)
    return [(limit, {
        column: next((step for step, gap in enumerate(values, start=1)
                      if gap > limit), None)
        for column, values in distances.items()}) for limit in APART]
