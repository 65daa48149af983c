"""The picture of the whole: of the shipped model, of a page's place in it, and
of every dialect."""

from transformer_contract.dialects.table import SYSTEMS
from parity.reading import diagram, drawing
from parity.render import dialects, pictures

#: Files whose owners are no boxes, and the owners that they are about.
ABOUT = {"masks": ("MultiHeadAttention",), "transformer": ("Projection",),
         "linear": ("MultiHeadAttention", "FeedForward")}


def addresses(rows):
    """{owner: the address of its first row} of {file: its rows}."""
    result: dict = {}
    for name, entries in rows.items():
        for row in entries:
            if row.owner and not row.alone:
                result.setdefault(row.owner, f"{name}.html#{row.id}")
    return result


def last_steps(rows):
    """{owner: the name of its last step of the forward pass}."""
    return {row.owner: row.name for entries in rows.values()
            for row in entries if row.kind == "step"}


class Architecture:
    """The shipped model's picture, on the front page and beside each page.

    Args:
        values: a values.Values.
        rows: {file: its PageRows}.
    """

    def __init__(self, values, rows):
        self.rows, self.values = rows, values
        self.engine = values.engines["numpy"]
        self.model = diagram.stacks(values.config, self.engine)
        self.addresses = addresses(rows)

    def outputs(self):
        """Yield (path, step, array) of what leaves each part."""
        last = last_steps(self.rows)
        steps = self.values.dates.steps["numpy"]
        for path, (owner, *_) in diagram.signatures(self.model).items():
            name = f"{path}.{last.get(owner)}"
            if name in steps:
                yield path, name, steps[name]
        yield "memory", "memory", steps["memory"]

    def large(self):
        """The picture whose parts lead to their rows."""
        shapes, words = {}, {}
        for path, name, array in self.outputs():
            shapes[path] = " × ".join(map(str, array.shape))
            summary = pictures.Summary.of(array)
            words[path] = (
                f"On the worked example {name} is {shapes[path]}, mean "
                f"{summary.mean}, spread {summary.spread}, {summary.low} to "
                f"{summary.high}{summary.apart and '; ' + summary.apart}.")
        return drawing.Drawing(
            self.model, self.addresses, shapes, words).svg(
                "The Transformer, drawn from its modules: each part leads to "
                "its lines in all four")

    def plain(self):
        """The picture for a page that lights its parts by itself."""
        return drawing.Drawing(self.model).svg(
            "The model: parts that are wrong are marked")

    def small(self, file=""):
        """The picture without words, the parts of a mirrored file lit."""
        owners = {row.owner for row in self.rows.get(file, ())}
        owners |= set(ABOUT.get(file, ()))
        lit = [box.words for stack in self.model for box in (
            *stack.before, *sum(stack.layer, []), *stack.after)
            if box.owner in owners]
        words = "The model" + (
            f", lit: {', '.join(dict.fromkeys(lit))}" if lit else "")
        return drawing.Drawing(self.model, here=tuple(owners)).svg(
            words, small=True)

    def dialects(self):
        """What the page of other systems shows: each one's picture."""
        return {"dialects": [{
            "name": dialect.name, "source": dialect.source,
            "fields": dialects.fields(dialect.config({})),
            "svg": self.dialect(dialect)} for dialect in SYSTEMS.values()]}

    def dialect(self, dialect):
        """The picture of a dialect's model, beside the paper's."""
        paper = diagram.signatures(diagram.stacks(
            dialects.PAPER, self.engine))
        model = diagram.stacks(dialect.config({}), self.engine)
        return drawing.Drawing(model, self.addresses, others=paper).svg(
            f"{dialect.name}, drawn; what is unlike the paper is marked")
