"""What corresponds: pairs of arrays, of steps, and the whole map of names."""

import dataclasses

from parity.matching.rearrangement import SAME

VALUES, SHAPES, NAMES, ORDER, USER, CONVENTION = (
    "values", "shapes", "names", "order", "user", "convention")


@dataclasses.dataclass
class Pair:
    """Two arrays that should be equal.

    Attributes:
        a, b: their names.
        a_layout, b_layout: what is done to each before they are compared.
        by: the reason of the pairing: VALUES, SHAPES, NAMES, ORDER,
            CONVENTION (of frameworks, for a square matrix) or USER.
    """

    a: str
    b: str
    a_layout: str = SAME
    b_layout: str = SAME
    by: str = USER


@dataclasses.dataclass
class StepPair:
    """Two steps that should compute the same.

    Attributes:
        a, b: the steps' paths.
        by: the reason of the pairing.
        inputs, outputs: a Pair for each array of both.
    """

    a: str
    b: str
    by: str
    inputs: list
    outputs: list


@dataclasses.dataclass
class NameMap:
    """Which steps and parameters of two traces correspond.

    Attributes:
        steps: a StepPair each, in a's order.
        parameters: a Pair each, in a's order.
        only_a, only_b: {"steps": [...], "parameters": [...]} without a
            partner; a step that gave no array needs none.
        notes: what looks wrong, a sentence each.
    """

    steps: list
    parameters: list
    only_a: dict = dataclasses.field(default_factory=dict)
    only_b: dict = dataclasses.field(default_factory=dict)
    notes: list = dataclasses.field(default_factory=list)

    def partners(self, a, b):
        """Set ``only_a`` and ``only_b`` for these traces."""
        for side, trace in (("a", a), ("b", b)):
            steps = {getattr(pair, side) for pair in self.steps}
            paths = {getattr(pair, side) for pair in self.parameters}
            twins = {trace.aliases.get(path, path) for path in paths}
            setattr(self, f"only_{side}", {
                "steps": [step.path for step in trace.steps
                          if step.path not in steps and step.outputs],
                "parameters": [path for path in trace.parameters
                               if path not in twins]})
        return self
