"""GenerationConfig, the one description of a search for a target."""

import dataclasses
import math
import numbers

from contract.errors import InputError, one_of

CHOICES = {
    "method": ("greedy", "beam", "sample"),
    "length_rule": ("paper", "hf_true", "hf_false", "hf_never", "none"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    """Every number and choice of a search. Frozen, checked when it is made.

    Attributes:
        method: "greedy", "beam" or "sample".
        bos_id, eos_id: the ids that a target begins and ends with.
        max_tokens: the most tokens after the bos, the eos included.
        beam: W, how many hypotheses are kept; 1 is greedy search.
        length_rule: what a hypothesis' sum of log-probabilities is divided by,
            L being its tokens after the bos, and when a row is done: "paper",
            ((5 + L) / 6)^α, once no hypothesis alive can be better at any
            length (Wu et al. 2016, eq. 14); "hf_true", "hf_false" and
            "hf_never", L^α, as Hugging Face's ``early_stopping``: at the W-th
            that has finished, once none can be better at its present length,
            or at any length; "none", 1.
        alpha: α.
        temperature: the divisor of logits before sampling.
        top_k: sample from the k most likely tokens; 0 from all.
        top_p: sample from the most likely that together reach p; 1 from all.
        seed: from which samples follow.
        cached: whether keys and values are kept from token to token.
    """

    method: str = "greedy"
    bos_id: int = 1
    eos_id: int = 2
    max_tokens: int = 64
    beam: int = 4
    length_rule: str = "paper"
    alpha: float = 0.6
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    cached: bool = True

    def __post_init__(self):
        for field, allowed in CHOICES.items():
            one_of(getattr(self, field), allowed, field)
        for field, least in (("bos_id", 0), ("eos_id", 0), ("top_k", 0),
                             ("max_tokens", 1), ("beam", 1), ("seed", 0)):
            value = getattr(self, field)
            whole = isinstance(value, numbers.Integral)
            if isinstance(value, bool) or not whole or not (
                    least <= value < 2**63):
                raise InputError(
                    f"{field} is {value!r}; choose a whole number of at least "
                    f"{least} and below 2⁶³.")
        for field, fits, words in (
                ("alpha", lambda x: 0 <= x < math.inf, "at least 0"),
                ("temperature", lambda x: 0 < x < math.inf, "above 0"),
                ("top_p", lambda x: 0 < x <= 1, "above 0 and at most 1")):
            value = getattr(self, field)
            real = isinstance(value, numbers.Real)
            if isinstance(value, bool) or not real or not fits(value):
                raise InputError(
                    f"{field} is {value!r}; choose a number {words}.")

    def replace(self, **changes):
        """A copy with some fields changed, checked again."""
        return dataclasses.replace(self, **changes)

    def check(self, config):
        """Raise InputError where a model of ``config`` cannot do it."""
        if self.max_tokens > config.max_length:
            raise InputError(
                f"max_tokens is {self.max_tokens}, but the position table has "
                f"{config.max_length} rows; choose at most that.")
        for field in ("bos_id", "eos_id"):
            value = getattr(self, field)
            if value >= config.target_vocab or value == config.pad_id:
                raise InputError(
                    f"{field} {value} is padding or not in the vocabulary; "
                    f"choose another id below {config.target_vocab}.")
        return self

    @property
    def width(self):
        """How many hypotheses a row has: W of a beam, else 1."""
        return self.beam if self.method == "beam" else 1

    def penalty(self, length):
        """What the log-probability of L tokens is divided by."""
        match self.length_rule:
            case "paper":
                return ((5 + length) / 6)**self.alpha
            case "none":
                return 1.0
            case _:
                return float(length)**self.alpha

    def bound(self, length):
        """The penalty that gives a hypothesis alive its best score."""
        present = self.length_rule == "hf_false"
        return self.penalty(length if present else self.max_tokens)
