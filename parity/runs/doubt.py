"""How sure a model is of an answer.

An answer is as likely as the least likely of its tokens, given those before
it. How likely right answers are is measured, when a model has been trained, on
pairs that it was not trained on; an answer below nearly all of them is
doubtful. A model can be sure and wrong: this finds the questions that it has
no answer to, not each mistake. An answer that is written as a date and is no
day of the calendar is doubtful as well.
"""

import datetime
import re

import numpy as np

from parity.runs.evaluation import chunks, padded

#: The share of right answers that are called doubtful.
SHARE = 0.005

#: The fewest right answers from which the border is measured.
FEWEST = 200


def is_impossible_date(answer):
    """Whether an answer is written as a date and is none, as 2026-02-31."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", answer):
        return False
    try:
        datetime.date.fromisoformat(answer)
    except ValueError:
        return True
    return False


def least_probability(engine, model, tokenizer, sources, answers):
    """The probability of each answer's least likely token.

    Args:
        engine, model: an implementation and its Transformer.
        tokenizer: the model's.
        sources: ids of texts, a list each.
        answers: ids that the decoder reads and writes, a list each: bos id,
            tokens and, unless it was cut off, eos id.

    Returns:
        float64 [len(sources)], each in (0, 1].
    """
    config, least = model.config, np.ones(len(sources))
    for places in chunks([(source,) for source in sources]):
        source, target = (
            padded(tokenizer, [rows[i] for i in places], config.max_length)
            for rows in (sources, answers))
        read, written = target[:, :-1], target[:, 1:]
        logits = np.asarray(engine.predict(
            model, source, read, **engine.masks(
                source, read, config.pad_id, model.home)), np.float64)
        chosen = np.take_along_axis(logits, written[..., None], -1)[..., 0]
        top = logits.max(-1)
        log_probs = chosen - top - np.log(
            np.exp(logits - top[..., None]).sum(-1))
        log_probs[written == config.pad_id] = 0
        least[places] = np.exp(log_probs.min(-1))
    return least


def border(engine, model, tokenizer, pairs):
    """The probability below which an answer is doubtful.

    Args:
        pairs: (source, target) texts that were answered rightly, and that the
            model was not trained on.

    Returns:
        A float, or None if there are too few pairs to tell.
    """
    if len(pairs) < FEWEST:
        return None
    least = least_probability(
        engine, model, tokenizer,
        [tokenizer.encode(source) for source, _ in pairs],
        [[tokenizer.bos_id, *tokenizer.encode(target), tokenizer.eos_id]
         for _, target in pairs])
    return float(np.quantile(least, SHARE))
