"""What is said of a comparison of which one side is compiled or exported."""

import numpy as np

from parity.causes.deciding import ROUGH
from parity.causes.explanation import UNIDENTIFIED, Explanation
from parity.conversion.activations import least_distance
from parity.exported import onnx_file
from parity.numerics.comparator import DIVERGENCE
from parity.numerics.words import number
from parity.operations.align import Alignment
from parity.tracing.trace import is_float, trace

#: Where outputs are farther apart, float32's rounding is not the reason.
GROSS = 1e-3

#: How far apart the same inner outputs in float32 may be.
INNER = 1e-5


def finish(comparison, one, two):
    """Add to a comparison what its exported sides are known to do.

    Args:
        comparison: a Comparison that was decided.
        one, two: the Side or ExportedSide of each.
    """
    for side, each in (("a", one), ("b", two)):
        foreign = getattr(each, "foreign", None)
        if foreign is None:
            continue
        for note in foreign.late:
            comparison.notes.append(f"{side}: {note}")
            for explanation in comparison.explanations:
                explanation.known.append(f"In {side} {note}")
        if foreign.inner and side == "b" and not comparison.outputs_agree:
            comparison.explanations = [_first_lost(foreign, one)]
        if foreign.proto is not None:
            if side == "b" and len(comparison.explanations) == 1:
                _at_first(comparison.explanations[0], one, two)
            _name_nodes(comparison, side, foreign)
            if not comparison.outputs_agree and not comparison.explanations:
                _runtime(comparison, side, foreign)


def _first_lost(foreign, one):
    """An Explanation with the first step of a that an exported model, of which
    the inner outputs are seen, computes nowhere."""
    last, lost = "", "(model)"
    made = [*_computed(foreign, trace(
        one.model, *one.inputs, **one.keywords))]
    right = [array for step, _, names in made if names and None not in names
             for array in step.inputs.values()]
    for step, arrays, names in made:
        if None in names and not all(any(
                read.shape == array.shape and np.array_equal(read, array)
                for read in right) for array in arrays):
            lost = step.path
            break  # another, that is fused with what reads it, is right
        if names and None not in names:
            last = (f"The last that it has is {step.path}'s, by operation "
                    f"{names[-1]}.")
    return Explanation(
        lost, "(model)", UNIDENTIFIED, known=[last] if last else [],
        sentence=f"What {lost} of a makes is the first that the "
                 f"{foreign.kind} computes nowhere.")


def _computed(foreign, run):
    """Yield (step, its arrays, which inner output of an exported model each
    is, or None)."""
    for step in sorted(run.steps, key=lambda step: step.ended):
        arrays = [array for array in step.outputs.values()
                  if is_float(array) and array.size > 1]
        yield step, arrays, [next((
            name for name, inner in foreign.inner if least_distance(
                inner, array.astype(inner.dtype)) <= INNER), None)
            for array in arrays]


def _at_first(explanation, one, two):
    """Put the place of a single cause at the first node that differs: what is
    told may be the one that reads it."""
    a, b = (each.runner().run(exact=True) for each in (one, two))
    lost = Alignment(a, b, max(ROUGH, a.blur, b.blur)).lost["b"]
    place = next((each.place for each in b.operations
                  if lost & {*each.results} and not lost & {*each.operands}),
                 None)
    _, _, line = explanation.place_b.rpartition(":")
    if place is not None and line.isdigit() and place.line < int(line):
        explanation.place_b = str(place)
        explanation.called_b = str(place.caller or "")


def _name_nodes(comparison, side, foreign):
    """Say which node of a file a place is."""
    nodes = foreign.proto.graph.node
    for each in comparison.explanations:
        _, _, line = getattr(each, f"place_{side}").rpartition(":")
        if line.isdigit() and 0 < int(line) <= len(nodes):
            each.known.append(in_words(nodes[int(line) - 1], int(line)))


def in_words(node, place):
    """A node in a sentence."""
    import onnx
    attributes = []
    for each in node.attribute:
        value = onnx.helper.get_attribute_value(each)
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        if isinstance(value, float):
            value = f"{value:.6g}"
        if isinstance(value, (str, int, list)):
            attributes.append(f"{each.name} {value}")
    words = f" with {', '.join(attributes)}" if attributes else ""
    name = f" {node.name!r}" if node.name else ""
    return f"Node {place} of the file is {node.op_type}{name}{words}."


def _runtime(comparison, side, foreign):
    """Where the graph is right, and what its runtime computes is not."""
    worst = max((row.error or 0 for row in comparison.rows), default=0)
    if worst <= GROSS:
        return
    found = onnx_file.runtime_differs(foreign, "the model")
    if found is None:
        return
    place, node, error = found
    comparison.decided = DIVERGENCE
    comparison.corrected = ""
    each = Explanation(
        "(model)", "(model)", "the runtime", "", "",
        f"ONNX Runtime computes node {place} otherwise than ONNX's standard: "
        f"it is {number(error)} off.",
        proof="Computed as the standard has it, the graph gives a's outputs.")
    each.known.append(in_words(node, place))
    comparison.explanations = [each]
