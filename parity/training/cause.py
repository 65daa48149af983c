"""Why two training runs part: one cause."""

import dataclasses


@dataclasses.dataclass
class TrainingCause:
    """Why two runs differ.

    Attributes:
        what: in a few words, or "" if it is not identified.
        step, quantity: where it is first seen.
        where: the parameters, or "".
        in_a, in_b: what each has.
        topics: what the line of source is about; see places.TELLING.
        proof: what was put into B, and what then came out; "" if nothing.
        write: what to write in B.
        evidence: what else is known, a sentence each.
        rounding: whether it is float32's rounding alone.
        places: the lines in A and in B, where they are known; else () and the
            topics tell.
        groups: of A and of B, (which of the optimiser's groups has it, how
            many there are, the setting's name there), or None; else ().
    """

    what: str
    step: int
    quantity: str
    where: str = ""
    in_a: str = ""
    in_b: str = ""
    topics: tuple = ("optimiser",)
    proof: str = ""
    write: str = ""
    evidence: tuple = ()
    rounding: bool = False
    places: tuple = ()
    groups: tuple = ()
