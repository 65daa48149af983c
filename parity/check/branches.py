"""What fast forms are asked at sizes at which they go another way.

As in parity.check.extremes, which lists them: each function yields (what is
asked, an array) of an engine, and the reference is right. A branch that is
taken at no size of any machine's memory is taken here by a lower number.
"""

import contextlib
import importlib
import importlib.util
from unittest import mock

import numpy as np

from contract.batch import Batch
from contract.config import TransformerConfig
from contract.generation import GenerationConfig
from contract.training import TrainingConfig
from contract.weights import probe_weights
from parity.check import cases

#: A table of no whole number of blocks, whatever a block has.
CONFIG = TransformerConfig(
    source_vocab=203, target_vocab=203, d_model=12, n_heads=2, d_ff=10,
    n_encoder_layers=1, n_decoder_layers=1, max_length=121, norm_eps=1e-5,
    tied="all", dropout=0.0)

#: Tokens of a search for which weights are laid out anew.
MANY = 70

#: B and S of sources that are encoded another way.
SOURCES = 10, 33

#: How the names of what was computed in it begin.
FLOAT32 = "float32"

#: So many words that few labels have more logits than a block.
WORDS = 2100

#: So many that a beam of four has more candidates than 15 bits count.
BEYOND = 20_001

#: B, and S and T, of a batch with more labels, and more scores, than a block.
LARGE = 12, 60

#: Among how many threads rows are shared out where a form does that itself.
THREADS = 1, 3

#: So many tokens that blocks of them are doubled, and one is not full.
FAR = 4100

#: A model of one head, all of whose numbers are few but these.
FARTHEST = TransformerConfig(
    source_vocab=7, target_vocab=7, d_model=4, n_heads=1, d_ff=3,
    n_encoder_layers=1, n_decoder_layers=1, max_length=FAR, norm_eps=1e-5,
    stacks="encoder", attention_bias="all_but_key", dropout=0.0)


def searched(engine, what, changes, source, dtype="float64", times=None,
             **settings):
    """Yield what a search of a changed model writes.

    Args:
        times: {end of a weight's name: what it is multiplied by}.
    """
    config = CONFIG.replace(**changes)
    weights = probe_weights(config, 3)
    for end, factor in (times or {}).items():
        weights |= {name: factor * array for name, array in weights.items()
                    if name.endswith(end)}
    model = engine.build("transformer", config, weights, dtype)
    for name, array in engine.generate(model, source, GenerationConfig(
            **{"eos_id": 2, **settings})).items():
        yield f"{what}, {name}", array


def long_searches(engine):
    """Searches so long that a tied table is laid out anew."""
    source = cases.ids("source", 6, 7, CONFIG.source_vocab)
    for what, changes, rows in (
            ("plain", {}, 1), ("plain, 2 rows", {}, 2),
            ("bias", {"output_bias": True}, 1),
            ("heads that share", {"n_kv_heads": 1}, 1),
            ("heads that share, 3 rows", {"n_kv_heads": 1}, 3),
            ("scale", {"output_scale": "root"}, 1),
            ("log p", {"output": "log_probs"}, 1)):
        yield from searched(
            engine, what, changes, source[:rows], max_tokens=MANY)
    yield from searched(engine, "a beam", {}, source, method="beam", beam=8,
                        max_tokens=CONFIG.max_length - 1)
    padded = np.where(np.arange(7) < 5, source, CONFIG.pad_id)
    for what, changes in (
            ("a beam", {}), ("heads that share", {"n_kv_heads": 1})):
        with lowered(engine, "cache", MANY=1):
            yield from searched(
                engine, f"{what}, few places alike", changes,
                np.concatenate([source[:1], padded[1:2]]), method="beam",
                beam=3, max_tokens=12)


def long_searches_in_float32(engine):
    """Searches so long that float32's weights are laid out for a library."""
    source = cases.ids("source", 6, 7, CONFIG.source_vocab)
    for what, changes, rows, settings in (
            ("plain", {}, 6, {}), ("one row", {}, 1, {}),
            ("a bias, a beam", {"output_bias": True}, 2,
             {"method": "beam", "beam": 3}),
            ("untied", {"tied": "none"}, 6, {}),
            ("no biases", {"tied": "none", "output_bias": False,
                           "attention_bias": "none"}, 6, {}),
            ("gates", {"activation": "silu", "gated": True}, 6, {}),
            ("heads that share", {"n_kv_heads": 1}, 6, {}),
            ("a scale", {"output_scale": "root"}, 6, {})):
        yield from searched(
            engine, f"{FLOAT32}, {what}", changes, source[:rows], FLOAT32,
            max_tokens=MANY, **settings)


def varied_searches(engine):
    """Searches, short and long, of models that no other is like."""
    source = cases.ids("source", 3, 7, CONFIG.source_vocab)
    for what, changes in (
            ("output tied", {"tied": "output", "n_decoder_layers": 2,
                             "attention_bias": "all_but_key"}),
            ("a head", {"output_transform": True, "positions": "learned"})):
        for dtype, tokens in (
                ("float64", 6), ("float64", MANY), (FLOAT32, MANY)):
            yield from searched(
                engine, f"{dtype}, {what}, {tokens}", changes, source, dtype,
                max_tokens=tokens)
    for dtype, factor in ("float64", 30.0), (FLOAT32, 9.0):
        yield from searched(
            engine, f"{dtype}, high scores", {}, source, dtype,
            {".query.kernel": factor, ".key.kernel": factor}, max_tokens=6)


def long_beams(engine):
    """Beams of three sources and two layers that go on to the last place."""
    source = cases.ids("source", 3, 7, CONFIG.source_vocab)
    source[1, 4:] = CONFIG.pad_id
    for width in 2, 4:
        yield from searched(
            engine, f"{width}", {"n_decoder_layers": 2, "n_heads": 4}, source,
            times={".kernel": 1.5, ".table": 1.5}, method="beam", beam=width,
            max_tokens=110, length_rule="hf_never")
    with lowered(engine, "cache", ROOM=16):
        yield from searched(
            engine, "3, more room at times", {"n_decoder_layers": 2}, source,
            times={".kernel": 1.5, ".table": 1.5}, method="beam", beam=3,
            max_tokens=110, length_rule="hf_never")


def far_searches(engine):
    """Searches of more tokens than a cache has room for at first."""
    source = cases.ids("source", 2, 7, CONFIG.source_vocab)
    for what, settings in (("greedy", {}),
                           ("a beam", {"method": "beam", "beam": 2})):
        yield from searched(
            engine, what, {"max_length": FAR // 7}, source,
            max_tokens=FAR // 8, **settings)


def large_sources(engine):
    """Searches of so many source tokens that they are encoded another way."""
    source = cases.ids("source", *SOURCES, CONFIG.source_vocab)
    padded = np.where(np.arange(SOURCES[1]) < np.arange(5, 35, 3)[:, None],
                      source, CONFIG.pad_id)
    for what, changes, settings in (
            ("plain", {}, {}),
            ("a beam", {"residual": "pre"}, {"method": "beam", "beam": 2}),
            ("relative", {"positions": "relative"}, {}),
            ("heads that share", {"n_kv_heads": 1}, {"cached": False}),
            ("norms of stacks", {"final_norm": True}, {})):
        yield from searched(engine, what, changes, padded, max_tokens=5,
                            **settings)
    yield from searched(
        engine, f"{FLOAT32}, plain", {}, padded, FLOAT32, max_tokens=5)
    model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
    yield "predicted", engine.predict(model, *Batch.of_ids(padded, padded))
    far = cases.ids("source", 1, FAR // 8, CONFIG.source_vocab)
    yield from searched(
        engine, "blocks", {"max_length": FAR // 8}, far, max_tokens=5)


def short_searches(engine):
    """Searches of many words, of n-grams nearly as long, and of two ends."""
    source = cases.ids("source", 2, 7, CONFIG.source_vocab)
    yield from searched(
        engine, "words", {"source_vocab": BEYOND, "target_vocab": BEYOND},
        source, method="beam", beam=4, max_tokens=4)
    for n in 4, 6:
        yield from searched(engine, f"{n}-grams", {}, source, max_tokens=6,
                            no_repeat_ngram=n)
    yield from searched(
        engine, "two ends", {}, source, method="beam", beam=1, max_tokens=8,
        more_eos_ids=tuple(range(3, CONFIG.target_vocab, 2)))


def high_logits(engine):
    """A loss of logits whose exponentials are beyond any number."""
    config = CONFIG.replace(tied="none")
    weights = probe_weights(config, 3)
    weights["projection.kernel"] *= 1e4
    trainer = engine.trainer(engine.build("transformer", config, weights),
                             TrainingConfig(warmup_steps=3))
    yield from engine.train_step(trainer, *(
        cases.ids(name, 2, 6, config.target_vocab)[None]
        for name in ("source", "target"))).items()


def native_places(engine):
    """A framework's own masks: others in places of one shape."""
    readable = engine.__package__.removesuffix(".fast")
    name = f"{engine.__package__}.dropout"
    dropout = importlib.import_module(
        name if importlib.util.find_spec(name) else f"{readable}.dropout")
    key = importlib.import_module(f"{readable}.random").key(3)
    one, other = (engine.to_numpy(mask) for mask in dropout.draw(
        key, {"a": (40, 50), "b": (40, 50)}, 0.3, True).values())
    yield "others", np.array([float(np.mean(one != other) > 0.3)])


def asked_again(engine):
    """Searches, short and long, before training and after it."""
    config = CONFIG.replace(dropout=0.0)
    for dtype, tokens, sources in (
            ("float64", 8, (2, 6)), ("float64", MANY, (2, 6)),
            ("float64", MANY, (1, 6)), (FLOAT32, MANY, (2, 6)),
            ("float64", 3, SOURCES)):
        source, target = (cases.ids(name, *sources, config.source_vocab)
                          for name in ("source", "target"))
        model = engine.build(
            "transformer", config, probe_weights(config, 3), dtype)
        trainer = engine.trainer(
            model, TrainingConfig(schedule="constant", learning_rate=0.1))
        named = f"{dtype}, {len(source)} rows, {tokens} tokens"
        for time, most in enumerate((tokens, tokens, 5)):
            for name, array in engine.generate(
                    model, source, GenerationConfig(
                        max_tokens=most, eos_id=2)).items():
                yield f"{named}, {time}, {name}", array
            yield f"{named}, {time}, loss", engine.train_step(
                trainer, source[None], target[None])["loss"]
        yield f"{named}, number of weights", np.array(
            [float(len(engine.export(model)))])


def lowered(engine, module, **numbers):
    """Lower numbers of a form's module while it computes, if it has them."""
    name = f"{engine.__package__}.{module}"
    if importlib.util.find_spec(name):
        found = importlib.import_module(name)
        here = {key: value for key, value in numbers.items()
                if hasattr(found, key)}
        if here:
            return mock.patch.multiple(found, **here)
    return contextlib.nullcontext()


def large_batches(engine):
    """Training on more labels and scores than a block of either has."""
    rows, length = LARGE
    source, target = (cases.ids(name, rows, length, WORDS)
                      for name in ("source", "target"))
    for row in range(1, rows, 2):
        source[row, length - 3 * row:] = target[row, length - 2 * row:] = 0
    for tied, dropout in ("none", 0.0), ("all", 0.2):
        config = CONFIG.replace(source_vocab=WORDS, target_vocab=WORDS,
                                tied=tied, dropout=dropout)
        answers = {}
        for threads in THREADS:
            model = engine.build(
                "transformer", config, probe_weights(config, 3))
            trainer = engine.trainer(model, TrainingConfig(warmup_steps=3))
            if hasattr(trainer, "threads"):
                trainer.threads, answers = threads, {}
            with lowered(engine, "loss", MOST=2**20):
                answers = answers or {
                    **engine.train_step(trainer, source[None], target[None]),
                    **engine.moments(trainer), **engine.export(model)}
            for name, array in answers.items():
                if not name.endswith("key.bias"):  # its gradient is rounding
                    yield f"{tied}, {threads}, {name}", array


def far_tokens(engine):
    """Training on so many tokens that blocks of attention are doubled."""
    for rows, heads, length in (1, 1, FAR), (3, 2, FAR // 8 + 9):
        config = FARTHEST.replace(n_heads=heads)
        source = cases.ids("source", rows, length, config.source_vocab)
        target = cases.ids("target", rows, length + 1, config.target_vocab)
        for row in range(rows):
            source[row, length - 7 * row - 5:] = config.pad_id
            target[row, length - 7 * row - 5:] = config.pad_id
        model = engine.build("transformer", config, probe_weights(config, 3))
        trainer = engine.trainer(model, TrainingConfig(warmup_steps=3))
        with lowered(engine, "blocks", THREADS=max(THREADS), CORES=2):
            answers = {
                "output": engine.predict(
                    model, *Batch.of_ids(source, target[:, 1:])),
                **engine.train_step(trainer, source[None], target[None]),
                **engine.moments(trainer)}
        for name, array in answers.items():
            yield f"{length}, {name}", array


FAST = (long_searches, long_searches_in_float32, large_sources,
        varied_searches, long_beams, far_searches, short_searches,
        large_batches, far_tokens, high_logits, native_places, asked_again)
TRAINED = large_batches, far_tokens, high_logits, asked_again
