"""Whether a search here answers as the original's own ``generate()``.

Small models are drawn as for the other proofs, and for each an end that its
answers have at various places. Tokens of all W hypotheses are compared to the
last one, scores to the limit of float32, in which transformers keep them. A
row that the reference decided by less than NEAR is left out and counted, and
so is one that the original ends by a rule that no search here has.
"""

import dataclasses

import numpy as np

from transformer_contract.dialects import searches
from parity_io.errors import plural
from parity.check.margins import margins
from parity.numerics.comparator import relative_error
from parity.numerics.words import number
from parity_tests.originals import random_models
from parity_tests.originals.proof import random_state

#: Nearer scores may change places in float32; and in float64, in which an
#: original without its casts searches.
NEAR, NEAR_FLOAT64 = 1e-5, 1e-10

#: The most tokens of an answer.
MOST = 12


@dataclasses.dataclass(frozen=True)
class SearchRow:
    """One search of one drawn model, in one port.

    Attributes:
        name: of the search.
        rows, ended, left_out: how many inputs, how many of their best answers
            end before the greatest length, and how many are left out.
        different: in how many rows tokens are not the original's.
        error: the largest relative error of a score.
    """

    dialect: str
    seed: int
    port: str
    name: str
    rows: int
    ended: int
    left_out: int
    different: int
    error: float

    def __str__(self):
        return (f"{self.dialect}, model {self.seed}, {self.port}, "
                f"{self.name}: other tokens in {self.different} of "
                f"{plural(self.rows, 'row')}, relative error of a score "
                f"{number(self.error)}")

    @property
    def matches(self):
        """Whether all tokens are the original's, and scores near enough."""
        return not self.different and self.error < NEAR


def every(original_class, seed):
    """The searches of a model: (beam, early_stopping, length_penalty) each.

    The original's class names its BEAMS, of which 1 is greedy search, and its
    RULES, (early_stopping, length_penalty) each, of which the first is None
    where the original has one rule. Beams take them in turn, at another seed
    others.
    """
    rules = original_class.RULES
    return tuple((1, False, 1.0) if beam == 1
                 else (beam, *rules[(beam + seed) % len(rules)])
                 for beam in original_class.BEAMS)


def search(dialect, original_class, seed, engines, rows=10, asked=None):
    """A SearchRow for each search of the model that a seed draws.

    Args:
        dialect: a Dialect.
        original_class: (dialect, described) -> their model.
        seed: from which sizes, weights and inputs follow.
        engines: port -> engine, the reference's as "numpy".
        rows: how many inputs.
        asked: which searches, as ``every`` has them; all by default.
    """
    dialect = original_class.provable(dialect)
    described = random_models.described(dialect, seed, **original_class.DRAWN)
    original = original_class(dialect, described)
    original.load(random_state(dialect, original, seed))
    question = original.question(seed, rows)
    arrays = original.arrays()
    config = original.searched(dialect.config(described, arrays))
    weights = original.completed(dialect.read(arrays, config), question)
    models = {port: engine.build("transformer", config, weights)
              for port, engine in engines.items()}
    reference = engines["numpy"], models["numpy"]
    prompt = question.shape[1] if config.stacks == "decoder" else 1
    generation = words_of(
        dialect, seed, config.pad_id,
        an_end(reference, dialect, config, question, prompt))
    for beam, rule, alpha in asked or every(original_class, seed):
        words = {**generation, "num_beams": beam, "length_penalty": alpha} | (
            {} if rule is None else {"early_stopping": rule})
        tokens, scores = original.search(question, words)
        settings = searches.settings(dialect, {}, words, prompt)
        heard = margins(*reference, question, settings)
        clear = heard["margins"] > (
            NEAR_FLOAT64 if original.casts else NEAR)
        if scores is not None:  # one that is no number is left out
            clear &= ~np.isnan(scores.reshape(len(clear), -1)).any(axis=1)
        finite = np.isfinite(heard["scores"][clear])
        for port, engine in engines.items():
            found = engine.generate(models[port], question, settings)
            ours, theirs = (whole(each, settings)[clear] for each in (
                found["tokens"], tokens))
            apart = np.any(finite & np.any(ours != theirs, axis=-1), axis=1)
            yield SearchRow(
                dialect.name, seed, port, _named(beam, rule, alpha), rows,
                int(np.sum(whole(heard["tokens"], settings)[:, 0, -1] < 0)),
                int(np.sum(~clear)), int(np.sum(apart)),
                0.0 if scores is None or not finite.any() else relative_error(
                    found["scores"][clear][finite],
                    scores.reshape(len(clear), -1)[clear][finite])[0])


def _named(beam, rule, alpha):
    """A search in words."""
    return ", ".join(f"{word}" for word in (f"beam {beam}", rule, alpha)
                     if word is not None)


def an_end(reference, dialect, config, question, prompt):
    """What ``generation_config.json`` may say: an end that answers meet.

    It is the token that a greedy search of no end writes in the most rows,
    but not first in most.
    """
    vocab = config.target_vocab
    padded = prompt == 1 and not config.position_padding
    begin = config.pad_id if padded else (config.pad_id + 1) % vocab
    words = {"decoder_start_token_id": begin, "bos_token_id": begin,
             "pad_token_id": config.pad_id, "max_new_tokens": MOST}
    others = [token for token in range(vocab) if token != config.pad_id]
    written = reference[0].generate(
        reference[1], question, searches.settings(
            dialect, {}, {**words, "eos_token_id": others[0]}, prompt
        ).replace(method="greedy", min_tokens=MOST))["tokens"][:, 0, 1:]
    counts = [(np.sum((written[:, 1:] == token).any(axis=1))
               - np.sum(written[:, 0] == token), token) for token in others]
    return {**words, "eos_token_id": int(max(counts)[1])}


def words_of(dialect, seed, pad_id, words):
    """What the files of a dialect say besides."""
    end = words["eos_token_id"]
    others = [token for token in range(6) if token not in (end, pad_id)]
    match dialect.name:
        case "hf_marian":
            more = {"forced_eos_token_id": end, "bad_words_ids": [[pad_id]]}
        case "bart":
            more = {"forced_eos_token_id": end, "min_length": 3,
                    "no_repeat_ngram_size": 2 + seed % 2}
            if seed % 2:
                more["forced_bos_token_id"] = others[0]
        case "whisper":
            more = {"suppress_tokens": others[:2],
                    "begin_suppress_tokens": [end, others[2]]}
        case "llama" | "t5":
            more = {"eos_token_id": [end, *others[:2]]}
        case _:
            more = {}
    return {**words, **more}


def whole(tokens, settings):
    """Tokens [B W N] behind the first, and -1 behind each end."""
    tokens = tokens[..., 1:]
    ends = np.isin(tokens, settings.eos_ids)
    return np.where(np.cumsum(ends, axis=-1) - ends > 0, -1, tokens)
