"""How a model of others searches, by its own files.

transformers keep the numbers of a search in ``generation_config.json``; folders
of older releases have them in ``config.json``.
"""

from parity_io.errors import InputError, is_real
from transformer_contract.generation import GenerationConfig

#: The search of transformers 5.x, where no file says otherwise.
HUGGING_FACE = {"length_rule": "hf_false", "alpha": 1.0, "finishing": "top",
                "allow_padding": True, "max_tokens": 20}

#: Their ``early_stopping`` -> our length rule.
RULES = {True: "hf_true", False: "hf_false", "never": "hf_never"}

#: Their key -> our field, where the value is the same.
KEYS = {"length_penalty": "alpha", "forced_eos_token_id": "forced_eos_id",
        "begin_suppress_tokens": "begin_suppress_tokens"}

#: The keys of samples alone, which have our names.
SAMPLED = ("temperature", "top_k", "top_p")

#: The kinds of value of the keys that are counted with or looked up.
KINDS: dict[str, type | tuple[type, ...]] = {
    "num_beams": int, "max_length": int, "max_new_tokens": int,
    "min_length": int, "min_new_tokens": int, "suppress_tokens": list,
    "no_repeat_ngram_size": int,
    "begin_suppress_tokens": list, "bad_words_ids": list,
    "early_stopping": (bool, str)}

#: What is not done here: their key -> the value with which it does nothing.
NOTHING = {
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0, "encoder_no_repeat_ngram_size": 0,
    "num_beam_groups": 1, "diversity_penalty": 0.0, "typical_p": 1.0,
    "epsilon_cutoff": 0.0, "eta_cutoff": 0.0, "min_p": 0.0,
    "penalty_alpha": 0.0, "guidance_scale": 1.0, "sequence_bias": {},
    "renormalize_logits": False, "exponential_decay_length_penalty": [],
    "remove_invalid_values": False, "token_healing": False, "top_h": None,
    "max_time": None, "stop_strings": None, "dola_layers": None,
    "constraints": None, "force_words_ids": None, "watermarking_config": None,
    "forced_decoder_ids": [], "num_return_sequences": 1,
    "prefill_chunk_size": None,
}


def fields(dialect, described, generation=None, prompt=1):
    """The fields of a GenerationConfig that a model's files give.

    Args:
        dialect: whose.
        described: its configuration in the dialect's own words.
        generation: what ``generation_config.json`` says, if there is one.
        prompt: how many tokens a decoder alone continues; else 1.

    Returns:
        {field: value}, and in words what the files ask for and is not done.

    Raises:
        InputError: a value is of another kind than its key has.
    """
    given = {key: value for key, value in (generation or described).items()
             if value is not None}
    _check(given)
    undone = [f"{key} {given[key]!r}" for key, nothing in NOTHING.items()
              if given.get(key, nothing) != nothing]
    if given.get("cache_implementation") == "quantized":
        undone.append("cache_implementation 'quantized'")
    if generation and "eos_token_id" not in given:
        undone.append("answers without an end")
    made = {**dialect.search, **_ends(described, given, undone)}
    if "no_repeat_ngram_size" in given:
        made |= _repeats(given["no_repeat_ngram_size"], prompt, undone)
    if prompt == 1 and "forced_bos_token_id" in given:
        made["forced_bos_id"] = given["forced_bos_token_id"]
    made |= _method(given, undone) | _lengths(given, prompt)
    ends = (made["eos_id"], *made.get("more_eos_ids", ()))
    if words := _suppressed(given, ends, undone):
        made["suppress_tokens"] = words
    return {field: value for field, value in made.items()
            if value is not None}, undone


def settings(dialect, described, generation=None, prompt=1):
    """The GenerationConfig that a model's files give, see ``fields``."""
    return GenerationConfig(**fields(
        dialect, described, generation, prompt)[0])


def _check(given):
    """Raise InputError where a value is of another kind than its key has."""
    for key, kind in KINDS.items():
        value = given.get(key)
        right = value is None or isinstance(value, kind) and (
            kind is not int or not isinstance(value, bool))
        if key == "bad_words_ids" and isinstance(value, list):
            right = all(isinstance(word, list) for word in value)
        if isinstance(value, str):
            right = value in RULES
        if not right:
            raise InputError(
                f"{key} is {value!r} in the files of a search; change it.")
    penalty = given.get("length_penalty", 1.0)
    if not is_real(penalty) or penalty < 0:
        raise InputError(
            f"length_penalty is {penalty!r} in the files of a search; only a "
            "number that is not negative can be computed here.")


def _ends(described, given, undone):
    """With which ids a target begins and ends, and what is as theirs."""
    made = {}
    for key in ("bos_token_id", "decoder_start_token_id"):
        if key in given or key in described:
            made["bos_id"] = given.get(key, described.get(key))
    made["eos_id"] = given.get("eos_token_id", described.get("eos_token_id"))
    made |= {field: given[key] for key, field in KEYS.items() if key in given}
    if isinstance(made["eos_id"], list) and made["eos_id"]:
        made["eos_id"], *more = made["eos_id"]
        made["more_eos_ids"] = tuple(more)
    forced = made.get("forced_eos_id")
    if isinstance(forced, list) and forced:
        undone += [f"forced_eos_token_id {each}" for each in forced[1:]]
        made["forced_eos_id"] = forced[0]
    return made


def _method(given, undone):
    """The method, and how a beam ends; beams that sample go undone."""
    made: dict[str, object] = {}
    if given.get("num_beams", 1) > 1:
        made |= {"method": "beam", "beam": given["num_beams"]}
        if given.get("do_sample"):
            undone.append("do_sample True")
    elif given.get("do_sample"):
        made |= {"method": "sample", "top_k": 50} | {
            key: given[key] for key in SAMPLED if key in given}
        if made["top_k"] and made.get("top_p", 1) != 1:
            made["top_p_of_top_k"] = True
    if "early_stopping" in given:
        made["length_rule"] = RULES[given["early_stopping"]]
    return made


def _lengths(given, prompt):
    """The least and the most tokens, which theirs count with the prompt."""
    made = {}
    if "max_new_tokens" in given:
        made["max_tokens"] = given["max_new_tokens"]
    elif "max_length" in given:
        made["max_tokens"] = max(1, given["max_length"] - prompt)
    if "min_new_tokens" in given:
        made["min_tokens"] = given["min_new_tokens"] + 1
    elif "min_length" in given:
        made["min_tokens"] = max(1, given["min_length"] - prompt + 1)
    return made


def _repeats(count, prompt, undone):
    """How many tokens may not stand twice; theirs count the prompt's too."""
    if prompt > 1 and count:
        undone.append(f"no_repeat_ngram_size {count}")
        return {}
    return {"no_repeat_ngram": count}


def _suppressed(given, eos_ids, undone):
    """The ids that are never generated; words of several tokens go undone."""
    ids = list(given.get("suppress_tokens", ()))
    for word in given.get("bad_words_ids", ()):
        if len(word) > 1:
            undone.append(f"bad_words_ids {word}")
        elif word and word[0] not in eos_ids:
            ids += word
    return tuple(ids)
