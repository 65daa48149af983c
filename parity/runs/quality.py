"""How good a shipped model is on strings that it was not trained on."""

import dataclasses

import numpy as np

from transformer_contract.generation import GenerationConfig
from parity.check import golden
from parity.runs import tasks, translation

#: The ends of the ranges of probability in which answers are counted.
EDGES = (0.0, 0.25, 0.5, 0.75, 0.85, 0.9, 1.0)

#: How many strings are answered at once.
AT_ONCE = 125


@dataclasses.dataclass(frozen=True)
class AskedString:
    """A string of the test set, and what the model makes of it.

    Attributes:
        source, target: what is asked, and what is right.
        group: its kind or language.
        answer: the first port's.
        least: the probability of the answer's least likely token.
    """

    source: str
    target: str
    group: str
    answer: str
    least: float

    @property
    def right(self):
        """Whether the answer is exact."""
        return self.answer == self.target


@dataclasses.dataclass(frozen=True)
class Quality:
    """What was measured of a model.

    Attributes:
        task: its name.
        asked: an AskedString for each string of the test set.
        unseen: the same of texts that have no sure answer: names that were
            never trained on, or what does not say which date it means.
        unseen_words: what those are, in words.
        border: the probability below which an answer is doubtful.
        ports: whose answers were compared.
        not_checked: ports that are not installed.
        difference: the first difference of two ports, in words, or "".
        worst: the largest relative error of a score.
    """

    task: str
    asked: list
    unseen: list
    unseen_words: str
    border: float
    ports: list
    not_checked: list
    difference: str
    worst: float

    @property
    def groups(self):
        """{group: (exact, of)}."""
        counts: dict[str, tuple[int, int]] = {}
        for one in self.asked:
            exact, of = counts.get(one.group, (0, 0))
            counts[one.group] = exact + one.right, of + 1
        return counts

    @property
    def ranges(self):
        """[(from, to, exact, of)] by the least likely token's probability."""
        rows = []
        for low, high in zip(EDGES, EDGES[1:]):
            there = [one.right for one in self.asked
                     if low < one.least <= high]
            rows.append((low, high, sum(there), len(there)))
        return rows

    def doubtful(self, asked):
        """How many right and how many wrong answers are called doubtful."""
        there = [one.right for one in asked if one.least < self.border]
        return sum(there), len(there) - sum(there)

    def as_json(self):
        """Plain data."""
        return {
            "task": self.task, "groups": self.groups, "ranges": self.ranges,
            "border": self.border, "ports": self.ports,
            "not_checked": self.not_checked,
            "difference": self.difference or None, "error": self.worst,
            "wrong": [dataclasses.asdict(one) for one in self.asked
                      if not one.right],
            "unseen": [dataclasses.asdict(one) for one in self.unseen]}


def measure(name, port_names, each=None, on_part=lambda text: None):
    """Ask a shipped model the strings of its test set.

    Args:
        name: a task whose model is shipped.
        port_names: who answers; the first one's answers are counted.
        each: how many strings of each group and form; None for all.
        on_part: called with a text before each part, for progress.

    Returns:
        A Quality.

    Raises:
        InputError: there is no such model, or the first port is not here.
    """
    task = tasks.task(name)
    model = translation.Model.load(
        golden.sound(f"{name}.safetensors"),
        golden.sound(f"{name}.tokenizer.json"))
    translators, absent = translation.translators(port_names, model)
    pairs = task.module.pairs("test", each or task.module.TESTED)
    unseen = task.module.unseen()
    settings = GenerationConfig(
        bos_id=model.tokenizer.bos_id, eos_id=model.tokenizer.eos_id,
        max_tokens=task.longest)
    questions = [translation.read(model, source, repr(source))
                 for source, _, _ in (*pairs, *unseen)]
    answers = {}
    for translator in translators:
        on_part(f"{name} in {translator.port}")
        answers[translator.port] = translator.answer(
            questions, settings, AT_ONCE)
    (_, first), *others = answers.items()
    for start in range(0, len(first), AT_ONCE):
        translators[0].weigh(first[start:start + AT_ONCE], settings)
    worst, difference = translation.agree(first, dict(others))
    asked = [AskedString(source, target, group, answer.best,
                         np.nan if answer.least is None else answer.least)
             for (source, target, group), answer
             in zip((*pairs, *unseen), first)]
    return Quality(name, asked[:len(pairs)], asked[len(pairs):],
                   task.module.UNSEEN, model.doubtful_below,
                   [t.port for t in translators], absent, difference, worst)
