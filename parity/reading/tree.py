"""A beam search as a tree: what was kept, what was dropped, and what won.

The search is the reference's own. While it runs, its two choices, ``top`` and
``best``, are listened to: of each step the candidates with their scores, those
that go on and those that have ended.
"""

import dataclasses

import numpy as np
from markupsafe import Markup

from parity_io.errors import plural
from transformer_contract.generation import GenerationConfig
from parity import ports
from parity.check.run import LONGEST
from parity.render import pictures

#: How many hypotheses the beam keeps.
WIDTH = 4

#: A box's size, and the room between boxes, in pixels.
WIDE, TALL, BESIDE, BELOW, ABOVE = 100, 36, 30, 8, 22

#: Room for the begin token.
BEGIN = 34

#: What becomes of a hypothesis. LOST has ended, and STOPPED was kept to the end
#: of the search, but others were better.
KEPT, DROPPED, ENDED, LOST, STOPPED = (
    "kept", "dropped", "ended", "ended, beaten", "kept, beaten")


@dataclasses.dataclass
class Candidate:
    """A hypothesis, grown by one token.

    Attributes:
        step, rank: in which step, from 1, and its place among its candidates.
        parent: the Candidate that it goes on from; None after the begin.
        token: the token added.
        score: log p of all its tokens.
        fate: KEPT, DROPPED, ENDED, LOST or STOPPED.
        place: its place among the answers, from 1; 0 if it is none.
        divided: the score that it stands with among the answers, or None.
        won: whether the best answer goes through it.
        row: where it is drawn.
    """

    step: int
    rank: int
    parent: "Candidate | None"
    token: int
    score: float
    fate: str = DROPPED
    place: int = 0
    divided: float | None = None
    won: bool = False
    row: int = 0

    @property
    def tokens(self):
        """All its tokens after the begin."""
        before = self.parent.tokens if self.parent else []
        return [*before, self.token]


@dataclasses.dataclass
class SearchTree:
    """A beam search of one source, as it went.

    Attributes:
        steps: a list for each step: its Candidates, the best first.
        answers: the Candidates that the search answers, the best first.
    """

    steps: list
    answers: list


def listening(kind):
    """A kind of beam search that also lists what it chose, as ``heard``."""

    class Listening(kind):
        """Lists what ``top`` and ``best`` answer, but not top within best."""

        def __init__(self, *args):
            super().__init__(*args)
            self.heard, self.inside = [], False

        def top(self, *args):
            choice = super().top(*args)
            if not self.inside:
                self.heard.append(choice)
            return choice

        def best(self, *args):
            self.inside = True
            choice = super().best(*args)
            self.inside = False
            self.heard.append(choice)
            return choice

    return Listening


def search(engine, model, source, settings):
    """The SearchTree of a source [1 S] by a beam, in the reference.

    Args:
        engine, model: the reference's engine and a Transformer of it.
        source: int [1 S].
        settings: a GenerationConfig whose method is "beam".
    """
    beam = listening(ports.module_of(
        "numpy", "search").Beam)(model, source, settings, None)
    tokens, scores = beam.run()
    vocab = model.config.target_vocab
    living, steps, ended = [None], [], []
    for step, (top, finished, alive) in enumerate(
            zip(*(beam.heard[i::3] for i in range(3))), start=1):
        candidates = []
        for rank, (score, place) in enumerate(
                zip(top[0][0], top[1][0]), start=1):
            if np.isfinite(score):
                parent = living[place // vocab]
                candidates.append(Candidate(
                    step, rank, parent, int(place % vocab), float(score)))
        answer_ids = [clipped(row[1:], settings) for row, score
                      in zip(finished[1][0], finished[0][0])
                      if np.isfinite(score)]
        for one in candidates:
            if one.token == settings.eos_id:
                one.fate = ENDED if one.tokens in answer_ids else LOST
                ended.append(one)
        living = [candidates[place] for score, place
                  in zip(alive[0][0], alive[1][0]) if np.isfinite(score)]
        if step == settings.max_tokens:  # where all end
            living = [one for one in candidates
                      if one.token != settings.eos_id][:settings.beam]
        for one in living:
            one.fate = KEPT
        steps.append(candidates)
    answers = []
    for place, (score, row) in enumerate(zip(scores[0], tokens[0]), start=1):
        ids = clipped(row[1:], settings)
        one = next((one for one in (*ended, *living)
                    if one and one.tokens == ids), None)
        if np.isfinite(score) and one:
            one.place, one.divided = place, float(score)
            answers.append(one)
    for one in (*ended, *filter(None, living)):
        if not one.place:
            one.fate = LOST if one.fate in (ENDED, LOST) else STOPPED
    one = answers[0] if answers else None
    while one:
        one.won, one = True, one.parent
    return SearchTree(steps, answers)


def clipped(row, settings):
    """A row's tokens up to its end, the end included."""
    ids = [int(token) for token in row]
    if settings.eos_id in ids:
        return ids[:ids.index(settings.eos_id) + 1]
    return ids


def tree_of(values, text):
    """What a page shows of the search for the answer to a text."""
    tokenizer = values.tokenizer
    engine, model = values.engines["numpy"], values.models["numpy"]
    ids = tokenizer.encode(text)
    source = tokenizer.pad([ids], length=max(1, len(ids)))
    settings = GenerationConfig(
        bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
        max_tokens=LONGEST)
    greedy = engine.generate(model, source, settings)
    settings = settings.replace(method="beam", beam=WIDTH)
    result = search(engine, model, source, settings)
    texts = {id(one): tokenizer.decode(one.tokens)
             for step in result.steps for one in step}
    best = result.answers[0]
    return {
        "svg": drawing(result, tokenizer), "width": WIDTH,
        "greedy": {"text": tokenizer.decode(greedy["tokens"][0, 0]),
                   "score": short(greedy["scores"][0, 0])},
        "best": {"text": texts[id(best)], "score": short(best.score)},
        "ended": sum(one.token == settings.eos_id
                     for step in result.steps for one in step),
        "answers": [(texts[id(one)], short(one.score), short(one.divided),
                     one.fate == KEPT) for one in result.answers],
        "rows": [(one.step, one.rank, texts[id(one)].replace(" ", "␣"),
                  short(one.score), words(one))
                 for step in result.steps for one in step],
        "count": sum(map(len, result.steps))}


def short(score):
    """A score for reading."""
    return pictures.number(round(float(score), 3))


def words(one):
    """What became of a Candidate."""
    parts = [one.fate]
    if one.place:
        parts.append(f"answer {one.place}")
    elif one.won:
        parts.append("on the way to answer 1")
    return ", ".join(parts)


def drawing(search_tree, tokenizer):
    """A SearchTree as SVG: a column a step, a box a candidate."""
    ranks = max(len(step) for step in search_tree.steps)
    width = left_of(len(search_tree.steps)) + WIDE + 4
    height = ABOVE + ranks * (TALL + BELOW)
    parts = [Markup(
        '<svg class="tree" viewBox="0 0 {0} {1}" width="{0}" height="{1}" '
        'role="img" aria-label="{2}">').format(
            width, height, "A tree of "
            f"{plural(len(search_tree.steps), 'step')}; the table "
            "below has all of it")]
    lines, boxes = [], []
    for number, step in enumerate(search_tree.steps, start=1):
        parts.append(Markup('<text class="step" x="{}" y="13">step {}</text>')
                     .format(left_of(number), number))
        for row, one in enumerate(step):
            one.row = row
            lines.append(line(one))
            boxes.append(box(one, shown(tokenizer, one.token)))
    parts.append(Markup(
        '<text class="piece" x="{}" y="{}">{}</text>').format(
            2, ABOVE + TALL / 2 + 4,
            tokenizer.tokens([tokenizer.bos_id])[0]))
    lines.sort(key=lambda entry: entry[0])  # the winner's way on top
    return (Markup("").join(parts) + Markup("").join(
        entry[1] for entry in lines) + Markup("").join(boxes)
        + Markup("</svg>"))


def shown(tokenizer, token):
    """A token in a box: a blank is seen."""
    return tokenizer.tokens([token])[0].replace(" ", "␣") or "·"


def left_of(step):
    """Where the boxes of a step begin."""
    return BEGIN + BESIDE + (step - 1) * (WIDE + BESIDE)


def line(one):
    """(order, SVG) of the way from a Candidate's parent to it."""
    x, y = left_of(one.step), ABOVE + one.row * (TALL + BELOW) + TALL / 2
    above = one.parent.row if one.parent else 0
    from_y = ABOVE + above * (TALL + BELOW) + TALL / 2
    kind = "won" if one.won else (
        "kept" if one.fate in (KEPT, ENDED) else "lost")
    curve = Markup(
        '<path class="{0}" d="M{1} {2:.0f}C{3} {2:.0f} {3} {4:.0f} {5} '
        '{4:.0f}"/>').format(kind, x - BESIDE, from_y, x - BESIDE // 2, y, x)
    return ("lost", "kept", "won").index(kind), curve


def box(one, piece):
    """The SVG of a Candidate."""
    x, y = left_of(one.step), ABOVE + one.row * (TALL + BELOW)
    kind = "won" if one.won else (
        "kept" if one.fate in (KEPT, ENDED) else "lost")
    says = f"answer {one.place}" if one.place else {
        LOST: "beaten", STOPPED: "beaten"}.get(one.fate, one.fate)
    return Markup(
        '<rect class="{0}" x="{1}" y="{2}" width="{3}" height="{4}" rx="3"/>'
        '<text class="piece" x="{5}" y="{6}">{7}</text>'
        '<text x="{8}" y="{6}" text-anchor="end">{9}</text>'
        '<text x="{5}" y="{10}">log p {11}</text>').format(
            kind, x, y, WIDE, TALL, x + 6, y + 15, piece[:6], x + WIDE - 6,
            says, y + 30, short(one.score))
