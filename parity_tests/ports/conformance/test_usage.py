"""What users do: several models at once, ids of any dtype, resuming again."""

import numpy as np
import pytest

from transformer_contract.batch import Batch
from parity_io.errors import InputError
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity.check import cases
from parity_tests.support.conformance import (
    BOTH, FAST, READABLE, SMALL, WORDS, batch_of, like_the_reference, model_of,
    quick, raises)

pytestmark = pytest.mark.long

#: The dtypes that a user's ids may have: unsigned ones know no -1.
IDS = ("uint8", "uint16", "int32", "int64")

#: A learning rate and a decay whose product is above 1, so that weights change
#: their sign.
DECAYED = TrainingConfig(
    optimizer="adamw", schedule="constant", learning_rate=0.5,
    weight_decay=3.0)

#: Temperatures at which a draw is of the best, and is not yet.
COLD = 1e-4, 1e-3, 1e-2

#: The best logits of a row of COLD, apart by less than some.
NEAR = np.array([0.0, 1e-3, -1e-3, 5e-4, 1.5e-3])

#: After which steps a trainer is resumed, a later and an earlier one.
AGAIN = 9, 4

#: By what models differ that are built one after the other.
RELATIVES = (
    {"position_rounding": "float32"}, {}, {"position_divisor": "half_less_one"},
    {"position_start": 2}, {"position_start": 2, "position_padding": True},
    {"positions": "rotary_halves"},
    {"positions": "rotary_halves", "rotary_base": 500.0},
    {"positions": "rotary_interleaved"}, {"attention_scale": "none"},
    {"begin": "zero"})

#: No key of a head has as many features as d_model / n_heads says, and two
#: heads share one.
NARROW = SMALL.replace(
    d_head=5, n_heads=4, n_kv_heads=2, dropout=0.0)

#: One that takes any row, and one that divides by how much a row varies.
NORMS = "layer", "std"

#: A few tokens more than a block of keys has where attention goes by blocks.
LENGTH = 520


@like_the_reference(*BOTH, trained=True)
def test_two_models_alternating(engine):
    """Two models of one config, asked in turn, and two trainers of them."""
    models = [engine.build("transformer", SMALL, probe_weights(SMALL, seed))
              for seed in (3, 4)]
    batch = batch_of("twins", 2, 5)
    for turn, model in enumerate((*models, models[0])):
        yield f"output, {turn}", engine.predict(model, *batch)
        for name, array in engine.generate(
                model, batch.source, GenerationConfig(max_tokens=3)).items():
            yield f"{name}, {turn}", array
    trainers = [engine.trainer(model, TrainingConfig(
        schedule="constant", learning_rate=rate, seed=rate))
        for model, rate in zip(models, (1, 2))]
    for turn in range(2):
        for place, trainer in enumerate(trainers):
            for name, array in engine.train_step(
                    trainer, batch.source[None], batch.target[None]).items():
                yield f"{name} of {place}, {turn}", array
    for place, model in enumerate(models):
        yield f"output of {place}, trained", engine.predict(model, *batch)


@like_the_reference(*BOTH)
def test_configs_differing_in_one_field(engine):
    """Models that differ in one field, one after the other, and searches."""
    batch = batch_of("relatives", 2, 5)
    longest = batch_of("longest", 1, SMALL.max_length)
    for changes in RELATIVES:
        config = SMALL.replace(d_head=4, **changes)
        model = engine.build("transformer", config, probe_weights(config, 3))
        for what, given in (("short", batch), ("long", longest)):
            yield f"{changes}, {what}", engine.predict(model, *given)
        for name, array in engine.generate(
                model, batch.source, GenerationConfig(
                    eos_id=0, max_tokens=4)).items():
            yield f"{changes}, {name}", array


@quick()
@like_the_reference(READABLE)
def test_memory_order(engine):
    """Weights and ids that lie in memory by columns, or backwards."""
    weights = {name: np.asfortranarray(array)
               for name, array in probe_weights(SMALL, 3).items()}
    batch = batch_of("orders", 3, 5)
    given = [np.asfortranarray(array[::-1])[::-1] for array in batch]
    model = engine.build("transformer", SMALL, weights)
    yield "output", engine.predict(model, *given)
    loss, gradients = engine.gradients(model, *given, given[1])
    yield "loss", loss
    for name in weights:
        yield f"gradient {name}", gradients[name]


@like_the_reference(FAST)
def test_ids_in_no_table(engine):
    """An id that is in no table, in all that takes ids."""
    model, batch = model_of(engine), batch_of("refused", 2, 5)
    batch.source[1, 2] = WORDS
    trainer = engine.trainer(model, TrainingConfig())
    for name, call in (
            ("predict", lambda: engine.predict(model, *batch)),
            ("generate", lambda: engine.generate(
                model, batch.source, GenerationConfig(max_tokens=3))),
            ("train", lambda: engine.train_step(
                trainer, batch.source[None], batch.target[None]))):
        yield name, np.array([float(raises(InputError, call))])


@like_the_reference(READABLE)
def test_ids_of_every_dtype(engine):
    """Ids of every dtype, in everything that takes them."""
    model = model_of(engine)
    batch = batch_of("dtypes", 2, 5)
    source, target = (array % 200 for array in (batch.source, batch.target))
    source[0, -2:] = target[0, -1:] = SMALL.pad_id
    for dtype in IDS:
        given = Batch.of_ids(
            source.astype(dtype), target.astype(dtype), SMALL.pad_id)
        labels = target.astype(dtype)
        yield f"output of {dtype}", engine.predict(model, *given)
        loss, gradients = engine.gradients(model, *given, labels)
        yield f"loss of {dtype}", loss
        for name in engine.export(model):
            yield f"gradient {name} of {dtype}", gradients[name]
        yield f"loss alone of {dtype}", engine.loss(
            cases.values("logits", 2, 5, 300), labels, SMALL.pad_id, 0.1,
            "uniform")
        for name, array in engine.masks(
                given.source, given.target, SMALL.pad_id).items():
            yield f"{name} of {dtype}", array
        for name, array in engine.generate(
                model, given.source, GenerationConfig(max_tokens=3)).items():
            yield f"{name} of {dtype}", array


def resumed(engine, trainer, step):
    """Have a trainer go on after a step, with moments that follow from it."""
    engine.resume(trainer, step, {
        f"{kind}.{name}": np.abs(cases.values(
            f"{kind} {name} {step}", *array.shape, scale=0.01))
        for kind in "mv"
        for name, array in engine.export(trainer.model).items()})


@like_the_reference(*BOTH, trained=True)
def test_resume_twice(engine):
    """A trainer that has made a step, resumed elsewhere, and once more."""
    model = model_of(engine)
    trainer = engine.trainer(model, TrainingConfig(warmup_steps=6, seed=11))
    batch = batch_of("again", 2, 5)
    for step in (0, *AGAIN):
        if step:
            resumed(engine, trainer, step)
        for name, array in engine.train_step(
                trainer, batch.source[None], batch.target[None]).items():
            yield f"{name} after {step}", array
    yield from engine.moments(trainer).items()
    yield from engine.export(model).items()


@like_the_reference(*BOTH, trained=True)
def test_decay_above_one(engine):
    """A decay that is larger than the weights that it decays."""
    model = model_of(engine)
    trainer = engine.trainer(model, DECAYED)
    resumed(engine, trainer, 1)
    batch = batch_of("decay", 2, 5)
    engine.train_step(trainer, batch.source[None], batch.target[None])
    yield from engine.export(model).items()


@like_the_reference(FAST)
def test_narrow_shared_heads(engine):
    """A cached search where heads are not as wide as d_model says."""
    weights = probe_weights(NARROW, 3)
    model = engine.build("transformer", NARROW, weights)
    source = batch_of("narrow", 3, 5).source
    for method in ("greedy", "beam", "sample"):
        for name, array in engine.generate(model, source, GenerationConfig(
                method=method, max_tokens=4)).items():
            yield f"{method}, {name}", array


def of_bias(engine, bias):
    """A model whose logits are the same everywhere: a bias [WORDS]."""
    weights = probe_weights(SMALL, 3)
    last = "decoder.layers.0.feed_forward_residual.norm"
    for name in (f"{last}.scale", f"{last}.bias"):
        weights[name] = np.zeros(SMALL.d_model)
    return engine.build(
        "transformer", SMALL, weights | {"projection.bias": bias})


@like_the_reference(*BOTH)
def test_low_temperature(engine):
    """Draws at low temperatures from tokens that are nearly as likely."""
    bias = np.full(WORDS, -50.0)
    bias[4:4 + len(NEAR)] = NEAR
    model, source = of_bias(engine, bias), batch_of("cold", 4, 5).source
    for temperature in COLD:
        for name, array in engine.generate(model, source, GenerationConfig(
                method="sample", temperature=temperature, eos_id=0,
                max_tokens=9)).items():
            yield f"{temperature}, {name}", array


@like_the_reference(FAST)
def test_candidates_as_likely(engine):
    """A beam whose candidates are all as likely, but for one far behind."""
    model = of_bias(engine, np.eye(WORDS)[WORDS - 9])
    yield from engine.generate(
        model, batch_of("ties", 2, 5).source, GenerationConfig(
            method="beam", beam=9, eos_id=299, max_tokens=3)).items()


@quick()
@like_the_reference(*BOTH)
def test_eos_above_255(engine):
    """An end beyond 255, alone or of two, and the word that is 256 before;
    and the first word of all as an end."""
    source = batch_of("ends", 2, 5).source
    for best, eos, several in (5, 261, ((), (298,))), (0, 0, ((),)):
        model = of_bias(engine, np.eye(WORDS)[best])
        for method in ("greedy", "beam"):
            for more in several:
                for name, array in engine.generate(
                        model, source, GenerationConfig(
                            method=method, eos_id=eos, more_eos_ids=more,
                            max_tokens=3)).items():
                    yield f"{method}, {eos}, {more}, {name}", array


@like_the_reference(READABLE)
def test_suppressed_words_above_255(engine):
    """Words beyond 255 that would be found, and may not be."""
    model, source = model_of(engine), batch_of("banned", 3, 5).source
    free = GenerationConfig(eos_id=0, max_tokens=3)
    first = np.unique(engine.generate(model, source, free)["tokens"])
    for method in ("greedy", "beam", "sample"):
        for rule in ("suppress_tokens", "begin_suppress_tokens"):
            for name, array in engine.generate(model, source, free.replace(
                    method=method, **{rule: (*first.tolist(), *range(
                        256, 290))})).items():
                yield f"{method}, {rule}, {name}", array


@like_the_reference(FAST)
def test_sampled_rows_by_number(engine):
    """Draws of rows that are not the first, with a rule."""
    model, source = model_of(engine), batch_of("rows", 3, 5).source
    for least in (1, 2):
        for name, array in engine.generate(
                model, source, GenerationConfig(
                    method="sample", min_tokens=least, max_tokens=3),
                np.array([7, 2, 300])).items():
            yield f"{least}, {name}", array


@like_the_reference(FAST, trained=True)
def test_training_mostly_on_padding(engine):
    """A step of training of which most is padding, whose id is not 0."""
    batch = batch_of("padding", 12, 24)
    for array in (batch.source, batch.target):
        array[:9, 3:] = NARROW.pad_id
    for norm in NORMS:
        config = NARROW.replace(norm=norm)
        model = engine.build("transformer", config, probe_weights(config, 3))
        trainer = engine.trainer(model, TrainingConfig(warmup_steps=3))
        for name, array in {
                **engine.train_step(
                    trainer, batch.source[None], batch.target[None]),
                **engine.moments(trainer), **engine.export(model)}.items():
            yield f"{norm}, {name}", array


@like_the_reference(FAST, trained=True)
def test_training_without_dropout(engine):
    """Training on as many tokens as blocks of keys have, and no dropout."""
    config = NARROW.replace(max_length=LENGTH)
    model = engine.build("transformer", config, probe_weights(config, 3))
    trainer = engine.trainer(model, TrainingConfig(warmup_steps=3))
    batch = batch_of("square", 1, LENGTH)
    yield from engine.train_step(
        trainer, batch.source[None], batch.target[None]).items()
    yield from engine.moments(trainer).items()
