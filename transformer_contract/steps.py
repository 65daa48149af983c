"""Step markers: the numbered comments that name every value of the model.

A marker stands above the statement it names and reads the same in the
reference and in every port::

    # [4] scores [B H T S]: Q Kᵀ / √d_k  (eq. 1, R12)

The reference's backward pass marks its steps ``# [4'] names: text``.
"""

import ast
import dataclasses
import re
import textwrap

#: One letter an axis, for the whole repository.
AXES = {
    "B": "batch",
    "T": "query (target) length",
    "S": "key (source) length",
    "D": "d_model",
    "H": "heads",
    "G": "heads of keys and values, which groups of the H heads share",
    "K": "d_k, the width of one head",
    "F": "d_ff",
    "V": "vocabulary",
    "N": "the most tokens of a target, its bos included",
    "W": "width of a beam",
    "R": "rows of a beam search, B · W",
    "A": "accumulated batches",
}

_FORWARD = re.compile(r"# \[(\d+)\] (\w+) \[([^\]]*)\]: (.+)$")
_BACKWARD = re.compile(r"# \[(\d+)'\] ([^:]+): (.+)$")
_ANY = re.compile(r"# \[\d+'?\]")


@dataclasses.dataclass(frozen=True)
class MarkedStep:
    """One marker and the statement that it names.

    Attributes:
        owner: the class or function it stands in, such as "FeedForward".
        number: counted from 1 within its owner.
        name: the value's one name, in code, cache, trace, table and page.
        dims: axis letters, such as ("B", "T", "F"); "1" is a kept axis.
        text: the formula and its source.
        line: the marker's line number.
        code: the statement's source lines.
        backward: whether it is a step of a backward pass.
    """

    owner: str
    number: int
    name: str
    dims: tuple
    text: str
    line: int
    code: str
    backward: bool = False

    @property
    def rulings(self):
        """The numbers of the rulings that the text cites."""
        return [int(n) for n in re.findall(r"\bR(\d+)\b", self.text)]


def _owners(tree):
    """Yield (first line, last line, name) of classes and free functions."""
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.lineno, node.end_lineno, node.name


def _statements(tree):
    return sorted(
        (node for node in ast.walk(tree) if isinstance(node, ast.stmt)),
        key=lambda node: (node.lineno, -node.end_lineno),
    )


def read_steps(path):
    """Every step marked in a Python file, in the order of the text.

    Raises:
        ValueError: a comment begins like a marker and is not one, or no
            statement follows it.
    """
    with open(path, encoding="utf-8") as file:
        source = file.read()
    tree, lines = ast.parse(source), source.splitlines()
    owners, statements = list(_owners(tree)), _statements(tree)
    steps = []
    for number, text in enumerate(lines, start=1):
        text = text.strip()
        if not _ANY.match(text):
            continue
        forward, backward = _FORWARD.match(text), _BACKWARD.match(text)
        match = forward or backward
        if not match:
            raise ValueError(f"{path}:{number}: not a step marker: {text}")
        after = next((s for s in statements if s.lineno > number), None)
        if after is None:
            raise ValueError(f"{path}:{number}: no statement follows")
        owner = next((name for first, last, name in owners
                      if first <= number <= last), "")
        steps.append(MarkedStep(
            owner=owner,
            number=int(match[1]),
            name=match[2],
            dims=tuple(match[3].split()) if forward else (),
            text=match[4] if forward else match[3],
            line=number,
            code="\n".join(lines[after.lineno - 1:after.end_lineno]),
            backward=not forward,
        ))
    return steps


def assigned(step):
    """The names that a step's statement assigns."""
    statement = ast.parse(textwrap.dedent(step.code)).body[0]
    return {node.id for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
