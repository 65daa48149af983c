"""Sizes at which a fast form takes a rarely used branch."""

import importlib
import importlib.util

import numpy as np
import pytest

from transformer_contract.batch import Batch
from transformer_contract.components import WHOLE
from transformer_contract.config import PLAIN
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights, select
from parity.check import cases
from parity_tests.support.conformance import (
    FAR, FAST, ODD, like_the_reference, lowered)
from parity_tests.support.engines import usable

pytestmark = pytest.mark.long

#: So many words that few labels have more logits than a block.
WORDS = 2100

#: B, and S and T, of a batch with more labels, and more scores, than a block.
LARGE = 12, 60

#: Queries and keys, and which blocks of them may have numbers of their own:
#: rows, heads and queries. None is a whole number of blocks of BLOCK.
QUERIES, KEYS, BLOCK = 13, 11, 5
OWN = (1, 1, 1), (3, 1, 1), (1, 2, 1), (3, 2, 1), (1, 1, QUERIES), (
    3, 2, QUERIES)

#: Kinds of attention that blocks know.
KINDS = ({}, {"d_head": 4, "n_heads": 2, "n_kv_heads": 1},
         {"positions": "rotary_halves"}, {"attention_scale": "none"})

#: Added to each feature of a query: scores are about -980, or what they were.
LOW = -400, 0

#: Among how many threads rows are shared out where a form does that itself.
THREADS = 1, 3

#: A model of one head, all of whose numbers are few but these.
FARTHEST = PLAIN.replace(
    source_vocab=7, target_vocab=7, d_model=4, n_heads=1, d_ff=3,
    n_encoder_layers=1, n_decoder_layers=1, max_length=FAR, norm_eps=1e-5,
    stacks="encoder", attention_bias="all_but_key", dropout=0.0)


@like_the_reference(FAST, trained=True)
def test_large_batches(engine):
    """Training on more labels and scores than a block of either has."""
    rows, length = LARGE
    source, target = (cases.ids(name, rows, length, WORDS)
                      for name in ("source", "target"))
    for row in range(1, rows, 2):
        source[row, length - 3 * row:] = target[row, length - 2 * row:] = 0
    for tied, dropout in ("none", 0.0), ("all", 0.2):
        config = ODD.replace(source_vocab=WORDS, target_vocab=WORDS,
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


@like_the_reference(FAST, trained=True)
def test_far_tokens(engine):
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


@like_the_reference(FAST)
def test_own_masks_over_blocks(engine):
    """Masks of one's own where attention goes by blocks, of each kind.

    Exponentials of low scores are 0, and those of their opposites no numbers.
    """
    x = cases.values("x", 3, QUERIES, ODD.d_model)
    memory = cases.values("memory", 3, KEYS, ODD.d_model)
    path = "decoder.layers.0.cross_attention."
    for changes in KINDS:
        config = ODD.replace(**changes)
        weights = dict(select(probe_weights(config, 3), path))
        for low in LOW:
            module = engine.build("multi_head_attention", config, {
                **weights, "query.bias": weights["query.bias"] + low,
                "key.bias": weights["key.bias"] + (low < 0)})
            for axes in OWN:
                mask = cases.values(f"mask {axes}", *axes, KEYS) > 0
                with lowered(engine, "blocks", SIZE=BLOCK):
                    yield f"{changes}, {low}, {axes}", engine.run(
                        module, x, memory, mask,
                        **WHOLE["multi_head_attention"])["output"]


@like_the_reference(FAST, trained=True)
def test_high_logits(engine):
    """A loss of logits whose exponentials are beyond any number."""
    config = ODD.replace(tied="none")
    weights = probe_weights(config, 3)
    weights["projection.kernel"] *= 1e4
    trainer = engine.trainer(engine.build("transformer", config, weights),
                             TrainingConfig(warmup_steps=3))
    yield from engine.train_step(trainer, *(
        cases.ids(name, 2, 6, config.target_vocab)[None]
        for name in ("source", "target"))).items()


@like_the_reference(FAST)
def test_native_masks_differ_by_place(engine):
    """A framework's own masks: others in places of one shape."""
    readable = engine.__package__.removesuffix(".fast")
    name = f"{engine.__package__}.dropout"
    dropout = importlib.import_module(
        name if importlib.util.find_spec(name) else f"{readable}.dropout")
    key = importlib.import_module(f"{readable}.random").key(3)
    one, other = (engine.to_numpy(mask) for mask in dropout.draw(
        key, {"a": (40, 50), "b": (40, 50)}, 0.3, True).values())
    yield "others", np.array([float(np.mean(one != other) > 0.3)])


@pytest.mark.parametrize("name, module, number", [
    ("torch", "loss", "MOST"), ("jax", "blocks", "CORES"),
    ("keras", "blocks", "CORES"), ("numpy", "blocks", "THREADS"),
    ("jax", "blocks", "SIZE"), ("keras", "blocks", "SIZE"),
    ("numpy", "blocks", "SIZE"),
    ("numpy", "cache", "MANY"), ("numpy", "layout", "SMALL"),
    ("keras", "cache", "ROOM"), ("keras", "cache", "MANY"),
    ("jax", "cache", "ROOM")])
def test_a_number_that_is_lowered_is_there(name, module, number):
    """Under another name it would stay, and its branch not be taken."""
    fast = usable(name, "fast")
    found = importlib.import_module(f"{fast.__package__}.{module}")
    before = getattr(found, number)
    with lowered(fast, module, **{number: before + 1}):
        assert getattr(found, number) == before + 1
    assert getattr(found, number) == before
