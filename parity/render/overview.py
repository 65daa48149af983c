"""The check on a screen or two: a line a model and a line a component.

A cell is the largest error that a port made in any step of that line, in one
dtype. A model's line is printed as soon as the model has been compared, the
components' lines at the end, since every model has its share in them.
"""

from rich.cells import cell_len
from rich.text import Text

from parity.check.run import FULL_SIZE_CASE
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.words import listed

#: The widths of a name, of a number of steps, of an error, and of the space
#: between two dtypes. With three ports and two dtypes a line has 80 columns.
NAME, STEPS, ERROR, SPACE = 22, 5, 7, 1

#: The verdict of a line.
VERDICTS = {MATCH: "match", DIVERGENCE: "DIVERGES"}


class Overview:
    """Prints the rows of a check, a line a model and a line a component.

    Args:
        out: a rich Console.
        ports, dtypes, devices: what is compared, by name.
        form: of the ports.
    """

    def __init__(self, out, ports, dtypes, devices, form="readable"):
        self.out, self.ports, self.devices = out, ports, devices
        self.form = form
        self.name = NAME + (len(devices) > 1) * 5
        blocks = len(dtypes) * (SPACE + len(ports) * ERROR)
        wide = self.name + STEPS + blocks + 9 <= max(out.width, 80)
        # Dtypes stand side by side, or in lines of their own.
        self.blocks = [tuple(dtypes)] if wide else [(d,) for d in dtypes]
        self.name += 0 if wide else 9
        self.rows, self.model = {}, None
        self.components = {}

    def begin(self, presets):
        """Say what is compared, and what the numbers are."""
        many = f"{len(presets)} presets" if len(presets) > 1 else presets[0]
        self.out.print(
            f"Comparing {listed(self.ports)} with NumPy, step by step: "
            f"{many}." if self.form == "readable" else
            f"Comparing the {self.form} form of {listed(self.ports)} with the "
            f"NumPy reference: {many}.", soft_wrap=True)
        self.out.print(
            "A number is the largest relative error of any step.")
        self._head("model")

    def add(self, rows):
        """Take rows that were compared; print the models that are complete."""
        for row in rows:
            model = model_of(row)
            if model != self.model:
                self._flush()
                self.model = model
            self.rows.setdefault(row.device, []).append(row)
            self.components.setdefault(
                (family_of(row), row.device), []).append(row)

    def end(self, report):
        """Print the last model, the components and what came nearest."""
        self._flush()
        self._head("component")
        for (component, device), rows in self.components.items():
            self._lines(component, device, rows)
        nearest = report.closest()
        if nearest and not report.divergences():
            row, port, difference = nearest[0]
            self.out.print()
            self.out.print(
                f"Nearest to its limit: {port}, {row.preset}, {row.case}, "
                f"step {row.name} ({row.dtype}): {difference.error:.1e} of "
                f"{difference.limit:.1e}.")

    def _flush(self):
        for device, rows in self.rows.items():
            if self.model:
                self._lines(self.model, device, rows)
        self.rows = {}

    def _head(self, first):
        """The two lines above a table."""
        self.out.print()
        above = Text(" " * (self.name + STEPS), style="dim")
        below = Text(first.ljust(self.name) + "steps".rjust(STEPS),
                     style="bold")
        for dtype in self.blocks[0]:
            width = SPACE + len(self.ports) * ERROR
            words = dtype if len(self.blocks) == 1 else "error"
            above.append(words.rjust(SPACE + ERROR).ljust(width))
            below.append(" " * SPACE + "".join(
                port.rjust(ERROR) for port in self.ports))
        if len(self.blocks) == 1:
            self._print(above)
        self._print(below)

    def _lines(self, name, device, rows):
        if len(self.devices) > 1:
            name = f"{name} {device}"
        for dtypes in self.blocks:
            group = [row for row in rows if row.dtype in dtypes]
            if group:
                words = (name if len(self.blocks) == 1
                         else f"{name} {dtypes[0]}")
                self._line(words, dtypes, group)

    def _line(self, name, dtypes, rows):
        line = Text(padded(name, self.name))
        line.append(str(len(rows)).rjust(STEPS), style="dim")
        for dtype in dtypes:
            line.append(" " * SPACE)
            for port in self.ports:
                line.append_text(self._cell(dtype, port, rows))
        wrong = any(row.verdict == DIVERGENCE for row in rows)
        line.append(" ")
        line.append(VERDICTS[DIVERGENCE if wrong else MATCH],
                    style="bold red" if wrong else "green")
        self._print(line)

    def _cell(self, dtype, port, rows):
        differences = [row.differences[port] for row in rows
                       if row.dtype == dtype and port in row.differences]
        if not differences:
            return Text("–".rjust(ERROR), style="dim")
        if any(one.verdict == DIVERGENCE for one in differences):
            words = f"✗{short(differences)}"
            return Text(words.rjust(ERROR), style="bold red")
        return Text(short(differences).rjust(ERROR))

    def _print(self, text):
        self.out.print(text, soft_wrap=True)


def short(differences):
    """The largest error of Differences, in one digit; ? if one has none."""
    errors = [one.error for one in differences]
    if None in errors:
        return "?"
    return f"{max(errors):.0e}" if any(errors) else "0"


def model_of(row):
    """The name of a row's model; none for what no model has."""
    if row.case == FULL_SIZE_CASE:
        return f"{row.preset}, full"
    return "" if row.preset == "every model" else row.preset


def family_of(row):
    """A row's component, without what its inputs were."""
    return row.component.split(",")[0]


def padded(name, width):
    """A name in so many cells, cut if it is longer."""
    if cell_len(name) > width:
        return name[:width - 2] + "… "
    return name.ljust(width)
