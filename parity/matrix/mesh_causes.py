"""What goes wrong on a mesh, and the numbers that each mistake gives.

A mistake is named if what it gives is what was computed, to rounding; the
reference computes it, from single shards or from weights put together wrongly.
"""

import dataclasses
import functools
import typing
from unittest import mock

import numpy as np

from transformer_contract.sharding import divided_axis
from parity.numerics.comparator import DIVERGENCE, compare
from parity.numerics.tolerances import FLOAT64_GRADIENT

#: How near a mistake's numbers must be: as near as right ones.
NEAR = FLOAT64_GRADIENT

#: The second linear map of each pair: its sums are added up over devices.
SUMMED = "attention.output.kernel", "feed_forward.outer.kernel"
ADDED = "attention.output.bias", "feed_forward.outer.bias"

#: What names a mistake in training, where its numbers are compared at a step.
TWICE = "tied weights are updated twice: each of their gradients is a step"


@dataclasses.dataclass(frozen=True)
class Shards:
    """A batch on a mesh, and the reference's model of it.

    Attributes:
        engine, model: the reference's.
        inputs: source, target, both masks and labels.
        key: what dropout draws by, or None.
        count: how many shards there are.
    """

    engine: typing.Any
    model: typing.Any
    inputs: tuple
    key: np.ndarray | None
    count: int

    def split(self, array):
        """Its shards."""
        return np.split(array, self.count)

    def gradients(self, shard, masks_of=None, labels_of=None):
        """The gradient of a shard's own mean loss, by weight, in one vector.

        Args:
            masks_of, labels_of: the shards whose dropout masks and labels it
                uses; by default its own.
        """
        source, target = self.inputs[:2]
        drawn = {name: self.split(mask)[shard if masks_of is None else masks_of]
                 for name, mask in self.engine.drawn(
                     self.model, source, target, self.key).items()}
        *inputs, labels = self.inputs
        labels = self.split(labels)[shard if labels_of is None else labels_of]
        with mock.patch.object(self.engine, "drawn", lambda *given: drawn):
            _, gradients = self.engine.gradients(
                self.model, *(self.split(x)[shard] for x in inputs), labels)
        return np.concatenate([
            gradients[name].ravel() for name in self.weights])

    @functools.cached_property
    def weights(self):
        """The names of the weights."""
        return list(self.engine.export(self.model))

    @functools.cached_property
    def each(self):
        """The gradient of each shard's own mean loss: [count ·]."""
        return np.stack([self.gradients(i) for i in range(self.count)])

    @functools.cached_property
    def tokens(self):
        """How many tokens each shard has to predict: [count]."""
        pad = self.model.config.pad_id
        return np.array([(labels != pad).sum()
                         for labels in self.split(self.inputs[-1])])

    @functools.cached_property
    def shares(self):
        """Each shard's share of the tokens to predict: [count]."""
        return self.tokens / self.tokens.sum()


def mean_of_means(shards):
    """Every shard counts the same, however many tokens it has."""
    return shards.each.mean(axis=0)


def sum_of_means(shards):
    """Shards are added up, and no share is taken."""
    return shards.each.sum(axis=0)


def not_reduced(shards):
    """The first shard's own, as it goes into the sum over devices."""
    return shards.count * shards.shares[0] * shards.each[0]


def padding_counted(shards):
    """Divided by all positions, those of padding included."""
    positions = shards.inputs[-1].size
    return shards.tokens @ shards.each / positions


def equal_dropout(shards):
    """Every shard drops what the first one does."""
    return shards.shares @ np.stack([
        shards.gradients(i, masks_of=0) for i in range(shards.count)])


def labels_exchanged(shards):
    """Each shard's outputs are held against another's labels."""
    last = shards.count - 1
    return shards.shares @ np.stack([
        shards.gradients(last - i, labels_of=i, masks_of=i)
        for i in range(shards.count)])


#: What is said of a mistake -> the gradients that it gives.
IN_GRADIENTS = {
    "a mean of means: every shard counts the same, and has not as many tokens":
        mean_of_means,
    "a sum of means: the shards' losses are added up as if each were a share":
        sum_of_means,
    "a missing all-reduce: each device keeps the gradient of its own shard":
        not_reduced,
    "a loss averaged before padding is counted: divided by all positions":
        padding_counted,
    "equal dropout on all shards: each drops what the first one does":
        equal_dropout,
    "rows of shards exchanged: inputs of one, labels of another":
        labels_exchanged,
}


def cause_in_gradients(gradients, shards):
    """Which mistake gives these gradients, {name: array}; "" if none does."""
    if shards.count == 1:
        return ""
    ours = np.concatenate([gradients[name].ravel() for name in shards.weights])
    for words, formula in IN_GRADIENTS.items():
        if compare(ours, formula(shards), NEAR).verdict != DIVERGENCE:
            return words
    return ""


def cause_in_output(output, right, weights, steps_of, axes):
    """Which mistake gives an output [B T V]; "" if none does.

    Args:
        right: the truth, of the same shape.
        weights: {name: array}, whole.
        steps_of: weights -> every step of the reference, by name.
        axes: {"data": devices, "model": devices}.
    """
    def is_it(other):
        return compare(output, other, NEAR).verdict != DIVERGENCE

    if axes["data"] > 1 and is_it(np.concatenate(
            np.split(right, axes["data"])[::-1])):
        return "rows of shards exchanged: the answers are in another order"
    count = axes["model"]
    if count == 1:
        return ""
    for shared in (1, 1 / count):
        if is_it(not_summed(weights, steps_of, count, shared)):
            return ("a missing all-reduce: each device keeps its own part of "
                    "a sum")
    for name, array in weights.items():
        if divided_axis(name) is not None and is_it(steps_of(
                weights | {name: exchanged(name, array, count)})["output"]):
            return f"shards of {name} exchanged"
    return ""


def not_summed(weights, steps_of, count, shared):
    """An output of which each device computed its columns from its own sums.

    Args:
        shared: the part of a bias that each device adds.
    """
    def part(i, name, array):
        if name.endswith(SUMMED):
            return np.concatenate([
                rows if j == i else np.zeros_like(rows)
                for j, rows in enumerate(np.split(array, count))])
        return array * shared if name.endswith(ADDED) else array

    each = [steps_of({name: part(i, name, array)
                      for name, array in weights.items()})
            for i in range(count)]
    logits = np.concatenate([
        np.split(steps["projection.logits"], count, -1)[i]
        for i, steps in enumerate(each)], -1)
    if np.array_equal(each[0]["output"], each[0]["projection.logits"]):
        return logits
    return logits - np.logaddexp.reduce(logits, -1, keepdims=True)


def exchanged(name, array, count):
    """A weight whose shards lie in the reverse order."""
    axis = divided_axis(name)
    return np.concatenate(np.split(array, count, axis)[::-1], axis)


def cause_in_step(found, right, before, tied):
    """Which mistake gives the weights after a step; "" if none does.

    Args:
        found, right, before: {name: array}: computed, true, before the step.
        tied: the name of the table that is used more than once, or "".
    """
    if tied and compare(found[tied], 2 * right[tied] - before[tied],
                        NEAR).verdict != DIVERGENCE:
        return TWICE
    return ""
