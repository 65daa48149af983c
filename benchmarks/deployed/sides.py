"""Compare what two functions make, as ``parity compare`` does."""

from benchmarks.deployed.case import CaseAnswer
from parity.causes.deciding import Side, decide
from parity.comparison.compare import compare
from parity.exported import opening
from parity.causes.foreign import finish
from parity.tracing.trace import trace


def side(made):
    """The Trace and the Side of (model, inputs, keywords)."""
    model, inputs, keywords = made
    if exported := opening.opened(model, inputs, keywords):
        return exported.trace(), exported.side
    return trace(model, *inputs, **keywords), Side(model, inputs, keywords)


def asked(a, b, file=None):
    """What is told of two makers; or of a's and a file of a model."""
    first, one = side(a())
    if file is None:
        second, two = side(b())
    else:
        exported = opening.read(b(), one.inputs, one.keywords)
        second, two = exported.trace(), exported.side
    comparison = compare(first, second)
    decide(comparison, first, second, one, two)
    finish(comparison, one, two)
    told = comparison.explanations
    return CaseAnswer(comparison.status, [each.text() for each in told
                                    if each.identified],
                [f"{each.place_b} {each.called_b} {each.b}" if each.identified
                 or each.b != "(model)" else each.a for each in told])
