"""A model on many texts: its loss, and its greedy answers, some at a time."""

import numpy as np

from transformer_contract.generation import GenerationConfig

#: Sequences are padded to a multiple of this, for few different lengths.
MULTIPLE = 8

#: How many pairs are evaluated at once.
AT_ONCE = 125


def padded(tokenizer, sequences, max_length):
    """Ids [B T], padded to a multiple of MULTIPLE or to the longest."""
    longest = max(map(len, sequences))
    length = min(-(-longest // MULTIPLE) * MULTIPLE, max_length)
    return tokenizer.pad(sequences, length=max(length, longest))


def chunks(pairs):
    """Pairs, sorted by the length of the source, AT_ONCE at a time."""
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]))
    for start in range(0, len(order), AT_ONCE):
        yield order[start:start + AT_ONCE]


def evaluate(engine, model, tokenizer, pairs):
    """The mean loss of a model over the target tokens of pairs."""
    config, total, tokens = model.config, 0.0, 0
    for indices in chunks(pairs):
        sources, targets = (padded(tokenizer, [
            ends + tokenizer.encode(pairs[i][column]) + tail
            for i in indices], config.max_length)
            for column, ends, tail in (
                (0, [], []),
                (1, [tokenizer.bos_id], [tokenizer.eos_id])))
        masks = engine.masks(sources, targets[:, :-1], config.pad_id,
                             model.home, config.stacks == "both")
        output = engine.predict(
            model, sources, targets[:, :-1], masks["source_mask"],
            masks["target_mask"])
        labels = np.ascontiguousarray(targets[:, 1:])
        count = int((labels != config.pad_id).sum())
        total += count * float(engine.loss(
            output, labels, config.pad_id, config.label_smoothing,
            config.smoothing, model.home))
        tokens += count
    return total / tokens


def translate(engine, model, tokenizer, texts, longest):
    """A model's greedy answers to texts, as texts."""
    config = model.config
    answers = [None] * len(texts)
    for indices in chunks([(text,) for text in texts]):
        sources = padded(tokenizer, [tokenizer.encode(texts[i])
                                     for i in indices], config.max_length)
        result = engine.generate(model, sources, GenerationConfig(
            bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
            max_tokens=min(config.max_length, longest) - 1))
        for i, row in zip(indices, result["tokens"][:, 0].tolist()):
            ends = [*row, tokenizer.eos_id].index(tokenizer.eos_id)
            answers[i] = tokenizer.decode(row[:ends])
    return answers
