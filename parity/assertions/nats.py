"""Two models' log-probabilities of the same tokens, in nats.

A log-probability has no meaning without its contract: of which logits it is,
divided by which temperature, over which tokens, and of which places. Two that
differ may only have been computed under two contracts.
"""

import dataclasses
from typing import Any

import numpy as np

from parity_io.errors import (
    InputError, plural, is_real, is_whole, one_of)
from parity.assertions.arrays import as_array
from parity.numerics.softmax import log_softmax


@dataclasses.dataclass(frozen=True)
class Probabilities:
    """What a log-probability is of.

    Attributes:
        temperature: by what logits are divided.
        top_k: how many tokens may come; 0 for all.
        top_p: with so much of the probability, the most likely; 1 for all.
            The probability is the softmax over all tokens, before top_k;
            Hugging Face's generate takes that over the top_k.
        renormalised: whether p is over those tokens alone, so that it adds up
            to 1, or over all.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    renormalised: bool = True

    def __post_init__(self):
        if not (is_real(self.temperature) and 0 < self.temperature < np.inf
                and is_whole(self.top_k) and self.top_k >= 0
                and is_real(self.top_p) and 0 < self.top_p <= 1
                and isinstance(self.renormalised, bool)):
            raise InputError(
                f"{vars(self)} is no way to choose; give a temperature above "
                "0, a whole top_k of 0 or more, a top_p above 0 and at most 1, "
                "and renormalised as True or False.")

    def log_p(self, logits):
        """log p [… V] of logits [… V], float64; -∞ for what may not come."""
        logits = np.asarray(logits, np.float64)
        log_p = log_softmax(logits / self.temperature)
        kept = np.ones(log_p.shape, bool)
        order = np.argsort(-log_p, -1, kind="stable")
        rank = np.argsort(order, -1, kind="stable")
        if self.top_k:
            kept &= rank < self.top_k
        if self.top_p < 1:
            p = np.exp(np.take_along_axis(log_p, order, -1))
            before = np.take_along_axis(p.cumsum(-1) - p, rank, -1)
            kept &= before < self.top_p
        log_p = np.where(kept, log_p, -np.inf)
        return log_softmax(log_p) if self.renormalised else log_p

    def __str__(self):
        """The contract in words."""
        words = ["logits" if self.temperature == 1
                 else f"logits / {self.temperature:g}"]
        if self.top_k:
            words.append(f"the {self.top_k} most likely")
        if self.top_p < 1:
            words.append(f"the most likely with p {self.top_p:g}"
                         + (" of all tokens'" if self.top_k else ""))
        if len(words) > 1:
            words.append("normalised again" if self.renormalised
                         else "normalised over all tokens")
        return ", ".join(words)


@dataclasses.dataclass(frozen=True)
class Nats:
    """Two models' log-probabilities of some tokens.

    Attributes:
        contract: the Probabilities.
        a, b: log p of each token [B T], 0 where it is not counted.
        counted: bool [B T].
        error: the largest difference of one token's, in nats; ∞ where one
            model excludes a token that the other allows.
        place: its row and place.
    """

    contract: Probabilities
    a: np.ndarray
    b: np.ndarray
    counted: np.ndarray
    error: float
    place: tuple

    def __str__(self):
        """The sums and the largest difference, in words."""
        row, place = self.place
        neither = int((np.isinf(self.a) & np.isinf(self.b)).sum())
        return (f"log p of {plural(self.counted.sum(), 'token')} "
                f"({self.contract}): "
                f"{self.a.sum():.6g} nats in a, {self.b.sum():.6g} in b; they "
                f"differ most at row {row}, place {place}, by "
                f"{self.error:.2g} nats." + (
                    f" Of {plural(neither, 'token')} both say that "
                    f"{'they' if neither > 1 else 'it'} cannot come."
                    if neither else ""))


def nats(logits_a: Any, logits_b: Any, ids: Any, counted: Any = None,
         **contract: Any) -> "Nats":
    """Compare two models' log-probabilities of the same tokens.

    Args:
        logits_a, logits_b: [B T V], arrays of any framework.
        ids: int [B T]; ids[b, t] is the token of which logits [b, t] say how
            likely it is, so the next one of what the model reads.
        counted: bool [B T], which places count; by default all.
        contract: fields of Probabilities.

    Returns:
        Nats.

    Raises:
        InputError: shapes differ, an id is none of V, nothing counts, a
            place that counts has a logit that is NaN or ∞, or all are -∞, or
            the contract has no such field or value.
    """
    for name in contract:
        one_of(name, [field.name for field in
                      dataclasses.fields(Probabilities)], "part of a contract")
    rule = Probabilities(**contract)
    one, two, ids = (_array(each, name) for name, each in (
        ("logits_a", logits_a), ("logits_b", logits_b), ("ids", ids)))
    if one.ndim != 3 or one.shape != two.shape or ids.shape != one.shape[:2]:
        raise InputError(
            f"logits of shape {list(one.shape)} and {list(two.shape)} and ids "
            f"of {list(ids.shape)} do not belong together; give [B T V] twice "
            "and [B T].")
    counted = np.ones(ids.shape, bool) if counted is None else (
        _array(counted, "counted"))
    if counted.shape != ids.shape:
        raise InputError(
            f"counted has shape {list(counted.shape)} and ids "
            f"{list(ids.shape)}; say of each id whether it counts.")
    if not ((counted == 0) | (counted == 1)).all():
        raise InputError(
            "counted has values beside 0 and 1; give true or false for each "
            "id.")
    counted = counted.astype(bool)
    if not counted.any():
        raise InputError(
            "no place counts; let one of counted [B T] be true.")
    if ids.dtype.kind not in "iu" or not (
            (ids >= 0) & (ids < one.shape[-1]))[counted].all():
        raise InputError(
            f"an id is none of {one.shape[-1]}; leave out what is padding.")
    one, two = (np.where(counted[..., None], each, 0) for each in (one, two))
    for name, logits in (("a", one), ("b", two)):
        holes = np.argwhere(~np.isfinite(logits.max(-1)))
        if len(holes):
            row, place = holes[0]
            raise InputError(
                f"the largest logit of {name} at row {row}, place {place} is "
                f"{logits[row, place].max()}, so that no token has a "
                "probability there; find what made it.")
    at = np.where(counted, ids, 0)[..., None]
    in_a, in_b = (np.where(counted, np.take_along_axis(
        rule.log_p(logits), at, -1)[..., 0], 0.0) for logits in (one, two))
    with np.errstate(invalid="ignore"):
        gap = np.where(in_a == in_b, 0.0, np.abs(in_a - in_b))
    worst = np.unravel_index(int(gap.argmax()), gap.shape)
    return Nats(rule, in_a, in_b, counted, float(gap[worst]),
                tuple(map(int, worst)))


def _array(value, name):
    """An array, a framework's too, or lists of numbers, as NumPy's."""
    if isinstance(value, (list, tuple)):
        try:
            value = np.asarray(value)
        except ValueError as error:
            raise InputError(
                f"{name} has rows of several lengths; give an array.") from (
                    error)
    return as_array(value, name)[0]
