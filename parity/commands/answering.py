"""Texts answered by a model in one port or in all, and what is printed."""

import sys

import typer
from rich.text import Text

from parity_io.errors import InputError, plural, visible
from parity_io.files import write_json
from parity import ports
from parity.commands.shell import DIVERGED, USAGE
from parity.numerics.words import number
from parity.render import terminal


def names_of(port):
    """The ports that answer, of the option's word."""
    return ports.chosen([port], reference=True)


def respond(texts, port, model, settings, dtype, device="cpu", nbest=1,
            batch=32, strict=False, attention=None, json_file=None):
    """Answer texts by a model, as settings say, and print what is found.

    Args:
        model: a translation.Model.
        settings: a GenerationConfig that it can do.
        port, ...: the options of ``translate``.
    """
    from parity.runs import translation
    if settings.width > model.config.target_vocab:
        raise InputError(
            f"the beam is {settings.beam} wide, but the vocabulary has "
            f"{model.config.target_vocab} tokens; choose at most that.")
    translators, absent = translation.translators(
        names_of(port), model, dtype, device)
    for one in translators:
        for line in ports.unsupported_in_fast(
                one.engine, model.config, "generation", settings):
            print(line, file=sys.stderr)
    to_stdout = str(json_file) == "-"
    output = Answers(translators, absent, settings, nbest, dtype,
                     quiet=to_stdout, strict=strict)
    first = 0
    for lines in chunks(texts, batch):
        output.add(lines, first, batch)
        first += len(lines)
    output.finish()
    if attention:
        output.draw(attention)
    if to_stdout:
        import json
        print(json.dumps(output.as_json(), ensure_ascii=False, indent=1))
    elif json_file is not None:
        write_json(json_file, output.as_json())
    if output.status:
        raise typer.Exit(output.status)


def chunks(texts, batch):
    """Lists of (what it is, text or bytes); standard input line by line."""
    chunk, number = [], 0
    for text in texts:
        if text != "-":
            number += 1
            chunk.append((f"text {number}", text))
            continue
        if chunk:
            yield chunk
            chunk = []
        if sys.stdin is None:
            raise InputError("standard input is closed; give it, or a text.")
        for count, line in enumerate(lines(sys.stdin.buffer), start=1):
            yield [(f"line {count}", line)]
    for start in range(0, len(chunk), batch):
        yield chunk[start:start + batch]


def lines(stream):
    """A stream's lines, without their ends.

    Of one that is longer than any text only as much is kept as says so, and
    given before its rest is read: it may never end.
    """
    from parity.runs.translation import LONGEST
    most = LONGEST + len(b".\r\n")
    while line := stream.readline(most):
        yield line.rstrip(b"\r\n")
        while len(line) == most and not line.endswith(b"\n"):
            line = stream.readline(most)


class Answers:
    """Answers, printed as they come, and what is told at the end."""

    def __init__(self, translators, absent, settings, nbest, dtype, quiet,
                 strict):
        self.strict = strict
        self.translators, self.absent = translators, absent
        self.settings, self.nbest, self.dtype = settings, nbest, dtype
        self.quiet = quiet
        self.model = translators[0].model
        self.answers: dict = {t.port: [] for t in translators}
        self.out = terminal.console()
        self.status = 0

    def add(self, lines, first, most):
        """Answer a few texts and print what is found."""
        from parity.runs import translation
        questions = [translation.read(self.model, text, what)
                     for what, text in lines]
        by_port = {t.port: t.answer(questions, self.settings, most, first)
                   for t in self.translators}
        first_answers = next(iter(by_port.values()))
        if self.model.doubtful_below is not None:
            self.translators[0].weigh(first_answers, self.settings)
        for name, answers in by_port.items():
            self.answers[name] += answers
        for i, answer in enumerate(questions):
            if answer.problem:
                print(f"parity: {answer.problem}", file=sys.stderr)
                self.status = USAGE
            self._note_cut(lines[i][0], first_answers[i])
            self._note_doubt(lines[i][0], first_answers[i])
            if self.refused(first_answers[i]):
                self.status = USAGE
            if self.quiet:
                continue
            if self.refused(first_answers[i]):
                print()
                continue
            if len(by_port) > 1:
                self._table(answer, {n: a[i] for n, a in by_port.items()})
            else:
                self._plain(next(iter(by_port.values()))[i])
        sys.stdout.flush()

    def _note_cut(self, what, answer):
        """Say that an answer has no end, and what to do."""
        if not self.cut(answer):
            return
        most, config = self.settings.max_tokens, self.model.config
        if most < config.max_length:
            more = "raise --max-tokens."
        elif config.positions == "learned":
            more = "the model can give no more, so give a shorter text."
        else:
            more = (f"its config has {most} positions: raise them there, or "
                    "give a shorter text.")
        print(f"parity: the answer to {what} has no end after "
              f"{plural(most, 'token')} and is cut there; {more}"
              + self._kept(), file=sys.stderr)

    def _kept(self):
        """What becomes of an answer that is no good, in words."""
        return " It is not given." if self.strict else ""

    def cut(self, answer):
        """Whether an answer has no end."""
        from parity.runs import translation
        return answer.tokens is not None and not translation.ends(
            answer.tokens[0], self.settings)

    def refused(self, answer):
        """Whether an answer is not to be given."""
        return self.strict and (self.cut(answer) or self.doubtful(answer))

    def doubtful(self, answer):
        """Whether the model is in doubt about its answer, or it cannot be."""
        from parity.runs import doubt
        return doubt.is_impossible_date(answer.best) or (
            answer.least is not None
            and answer.least < self.model.doubtful_below)

    def _note_doubt(self, what, answer):
        """Say that an answer is doubtful, or that there was no text."""
        from parity.runs import doubt
        if answer.ids is not None and not len(answer.ids):
            print(f"parity: {what} is empty, and so is its answer.",
                  file=sys.stderr)
        if not self.doubtful(answer):
            return
        impossible = doubt.is_impossible_date(answer.best)
        why = ("the calendar has no such day" if impossible
               else f"one of its tokens has a probability of "
               f"{answer.least:.2f}; of 200 right answers one has a token "
               f"below {self.model.doubtful_below:.2f}")
        print(f"parity: the answer to {what} is doubtful: {why}."
              + self._kept(), file=sys.stderr)

    def _plain(self, answer):
        if self.nbest == 1:
            print(visible(answer.best))
            return
        for text, score in list(zip(answer.texts, answer.scores))[:self.nbest]:
            print(f"{score:.6f}\t{visible(text)}")

    def _table(self, question, answers):
        if question.problem:
            return
        table = terminal.plain_table(
            "port", "answer", terminal.numbers("score"),
            title=Text(visible(question.text)), title_justify="left")
        for name, answer in answers.items():
            for i, text in enumerate(answer.texts[:self.nbest] or ("",)):
                score = ("" if answer.scores is None
                         else f"{answer.scores[i]:.15g}")
                table.add_row(
                    name if i == 0 else "", Text(visible(text)), score)
        self.out.print(table)

    def finish(self):
        """Say whether ports agree, if there are several."""
        self.verdict, self.worst = None, None
        if len(self.answers) + len(self.absent) == 1:
            return
        from parity.runs import translation
        (name, first), *others = self.answers.items()
        self.worst, difference = translation.agree(
            first, dict(others), self.dtype)
        compared = sum(answer.tokens is not None for answer in first)
        if difference:
            self.status, self.verdict = DIVERGED, "divergence"
            words = f"DIVERGENCE: {difference}"
        elif not compared or not others:
            self.verdict, words = "nothing compared", "nothing was compared"
        else:
            self.verdict = "match"
            words = (f"match: tokens identical, scores within "
                     f"{number(self.worst)} in "
                     f"{', '.join(self.answers)}")
        if not self.quiet:
            for absent in self.absent:
                self.out.print(f"not checked: {absent} is not installed")
            self.out.print(words)

    def draw(self, path):
        """Draw the first answer's attention, and how far ports differ."""
        from parity.render import attention as picture
        from parity.runs import translation
        first = self.translators[0].port
        answer = next(
            (a for a in self.answers[first]
             if a.tokens is not None and not self.refused(a)), None)
        if answer is None:
            raise InputError("there is no answer to draw; give another text.")
        weights = {t.port: t.attention(answer, self.settings)
                   for t in self.translators}
        ours = weights[first]
        caption = f"Computed by {first} in {self.dtype}."
        if len(weights) > 1:
            worst = max(abs(theirs[kind] - ours[kind]).max()
                        for theirs in weights.values() for kind in ours)
            caption = (f"Computed in {self.dtype} by {', '.join(weights)}; the "
                       f"largest difference of any weight is {worst:.1e}.")
        axes = picture.parts(
            answer, translation.decoder_ids(
                answer, self.settings)[1:],
            self.settings.bos_id, self.model.tokenizer)
        if path.suffix == ".png":
            picture.save_png(path, ours, axes)
        else:
            picture.save_html(path, f"{answer.text} → {answer.best}", caption,
                              ours, axes)

    def as_json(self):
        """Every answer as plain data."""
        def plain(answer, refused):
            if answer.tokens is None or refused:
                return {"hypotheses": []}
            return {"hypotheses": [
                {"text": text, "score": float(score),
                 "tokens": [int(i) for i in row]}
                for text, score, row in zip(
                    answer.texts, answer.scores, answer.tokens)]}
        first = next(iter(self.answers.values()))
        return {
            "schema": 1, "verdict": self.verdict, "error": self.worst,
            "not_checked": self.absent,
            "answers": [
                {"text": answer.text, "problem": answer.problem or None,
                 "least_probability": answer.least,
                 "doubtful": self.doubtful(answer),
                 "cut": self.cut(answer),
                 "ports": {name: plain(answers[i], self.refused(answer))
                           for name, answers in self.answers.items()}}
                for i, answer in enumerate(first)]}
