"""What goes wrong where a router chooses experts, of which our model has
none."""

from parity.causes.cause import OTHER, Cause
from parity.causes.formulas.experts import EXCHANGED

FAMILY = "mixture of experts", "router of experts"
WEIGHTS, SHARED = "experts' weights", "shared expert"


def of(name, sentence, setting, value, **more):
    """The Cause of another setting."""
    return Cause(name, "experts", sentence, FAMILY, {setting: value},
                 not_put="our model has no experts", **more)


CAUSES = (
    of("another number of experts for each row", "The router's k largest, with "
       "another k.", "top-k", OTHER),
    of("experts' weights not made to sum 1", "The softmax is over all experts, "
       "and what the chosen have of it is taken as it is.", WEIGHTS,
       "softmax over all experts"),
    of("experts' weights made to sum 1", "The softmax is over the chosen "
       "alone, which is that over all, divided by the chosen ones' sum.",
       WEIGHTS, "softmax over the chosen",
       beside={WEIGHTS: "softmax over all experts"}),
    of("experts' weights by σ", "Each logit by itself, and no softmax.",
       WEIGHTS, ("sigmoid of each", "sigmoid of each, to sum 1")),
    of("experts' logits for their weights", "No softmax.", WEIGHTS,
       "the logits themselves"),
    of("experts' weights all alike", "The mean of what the chosen give.",
       WEIGHTS, "all alike"),
    of("the smallest logits chosen", "An order the other way.", "chosen",
       "the smallest"),
    of("the largest logit left out", "Places are counted from 1.", "chosen",
       "without the first"),
    of("experts weighed before they compute", "Their input is multiplied, not "
       "their output.", "weights applied", "to what they are given"),
    of("experts in another order", "The router's numbers are of other "
       "experts.", "experts", EXCHANGED),
    of("an expert's gate exchanged", "The activation is on the other half.",
       "gate and up", "swapped"),
    of("a shared expert left out", "Only the chosen are added.", SHARED,
       "left out"),
    of("a shared expert without its gate", "It is not multiplied by σ of its "
       "own gate.", SHARED, "added", beside={SHARED: "through its gate"}),
)
