"""Searches that between them have what a search can vary.

The presets' searches are short and of few rows. These have what those lack:
more tokens than 32, answers that end early and late side by side, more rows
than 8, padding on any side, ids that are not 0, 1 and 2, every length rule and
exponent with sources on which any two rules choose otherwise, beams wider than
the vocabulary, each bound of a sample alone and with the others, and exact
ties.
"""

import dataclasses

import numpy as np

from transformer_contract.config import PLAIN, TransformerConfig
from transformer_contract.generation import CHOICES, GenerationConfig
from transformer_contract.weights import probe_weights
from parity.check import cases, covering
from parity.check.generation import SearchCase
from parity.numerics.dtypes import BOTH

#: The first searches of a model are usual ones.
USUAL = 3

#: How many rows, and the sizes of the batches in which they are searched for.
ROWS, BATCHES = 11, (11, 4)

#: A short answer, and one longer than a block of keys that a port might keep.
SHORT, LONG = 12, 40

#: One set of sizes for all: what is compiled for one model serves the others.
SIZES = {"d_model": 20, "n_heads": 2, "d_ff": 28, "n_encoder_layers": 1,
         "n_decoder_layers": 2, "max_length": LONG, "tied": False}

#: Most are compared in float64 alone, where nothing comes near a tie.
EXACT = BOTH[:1]

#: What hypotheses' lengths count for: not at all, as usual, as they are, more.
EXPONENTS = (0.0, 0.6, 1.0, 1.7)

#: What a search is asked beside its choices and switches: field -> values.
ASKED = {
    "bos_id": (7, 3), "min_tokens": (1, 4), "forced_bos_id": (None, 0),
    "prompt": ((), (4, 11)),
    "forced_eos_id": (None, 5), "suppress_tokens": ((), (1, 13)),
    "begin_suppress_tokens": ((), (0, 5, 16)),
    "more_eos_ids": ((), (9, 2)), "no_repeat_ngram": (0, 2),
}


@dataclasses.dataclass(frozen=True)
class SearchedModel:
    """A model, its sources, and what is searched for in them.

    Attributes:
        weights: float64 arrays by name.
        source: int64 [B S].
        exact: whether ties are exact and decided by the lower id, so that no
            row is left out for being near one.
    """

    name: str
    config: TransformerConfig
    weights: dict = dataclasses.field(repr=False, compare=False)
    source: np.ndarray = dataclasses.field(repr=False, compare=False)
    searches: tuple
    exact: bool = False

    @property
    def usual(self):
        """The searches that go all the way through the model."""
        return [search for number, search in enumerate(self.searches)
                if number < USUAL or search.dtypes == BOTH]

    @property
    def rules(self):
        """The others, which differ from those by a rule alone."""
        return [search for search in self.searches
                if search not in self.usual]


def searched_models():
    """Every SearchedModel."""
    yield babbling()
    yield narrow()
    yield tied()
    yield prompted()
    yield from placed()


def sources(config, length=7):
    """Ids [ROWS length]: full, padded right, left, inside, and of padding."""
    ids = cases.ids("searched source", ROWS, length, config.source_vocab)
    ids[ids == config.pad_id] = config.source_vocab - 1
    ids[0, :2] = config.source_vocab - 1, 0
    ids[1, length // 2:] = ids[2, :length // 3] = config.pad_id
    ids[3, 2:-2] = ids[4] = config.pad_id
    return ids


def babbling():
    """A model whose answer depends on its source and on all that it said."""
    config = PLAIN.replace(
        source_vocab=23, target_vocab=23, pad_id=3, residual="pre",
        norm="scalar_std", final_norm=True, output="log_probs", **SIZES)
    weights = {name: array if name.endswith(("bias", "scale")) else 1.5 * array
               for name, array in probe_weights(config, 2).items()}
    return SearchedModel("babbling", config, weights, sources(config),
                         tuple(babble()))


def babble():
    """The searches of the babbling model."""
    short = GenerationConfig(bos_id=7, eos_id=5, max_tokens=SHORT)
    beam = short.replace(method="beam", alpha=1.0)
    sample = short.replace(method="sample")
    yield SearchCase("greedy, long", short.replace(max_tokens=LONG), BOTH)
    yield SearchCase("greedy, begin by the highest id", short.replace(
        bos_id=22, eos_id=0), EXACT)
    yield SearchCase("beam 4, long", beam.replace(max_tokens=LONG), EXACT)
    for width in (1, 2, 9):
        yield SearchCase(f"beam {width}", beam.replace(beam=width), EXACT)
    for rule in CHOICES["length_rule"]:
        for alpha in EXPONENTS:
            yield SearchCase(f"beam 4, {rule}, α {alpha}", beam.replace(
                length_rule=rule, alpha=alpha),
                BOTH if (rule, alpha) == ("paper", 1) else EXACT)
    yield SearchCase("sample, long", sample.replace(
        max_tokens=LONG, seed=2**40 + 7), BOTH)
    yield SearchCase("sample, late end", sample.replace(
        max_tokens=LONG, eos_id=20), EXACT)
    for words, changes in (
            ("temperature 0.7", {"temperature": 0.7}),
            ("top 5", {"top_k": 5}), ("top 1", {"top_k": 1}),
            ("top 100, more than there are", {"top_k": 100}),
            ("p 0.8", {"top_p": 0.8}), ("p 1e-9", {"top_p": 1e-9}),
            ("temperature 1.5, top 6", {"temperature": 1.5, "top_k": 6}),
            ("temperature 3, p 0.9", {"temperature": 3.0, "top_p": 0.9}),
            ("top 7, p 0.9", {"top_k": 7, "top_p": 0.9}),
            ("top 7, p 0.9 of them",
             {"top_k": 7, "top_p": 0.9, "top_p_of_top_k": True}),
            ("top 100, p 0.8 of them",
             {"top_k": 100, "top_p": 0.8, "top_p_of_top_k": True}),
            ("temperature 2, top 7, p 0.95",
             {"temperature": 2.0, "top_k": 7, "top_p": 0.95})):
        yield SearchCase(
            f"sample, {words}", sample.replace(seed=3, **changes), EXACT)
    yield from ruled(short)


def ruled(greedy):
    """Searches by the rules of others, one by one and every two together."""
    beam = greedy.replace(method="beam", alpha=1.0)
    yield SearchCase(
        "greedy, begin by padding", greedy.replace(bos_id=3), EXACT)
    yield SearchCase("beam 4, as Hugging Face", beam.replace(
        length_rule="hf_true", finishing="top", allow_padding=True), EXACT)
    yield SearchCase("beam 4, as fairseq", beam.replace(
        length_rule="hf_true", finishing="first"), EXACT)
    yield SearchCase("beam 4, as Marian", beam.replace(
        length_rule="hf_true", finishing="narrowing", alpha=0.6), EXACT)
    yield SearchCase("beam 4, as Tensor2Tensor", beam.replace(
        unfinished="fallback", max_tokens=4, eos_id=13), EXACT)
    for field, values in ASKED.items():
        yield SearchCase(f"beam 4, {field} {values[1]}", beam.replace(
            length_rule="hf_false", **{field: values[1]}), EXACT)
    yield SearchCase("beam 4, no word twice", beam.replace(no_repeat_ngram=1),
                 EXACT)
    yield SearchCase("greedy of few words, no 4 twice", greedy.replace(
        no_repeat_ngram=4, suppress_tokens=tuple(range(6, 22))), EXACT)
    for number, words in enumerate(covering.covering(choices()), start=1):
        yield SearchCase(f"covering {number}", beam.replace(**words), EXACT)


def choices():
    """What a search chooses: {field of a GenerationConfig: its words}.

    All are searched for with a cache and without.
    """
    return {**CHOICES, **ASKED, **{
        field.name: (False, True)
        for field in dataclasses.fields(GenerationConfig)
        if field.type is bool and field.name != "cached"}}


def narrow():
    """A model of 7 words, searched with beams that are wider than that."""
    config = PLAIN.replace(
        source_vocab=9, target_vocab=7, pad_id=6, **SIZES)
    weights = {name: 1.5 * array
               for name, array in probe_weights(config, 2).items()}
    greedy = GenerationConfig(bos_id=2, eos_id=4, max_tokens=SHORT)
    beam = greedy.replace(method="beam")
    return SearchedModel("narrow", config, weights, sources(config), (
        SearchCase("greedy", greedy, EXACT),
        SearchCase("beam 4", beam, EXACT),
        SearchCase("beam 9", beam.replace(beam=9, length_rule="hf_never"),
               EXACT)))


def tied():
    """A model to which all tokens are equal: only their order decides."""
    config = PLAIN.replace(
        source_vocab=11, target_vocab=11, pad_id=1, **SIZES)
    weights = {name: 0 * array if name.startswith("projection.") else array
               for name, array in probe_weights(config, 1).items()}
    greedy = GenerationConfig(bos_id=9, eos_id=2, max_tokens=SHORT)
    return SearchedModel("tied", config, weights, sources(config), (
        SearchCase("greedy", greedy, EXACT),
        SearchCase("beam 4", greedy.replace(method="beam"), EXACT),
        SearchCase("sample, top 3", greedy.replace(
            method="sample", seed=1, top_k=3), EXACT)), exact=True)


def prompted():
    """A decoder alone, whose sources are prompts that it continues."""
    config = PLAIN.replace(
        source_vocab=17, target_vocab=17, pad_id=5, stacks="decoder",
        residual="pre", final_norm=True, positions="learned", **SIZES)
    weights = {name: array if name.endswith(("bias", "scale")) else 1.5 * array
               for name, array in probe_weights(config, 4).items()}
    greedy = GenerationConfig(bos_id=8, eos_id=2, max_tokens=SHORT)
    return SearchedModel("prompted", config, weights, sources(config), (
        SearchCase("greedy", greedy, EXACT),
        SearchCase("beam 4", greedy.replace(method="beam"), EXACT),
        SearchCase("sample", greedy.replace(method="sample", seed=5), EXACT)))


#: Where positions of a single token follow from what is written: the variant.
PLACED: dict[str, dict] = {
    "rotary": {"positions": "rotary_halves", "n_kv_heads": 1},
    "relative": {"positions": "relative", "n_encoder_layers": 2},
    "counted": {"positions": "halves", "position_padding": True},
    "counted, prompted": {
        "positions": "halves", "position_padding": True, "stacks": "decoder"},
    "begun": {"positions": "learned", "begin": "zero"},
    "begun, prompted": {
        "positions": "learned", "begin": "zero", "stacks": "decoder"},
}


def placed():
    """A model for each way in which a cache has to know of positions."""
    for number, (name, words) in enumerate(PLACED.items()):
        config = PLAIN.replace(
            source_vocab=24 + number, target_vocab=24 + number,
            pad_id=12 + number, **{**SIZES, **words})
        weights = {name: 1.5 * array
                   for name, array in probe_weights(config, 6).items()}
        greedy = GenerationConfig(
            bos_id=11 - number, eos_id=number, max_tokens=SHORT)
        yield SearchedModel(name, config, weights, sources(config), (
            SearchCase("greedy", greedy, EXACT),))
