"""The pairs: which there are, and what the right answer to each is."""

import dataclasses
import importlib
from collections.abc import Callable

#: The files with pairs, in the order of the table.
TOPICS = ("torch_optimisers", "torch_losses", "torch_groups", "nnx_optax",
          "keras_compiled", "across", "rewritten")


PAIRS: dict = {}


@dataclasses.dataclass(frozen=True)
class TrainingPair:
    """Two trainings.

    Attributes:
        name, topic: of the function, and of its file.
        make: () -> (make of a, make of b).
        causes: of a fault the causes that are right, together; () of a sound
            pair.
        quantity, step: of a fault what differs first.
        steps: how many steps are taken.
        narrow: whether float32 inside may be told of a sound pair.
    """

    name: str
    topic: str
    make: Callable
    causes: tuple = ()
    quantity: str = ""
    step: int = 1
    steps: int = 3
    narrow: bool = False

    @property
    def sound(self):
        """Whether nothing may be said."""
        return not self.causes


def fault(*causes, at, step=1, steps=3):
    """A pair of which b has one fault, or several."""
    def kept(function):
        _keep(function, causes=causes, quantity=at, step=step, steps=steps)
        return function
    return kept


def sound(steps=3, narrow=False):
    """A pair of which nothing may be said."""
    def kept(function):
        _keep(function, steps=steps, narrow=narrow)
        return function
    return kept


def _keep(function, **more):
    topic = function.__module__.rpartition(".")[2]
    PAIRS[topic, function.__name__] = TrainingPair(
        function.__name__, topic, function, **more)


def pairs():
    """Every pair, topic by topic."""
    for topic in TOPICS:
        importlib.import_module(f"benchmarks.training_steps.{topic}")
    return [*PAIRS.values()]
