"""Marian's own programs, in C++ and float32, run on files in a folder."""

import contextlib
import pathlib
import re
import shutil
import subprocess

import numpy as np

from transformer_contract.dialects.table import SYSTEMS
from parity_io.errors import InputError

MARIAN = SYSTEMS["marian"]

#: The programs, which Marian's own build makes, and by which a model is
#: trained, scores given targets and searches.
PROGRAMS = TRAIN, SCORE, SEARCH = "marian", "marian-scorer", "marian-decoder"

#: What each is told: one thread, and few megabytes to begin with.
USUAL = ("--cpu-threads", "1", "--workspace", "64")

#: The words that a vocabulary must have: the end of a text, whose id is END,
#: and what is in no word, whose id is our padding's.
REQUIRED, END = ("</s>", "<unk>"), 0

#: The most steps of a search are this times a source's tokens, rounded up.
FACTOR = "--max-length-factor"

#: Half a unit of the last digit of a printed loss, of a sum of log p and of a
#: word's.
DIGITS = {"loss": 5e-9, "sums": 5e-7, "words": 5e-6}


def missing():
    """In a sentence which program cannot be found, or ""."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    if not lacking:
        return ""
    return (f"marian needs the programs {', '.join(PROGRAMS)}, and PATH has "
            f"no {lacking[0]}: build them from github.com/marian-nmt/"
            "marian-dev and put their folder on PATH")


@contextlib.contextmanager
def understood(program):
    """Within this, what a program printed is read."""
    try:
        yield
    except (ValueError, IndexError, TypeError) as problem:
        raise InputError(
            f"{program} printed what Marian's does not ({problem}); see that "
            "PATH has Marian's own.") from problem


class Marian:
    """One model, in the files that Marian reads.

    Args:
        folder: of the files; it is made.
        config: ours.
        weights: ours, by canonical name; they are rounded to float32.
    """

    def __init__(self, folder, config, weights):
        self.folder, self.config = pathlib.Path(folder), config
        self.folder.mkdir()
        self.model = self.folder / "model.npz"
        described = MARIAN.describe(config) | {"transformer-dropout": 0.0}
        arrays = MARIAN.inside(described) | {
            name: np.ascontiguousarray(array, np.float32)
            for name, array in MARIAN.write(weights, config).items()}
        np.savez(self.model, **arrays)
        self.vocabularies = []
        for number, size in enumerate((
                config.source_vocab, config.target_vocab)):
            words = [f"w{i}" for i in range(size)]
            words[END], words[config.pad_id] = REQUIRED
            path = self.folder / f"vocabulary{number}.txt"
            path.write_text("\n".join(words) + "\n", encoding="utf-8")
            self.vocabularies += [str(path)]

    def _text(self, name, rows):
        """The path of a file of texts, whose words are ids without an end."""
        path = self.folder / name
        path.write_text("".join(
            " ".join(f"w{i}" for i in row) + "\n" for row in rows),
            encoding="utf-8")
        return str(path)

    def _run(self, program, *words):
        """What a program prints, and its log; an InputError quotes that."""
        done = subprocess.run(
            [program, *USUAL, "--vocabs", *self.vocabularies, *words],
            capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            wrong = [line for line in done.stderr.splitlines()
                     if "Error: " in line]
            raise InputError(
                f"{program} ended with status {done.returncode} "
                f"({' '.join(wrong)[:200]}); run it by itself.")
        return done.stdout, done.stderr

    def score(self, sources, targets):
        """log p of targets, ends included.

        Args:
            sources, targets: lists of lists of ids without an end.

        Returns:
            Of each pair its sum, to six decimals, and that of each token, to
            five.
        """
        printed, _ = self._run(
            SCORE, "--model", str(self.model), "--train-sets",
            self._text("source", sources), self._text("target", targets),
            "--word-scores")
        with understood(SCORE):
            lines = [line.split(" ||| WordScores= ")
                     for line in printed.splitlines()]
            sums = [float(total) for total, _ in lines]
            words = [[float(word) for word in each.split()]
                     for _, each in lines]
            if len(lines) != len(sources):
                raise ValueError(f"{len(lines)} lines")
        return sums, words

    def search(self, sources, beam, alpha, most, batch):
        """The hypotheses of sources, the best first.

        Args:
            sources: ids [B S] without an end.
            beam: W.
            alpha: the exponent of the length that a score is divided by.
            most: the most tokens of an answer.
            batch: how many sources are searched at once.

        Returns:
            Of each source a list of (ids with an end, if it has one, score).
        """
        length = len(sources[0]) + 1
        printed, _ = self._run(
            SEARCH, "--models", str(self.model), "--input",
            self._text("source", sources), "--beam-size", str(beam),
            "--normalize", str(alpha), FACTOR, str((most - 0.5) / length),
            "--mini-batch", str(batch), "--n-best", "--word-scores")
        found = [[] for _ in sources]
        with understood(SEARCH):
            for line in printed.splitlines():
                number, text, each, _, score = (
                    part.strip() for part in line.split("|||"))
                ids = [int(word.removeprefix("w")) for word in text.split()]
                count = len(each.removeprefix("WordScores=").split())
                found[int(number)].append(
                    (ids + [END] * (count - len(ids)), float(score)))
            if not all(found):
                raise ValueError("no answer to a source")
        return found

    def train(self, sources, targets, *optimizer):
        """Make one step on all pairs at once.

        Args:
            sources, targets: as in score.
            optimizer: its name, then words of the command line.

        Returns:
            The mean loss before it, and our weights after it, in float32.
        """
        after = self.folder / f"after-{optimizer[0]}.npz"
        shutil.copy(self.model, after)
        _, log = self._run(
            TRAIN, "--model", str(after), "--train-sets",
            self._text("source", sources), self._text("target", targets),
            "--after-batches", "1", "--disp-freq", "1", "--no-shuffle",
            "--mini-batch", str(len(sources)), "--maxi-batch", "1",
            "--cost-type", "ce-mean-words", "--normalize-gradient",
            "--clip-norm", "0", "--label-smoothing", "0", "--overwrite",
            "--optimizer", *optimizer)
        with understood(TRAIN):
            loss = float(re.search(r"Cost ([\d.]+)", log)[1])
        with np.load(after) as file:
            arrays = {name: file[name] for name in file.files}
        return loss, MARIAN.read(arrays, self.config)
