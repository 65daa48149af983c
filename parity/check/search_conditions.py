"""What a search can vary, and the search that varies it."""

import functools
import itertools

from transformer_contract.generation import CHOICES
from parity import ports
from parity.check import covering, search_runs


def searches():
    """Yield every wide search: (name, (its model, its settings))."""
    for model in search_runs.searched_models():
        for search in model.searches:
            yield f"{model.name}, {search.name}", (model, search.settings)


def conditions():
    """What a search can vary: {name: predicate of a model and settings}."""
    def bounded(s):
        return s.temperature != 1, s.top_k > 0, s.top_p < 1

    bounds = "temperature", "top k", "top p"
    return {
        **{f"{method}: more than 32 tokens": lambda one, method=method: (
            one[1].method == method and one[1].max_tokens > 32)
           for method in CHOICES["method"]},
        **{f"{method}: exact ties": lambda one, method=method: (
            one[1].method == method and one[0].exact)
           for method in CHOICES["method"]},
        "a prompt that a decoder alone continues": lambda one: (
            one[0].config.stacks == "decoder"),
        "rows beyond 8": lambda one: len(one[0].source) > 8,
        **{f"a beam of {width}": lambda one, width=width: (
            one[1].width == width and one[1].method == "beam")
           for width in (1, 2, 4)},
        "a beam of more than 8": lambda one: one[1].width > 8,
        "more candidates than the vocabulary has": lambda one: (
            one[1].width < one[0].config.target_vocab < one[1].candidates),
        "a beam wider than the vocabulary": lambda one: (
            one[1].width > one[0].config.target_vocab),
        **{f"length rule {rule}, exponent {alpha}":
           lambda one, rule=rule, alpha=alpha: (
               one[1].method == "beam"
               and (one[1].length_rule, one[1].alpha) == (rule, alpha))
           for rule in CHOICES["length_rule"]
           for alpha in search_runs.EXPONENTS},
        **{f"{first[0]} {first[1]} and {second[0]} {second[1]}":
           lambda one, pair=(first, second): all(
               getattr(one[1], field) == word for field, word in pair)
           for first, second in covering.pairs(search_runs.choices())},
        **{"a sample by " + (" and ".join(itertools.compress(
            bounds, used)) or "nothing else"): lambda one, used=used: (
                one[1].method == "sample" and bounded(one[1]) == used)
           for used in itertools.product((False, True), repeat=3)},
        **{f"no {n}-gram twice": lambda one, n=n: (
            one[1].no_repeat_ngram == n) for n in (1, 2, 4)},
        "three ends": lambda one: len(one[1].eos_ids) == 3,
        "top k above the vocabulary": lambda one: (
            one[1].top_k > one[0].config.target_vocab),
        "a seed above 2³²": lambda one: one[1].seed > 2**32,
        "as many tokens as the table has rows": lambda one: (
            one[1].max_tokens == one[0].config.max_length),
        "ids: none is 0, 1 or 2": lambda one: min(
            one[0].config.pad_id, one[1].bos_id, one[1].eos_id) > 2,
        "the bos is the highest id, the eos the lowest": lambda one: (
            one[1].eos_id == 0
            and one[1].bos_id == one[0].config.target_vocab - 1),
    }


def rules():
    """Every two words of a choice: {name: predicate of a model and settings}.

    It holds where the reference answers otherwise by the second word, so that
    a port cannot have one for the other.
    """
    def differ(field, one, other):
        return lambda case: getattr(case[1], field) == one and (
            answer(*case) != answer(case[0], case[1].replace(
                **{field: other})))

    return {f"{field} {one} or {other}": differ(field, one, other)
            for field, words in search_runs.choices().items()
            for one, other in itertools.combinations(words, 2)}


@functools.lru_cache(maxsize=1000)
def answer(searched, settings):
    """The bytes of the tokens that the reference finds, behind the begin."""
    return ports.engine("numpy").generate(
        _built(searched), searched.source, settings)["tokens"][
            :, :, 1:].tobytes()


@functools.cache
def _built(searched):
    return ports.engine("numpy").build(
        "transformer", searched.config, searched.weights)
