"""What goes wrong in a search, which its tokens themselves tell or a replay."""

import numpy as np

from parity.causes.cause import Cause
from parity.causes.faults.putting import (
    native_of, numpy_of, replaced, rewritten)

TOPIC = "generation"

NOT_EXPLAINED = "a trace holds one forward pass, and no search"

#: The searches of parity.check.search_runs.babbling in which they are put.
BEAM, SAMPLE = "beam 4, paper, α 1.0", "sample, temperature 0.7"


def in_beam(old, new):
    """Replace a piece of the beam search's source."""
    return rewritten("search", "Beam.run", old, new)


def in_choice(old, new):
    """Replace a piece of the source that draws a token."""
    return rewritten("sample", "Sample.choose", old, new)


def banned(written):
    """Ask what is banned behind another number of tokens."""
    return rewritten("dialects.search", "Restricted.allowed",
                     "banned(written)", f"banned({written})")


def neighbours_seen(old, port):
    """What is padding in every row is hidden, and no other padding."""
    def made(tokens, pad_id):
        mask = numpy_of(port, old(tokens, pad_id))
        return native_of(port, np.ascontiguousarray(
            np.broadcast_to(mask.any(axis=0), mask.shape)))
    return made


def the_first_alone(old, port):
    """Of the ends, only those among the first W count."""
    def best(self, scores, tokens, more_scores, more_tokens):
        more = np.array(numpy_of(port, more_scores))
        more[:, self.settings.beam:] = -np.inf
        return old(self, scores, tokens, native_of(port, more), more_tokens)
    return best


PADDING_MASK = replaced("search", "padding_mask", neighbours_seen)

#: Those that tokens tell by themselves: a sentence, and how each is put.
TOLD = {
    "a target goes on after its end": (
        "Tokens other than padding follow an eos id.", rewritten(
            "search", "Beam.closed", "self.ends(token)", "(token == -1)")),
    "one hypothesis stands twice": (
        "All hypotheses are alive at the first step, and equal.",
        in_beam("arange(w) == 0", "arange(w) >= 0")),
    "a row depends on its batch": (
        "The same source has another output in another batch.", PADDING_MASK),
    "only with the cache: keys and values are not those of the hypothesis": (
        "The cache is not reordered with its beam.",
        replaced("search", "Search.reorder", lambda old, port: (
            lambda self, parents: None))),
}


def _causes():
    for name, (sentence, put) in TOLD.items():
        cached = name.startswith("only with the cache")
        yield (name, sentence, put, BEAM,
               "tokens, cached" if cached else "tokens, uncached")
    tokens, scores = "tokens, uncached", "scores, uncached"
    yield ("finished targets' scores are not divided", "A score is log p, "
           "not log p over the length rule's penalty.",
           in_beam("scores / settings.penalty(written)", "scores"),
           BEAM, tokens)
    yield ("a target's length is one more", "The bos is counted as well.",
           in_beam("settings.penalty(written)", "settings.penalty(written + 1)"
                   ), BEAM, tokens)
    yield ("a target's length is one less", "The eos is not counted.",
           in_beam("settings.penalty(written)",
                   "settings.penalty(max(written - 1, 1))"), BEAM, tokens)
    yield ("as many candidates as the beam is wide", "Those that end leave no "
           "other in their place.", rewritten(
               "search", "Beam.select", "self.settings.candidates",
               "self.settings.beam"), BEAM, tokens)
    yield ("all candidates may finish", "An eos ranked behind the first W is "
           "kept, where only those may end.", rewritten(
               "dialects.search", "DialectBeam.best",
               "self.settings.finishers", "self.settings.candidates"),
           "beam 4, as Hugging Face", tokens)
    yield ("only the first W may finish", "An eos ranked behind them is "
           "dropped, where all candidates may end.", replaced(
               "search", "Beam.best", the_first_alone), BEAM, tokens)
    yield ("one that finishes later takes a place", "A better one puts out "
           "one that has finished, where all places are taken.", rewritten(
               "dialects.search", "DialectBeam.best", '"first"', '"never"'),
           "beam 4, as fairseq", tokens)
    yield ("a beam keeps its width", "Another takes the place of one that has "
           "finished, where the beam becomes narrower.", rewritten(
               "dialects.search", "DialectBeam.select", '"narrowing"',
               '"never"'),
           "beam 4, as Marian", tokens)
    yield ("what has no end is not an answer", "At the greatest length only "
           "an eos finishes.", rewritten(
               "search", "Beam.closed", "written == self.settings.max_tokens",
               "written == 0"), BEAM, tokens)
    yield ("hypotheses that stand in are divided", "Their score is over the "
           "length rule's penalty.", rewritten(
               "dialects.search", "DialectBeam.outcome", "alive, finished)",
               "alive / self.settings.penalty(self.length - 1), finished)"),
           "beam 4, as Tensor2Tensor", scores)
    yield ("a search stops by the greatest length", "Hope is judged by it, "
           "where the present one is asked for.", in_beam(
               "settings.bound(written)", "settings.penalty(self.length - 1)"),
           "beam 4, hf_false, α 1.0", tokens)
    yield ("a forced end comes too late", "It is forced behind the greatest "
           "length.", rewritten(
               "dialects.search", "Restricted.allowed",
               "self.settings.forced(written)",
               "self.settings.forced(max(written - 1, 1))"),
           "beam 4, forced_eos_id 5", tokens)
    yield ("a forced token keeps its log p", "It adds to the score.",
           replaced("dialects.search", "Restricted.allowed", lambda old, port: (
               lambda self, log_probs, tokens, written: old(
                   self, log_probs, tokens, written) + (
                       0 if self.settings.forced(written) is None
                       else log_probs))),
           "beam 4, forced_bos_id 0", tokens)
    yield ("a prompt is left to the model", "Of what is forced, the end alone "
           "is.", rewritten(
               "dialects.search", "Restricted.allowed", "forced is not None",
               "forced is not None and written > self.settings.first"),
           "beam 4, prompt (4, 11)", tokens)
    yield ("an end may come one token too soon", "The bos is counted among "
           "the least tokens.", banned("written + 1"),
           "beam 4, min_tokens 4", tokens)
    yield ("what may not begin may not follow", "Tokens that are suppressed "
           "at the first place are at every one.", banned("1"),
           "beam 4, begin_suppress_tokens (0, 5, 16)", tokens)
    yield ("one id alone ends", "Others that end a target as well do not.",
           rewritten("dialects.search", "Restricted.ends", "eos_ids",
                     "eos_ids[:1]"),
           "beam 4, more_eos_ids (9, 2)", tokens)
    yield ("n tokens may stand twice", "Only one more are kept from it.",
           rewritten("dialects.search", "Restricted.repeats",
                     "self.settings.no_repeat_ngram",
                     "self.settings.no_repeat_ngram and 3"),
           "beam 4, no_repeat_ngram 2", tokens)
    yield ("a begin that is padding is not read", "The first token is hidden, "
           "as padding is.", rewritten(
               "search", "Search.next", "(len(read), 1, 1, 1))",
               "(len(read), 1, 1, 1)) & padding_mask(read, self.pad_id)"),
           "greedy, begin by padding", tokens)
    yield ("hope is not divided", "A search goes on until log p alone is "
           "worse than a finished score.",
           replaced("search", "Beam.is_done", lambda old, port: (
               lambda self, finished, alive, bound: old(
                   self, finished, alive, 1.0))), BEAM, tokens)
    yield ("padding may be chosen", "Its log p is not -∞ (R31).",
           rewritten("search", "Search.answer", "where(padding, ",
                     "where(padding & False, "),
           "sample, temperature 3, p 0.9", tokens)
    yield ("a finished row's score goes on", "Padding behind an end adds its "
           "log p.", rewritten("search", "Greedy.run", "where(finished, 0, ",
                               "where(finished & False, 0, "), SAMPLE, scores)
    yield ("with the cache every token stands at position 0", "Positions "
           "begin anew with each token that is read.",
           rewritten("transformer", "Transformer.decode",
                     "caches[0].written", "0"), BEAM, "tokens, cached")
    yield ("temperature is not applied", "p is the softmax of log p.",
           in_choice(" / settings.temperature", ""), SAMPLE, tokens)
    yield ("temperature multiplies", "log p · temperature.", in_choice(
        " / settings.temperature", " * settings.temperature"), SAMPLE, tokens)
    yield ("top k is ignored", "Any token may be drawn.", in_choice(
        "settings.top_k or len(place)", "len(place)"), "sample, top 5", tokens)
    yield ("top p is ignored", "Any token may be drawn.", in_choice(
        "before < settings.top_p * whole", "before < 2"),
        "sample, p 0.8", tokens)
    yield ("top p is of all tokens", "Where it is asked for of those that top "
           "k leaves.", in_choice("self.whole(before + p)", "1"),
           "sample, top 7, p 0.9 of them", tokens)
    yield ("top p leaves out the token that reaches it", "Kept are those "
           "whose sum is at most top_p.", in_choice(
               "before < settings.top_p * whole",
               "(before + p <= settings.top_p * whole) | (place == 0)"),
           "sample, p 0.8", tokens)
    yield ("a draw is not scaled to what is kept", "It is of the sum of all "
           "p, and falls behind what is kept.", in_choice(
               " * reached[:, -1]", ""), "sample, top 5", tokens)
    yield ("a row's draws follow its place in the batch", "Not its number: "
           "the same source draws otherwise elsewhere.",
           replaced("sample", "uniforms", lambda old, port: (
               lambda seed, rows, length: old(
                   seed, np.arange(len(rows)), length))), SAMPLE, tokens)
    yield ("draws are those of the token before", "The first draw is place "
           "0's.", in_choice("self.draws[:, written]",
                             "self.draws[:, written - 1]"), SAMPLE, tokens)


CAUSES = tuple(
    Cause(name, TOPIC, sentence, put=put, case=case, step=step,
          not_explained=NOT_EXPLAINED)
    for name, sentence, put, case, step in _causes())
