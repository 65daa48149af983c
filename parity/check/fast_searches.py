"""What fast forms' searches are asked: long, far, of models of many kinds.

As in parity.check.extremes, which lists them: each function yields (what is
asked, an array) of an engine, and the reference is right.
"""

import contextlib
import copy
import importlib
import warnings

import numpy as np

from contract.batch import Batch
from contract.fast_forms import NotAsBuilt
from contract.generation import GenerationConfig
from contract.training import TrainingConfig
from contract.weights import probe_weights
from parity.check import cases
from parity.check.branches import CONFIG, FAR, FLOAT32, lowered

#: Tokens of a search for which weights are laid out anew.
MANY = 70

#: Strips of few outputs, of which a small weight has some, on any processor.
STRIPS = {"takes_small": lambda: True, "STRIPS": (5, 3), "SMALL": 400}

#: B and S of sources that are encoded another way.
SOURCES = 10, 33

#: So many that a beam of four has more candidates than 15 bits count.
BEYOND = 20_001

#: More tokens than any cache has room for at first.
BEHIND = 560

#: Few words; and by what weights are multiplied, the projection's besides, and
#: their seed: the likeliest is so by far, two hypotheses go on side by side,
#: and 243, 348 and 409 tokens behind where they part they change places.
FEW, SHARP = 23, ((2.0, 2.0, 1), (1.5, 2.0, 0), (3.0, 4.0, 2))

#: Parts of a model that a user may replace.
PARTS = (*(f"decoder.layers.0.{name}" for name in (
    "self_attention.value", "self_attention.query", "self_attention.key",
    "self_attention.output", "cross_attention.query", "feed_forward.inner",
    "feed_forward", "self_attention", "cross_attention")),
    "projection", "decoder.norm", "encoder.layers.0", "decoder.layers.0",
    "decoder")

#: What else models are that all are as they were built.
BUILT = ({}, {"tied": "none", "gated": True}, {"positions": "learned"},
         {"positions": "relative"}, {"positions": "rotary_halves"},
         {"norm": "rms", "residual": "pre", "final_norm": True},
         {"output_transform": True, "output_bias": True})


def searched(engine, what, changes, source, dtype="float64", times=None,
             more=None, weights_seed=3, **settings):
    """Yield what a search of a changed model writes.

    Args:
        times: {end of a weight's name: what it is multiplied by}.
        more: {name: what is added to a weight}.
    """
    config = CONFIG.replace(**changes)
    weights = probe_weights(config, weights_seed)
    for name, array in (more or {}).items():
        weights[name] = weights[name] + array
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
            ("long heads that share",
             {"n_heads": 4, "n_kv_heads": 2, "d_head": 5}, 2),
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
    with lowered(engine, "cache", ROOM=16, MANY=1):
        yield from searched(
            engine, "3, more room at times", {"n_decoder_layers": 2}, source,
            times={".kernel": 1.5, ".table": 1.5}, method="beam", beam=3,
            max_tokens=110, length_rule="hf_never")


def searches_of_few_rows(engine):
    """Searches whose products are made in strips, on any processor."""
    source = cases.ids("source", 5, 7, CONFIG.source_vocab)
    for what, changes, rows, settings in (
            ("gated, a bias, heads that share",
             {"gated": True, "output_bias": True, "n_kv_heads": 1}, 5, {}),
            ("few biases, not tied",
             {"attention_bias": "all_but_key", "feed_forward_bias": False,
              "tied": "none"}, 2, {}),
            ("a beam", {}, 3, {"method": "beam", "beam": 3})):
        with lowered(engine, "layout", **STRIPS):
            yield from searched(engine, f"few rows, {what}", changes,
                                source[:rows], max_tokens=40, **settings)


def far_searches(engine):
    """Searches of more tokens than a cache has room for at first."""
    source = cases.ids("source", 2, 7, CONFIG.source_vocab)
    far = {"max_length": BEHIND + 1}
    for what, changes, settings in (
            ("greedy", {}, {}), ("heads that share", {"n_kv_heads": 1}, {}),
            ("a sample", {}, {"method": "sample", "seed": 5})):
        yield from searched(engine, what, far | changes, source,
                            max_tokens=BEHIND, **settings)
    with lowered(engine, "cache", ROOM=16, MANY=1):
        for what, dtype, rows, changes in (
                ("greedy", "float64", 1, {}), ("greedy", FLOAT32, 2, {}),
                ("heads that share", "float64", 2, {
                    "n_kv_heads": 1, "attention_scale": "none"})):
            yield from searched(
                engine, f"{dtype}, {what}, more room at times", changes,
                source[:rows], dtype, max_tokens=MANY + 1)


def swaps(engine):
    """Beams whose hypotheses part early and change places until the end."""
    source = cases.ids("source", 2, 7, FEW)
    for rows, width, tokens, (factor, sharper, seed) in (
            (1, 2, 300, SHARP[0]), (2, 3, 300, SHARP[0]),
            (2, 3, BEHIND, SHARP[1]), (2, 3, BEHIND, SHARP[2])):
        yield from searched(
            engine, f"{rows} rows, {width}, {tokens}, {seed}", {
                "source_vocab": FEW, "target_vocab": FEW, "residual": "pre",
                "final_norm": True, "tied": "none", "max_length": BEHIND + 1},
            source[:rows], times={".kernel": factor, ".table": factor,
                                  "projection.kernel": sharper},
            weights_seed=seed, method="beam", beam=width, max_tokens=tokens,
            length_rule="hf_never")


def large_sources(engine):
    """Searches of so many source tokens that they are encoded another way."""
    source = cases.ids("source", *SOURCES, CONFIG.source_vocab)
    padded = np.where(np.arange(SOURCES[1]) < np.arange(5, 35, 3)[:, None],
                      source, CONFIG.pad_id)
    for what, changes, settings in (
            ("plain", {}, {}),
            ("a beam", {"residual": "pre"}, {"method": "beam", "beam": 2}),
            ("relative", {"positions": "relative"}, {}),
            ("heads that share", {"n_kv_heads": 1},
             {"method": "beam", "beam": 2, "cached": False}),
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
    for method, beam in ("greedy", 1), ("beam", 1), ("beam", 3), ("sample", 1):
        yield from searched(
            engine, f"a begin that ends, {method}, {beam}", {}, source,
            method=method, beam=beam, max_tokens=6, bos_id=4, eos_id=4)
    again = 8 * np.eye(CONFIG.target_vocab)[1]  # the begin, all the time
    for n in 5, 6, 7:
        yield from searched(
            engine, f"{n} times the same", {"output_bias": True}, source,
            more={"projection.bias": again}, max_tokens=6, no_repeat_ngram=n)


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


def changed_weights(engine):
    """Long searches of one model, between which one of its weights changes."""
    source = cases.ids("source", 2, 6, CONFIG.source_vocab)
    model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
    settings, before = GenerationConfig(max_tokens=MANY, eos_id=2), []
    layer = "decoder.layers.0."
    for name in ("", f"{layer}self_attention.value.kernel",
                 f"{layer}self_attention.query.bias",
                 f"{layer}cross_attention.output.kernel",
                 f"{layer}feed_forward.inner.kernel",
                 "source_embedding.table", "source_embedding.table"):
        if name:  # what was before lives on
            before.append(multiplied(engine, model, name, -3.0))
        with lowered(engine, "layout", **(STRIPS if len(before) % 2 else {})):
            found = engine.generate(model, source, settings)
        for what, array in found.items():
            yield f"{name} {len(before)}, {what}", array


def empty_sources(engine):
    """Searches of sources of which one is padding alone."""
    source = cases.ids("source", 2, 6, CONFIG.source_vocab)
    source[1] = CONFIG.pad_id
    for what, settings in (
            ("greedy", {"max_tokens": 10}), ("long", {"max_tokens": MANY}),
            ("a beam", {"method": "beam", "beam": 3, "max_tokens": 10})):
        with lowered(engine, "cache", MANY=1):
            yield from searched(engine, what, {}, source, **settings)


def parts_of_others(engine):
    """A model with one part that doubles what it gives: each is called."""
    for path in PARTS:
        model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
        doubled(at(engine, model, path))
        yield from answers(engine, model, path)


def ways_of_others(engine):
    """A model with a method of its own, a hook, or another number."""
    for change in (with_methods, hooked, hooked_before, with_a_function,
                   with_an_output, with_a_divisor, with_a_map_twice):
        model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
        change(engine, model)
        yield from answers(engine, model, change.__name__)


def ways_of_a_rotary_model(engine):
    """A model with rotary positions whose weights of attention double."""
    config = CONFIG.replace(positions="rotary_halves")
    source = cases.ids("source", 2, 6, CONFIG.source_vocab)
    for what in "answers", "steps":
        model = engine.build("transformer", config, probe_weights(config, 3))
        doubled(model.decoder.layers[0].self_attention.weights_dropout)
        if what == "answers":
            yield from answers(engine, model, what)
        else:
            with unwarned():
                yield "output", engine.forward(
                    model, *Batch.of_ids(source, source))["output"]


def changes_after_answers(engine):
    """A model that has answered, and is given another table or map."""
    for change in with_a_table, with_a_map_twice, with_a_start:
        model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
        for when in "before", "after":
            yield from answers(engine, model, f"{when} {change.__name__}")
            if when == "before":
                change(engine, model)


def parts_in_turn(engine):
    """A model that is given other parts between its searches."""
    yield "as built", np.array([getattr(engine, "as_built", bool)(engine.build(
        "transformer", CONFIG.replace(**changes), probe_weights(
            CONFIG.replace(**changes)))) for changes in BUILT])
    model, like, other = (engine.build(
        "transformer", CONFIG.replace(activation=word), probe_weights(
            CONFIG, seed)) for word, seed in (
                ("relu", 3), ("relu", 4), ("gelu", 5)))
    first = model.decoder
    for what, decoder in (("first", first), ("like it", like.decoder),
                          ("other", other.decoder), ("first again", first)):
        model.decoder = decoder
        yield from answers(engine, model, what)
    with_an_output(engine, model)
    yield from answers(engine, model, "of another output")
    doubled(model.decoder.layers[0].feed_forward)
    yield from answers(engine, model, "of another kind")


def training_of_others(engine):
    """Training of a model with a part of a kind of a user's own."""
    source, target = (cases.ids(name, 2, 6, CONFIG.source_vocab)
                      for name in ("source", "target"))
    for what, path in ("method", ""), ("part", "decoder.layers.0.feed_forward"):
        model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
        doubled(at(engine, model, path), *["project"] * (not path))
        with unwarned():
            yield f"{what}, loss alone", engine.gradients(
                model, *Batch.of_ids(source, target[:, :-1]), target[:, 1:])[0]
            yield f"{what}, loss", engine.train_step(
                engine.trainer(model, TrainingConfig()),
                source[None], target[None])["loss"]
    with unwarned():
        yield from trained(engine, source, target)


def training_in_turn(engine):
    """Training of a model by two trainers, and by a copy of one."""
    with unwarned():
        yield from trained_in_turn(engine, *(
            cases.ids(name, 2, 6, CONFIG.source_vocab)
            for name in ("source", "target")))


def trained_in_turn(engine, source, target):
    """Yield losses, between which weights are changed too."""
    model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
    training = TrainingConfig(schedule="constant", learning_rate=0.01)
    first, second = (engine.trainer(model, training) for _ in range(2))
    for i, trainer in enumerate((first, first, second, first)):
        yield f"in turn, loss {i}", engine.train_step(
            trainer, source[None], target[None])["loss"]
        if i == 1:
            multiplied(engine, model, "source_embedding.table", 0.5)
    if engine.NAME != "keras":  # which lets no layer be copied
        first = copy.deepcopy(first)
    for i in 1, 2:
        yield f"of a copy, loss {i}", engine.train_step(
            first, source[None], target[None])["loss"]
    model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
    transposed(engine, model)
    trainer = engine.trainer(model, training)
    for i in 1, 2:
        yield f"of transposed weights, loss {i}", engine.train_step(
            trainer, source[None], target[None])["loss"]


def trained(engine, source, target):
    """Yield a gradient, and losses between which training is resumed."""
    config = CONFIG.replace(tied="none")
    model = engine.build("transformer", config, probe_weights(config, 3))
    part = model.decoder.layers[0].feed_forward
    part.__class__ = type(type(part))("Another", (type(part),), {})
    trainer = engine.trainer(
        model, TrainingConfig(schedule="constant", learning_rate=0.01))
    yield "gradient", engine.gradients(
        model, *Batch.of_ids(source, target[:, :-1]), target[:, 1:])[1][
            "decoder.layers.0.feed_forward.inner.kernel"]
    for step in 1, 2, 3:
        yield f"loss {step}", engine.train_step(
            trainer, source[None], target[None])["loss"]
        engine.resume(trainer, step, engine.moments(trainer))


def answers(engine, model, what):
    """Yield what a model writes and predicts, weights laid out if it may."""
    source = cases.ids("source", 2, 6, CONFIG.source_vocab)
    with (unwarned(), lowered(engine, "layout", LONG=1, **STRIPS),
          lowered(engine, "search", LONG=1)):
        for rows in 1, 2:
            for name, array in engine.generate(
                    model, source[:rows], GenerationConfig(
                        max_tokens=3, eos_id=2)).items():
                yield f"{what}, {rows}, {name}", array
        yield f"{what}, predicted", engine.predict(
            model, *Batch.of_ids(source, source))


@contextlib.contextmanager
def unwarned():
    """Nothing is said of parts that are not as they were built."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotAsBuilt)
        yield


def at(engine, model, path):
    """A model's part; Keras has another name for attention's maps."""
    for name in path.split(".") if path else ():
        if engine.NAME == "keras" and name in (
                "query", "key", "value", "output"):
            name += "_dense"
        model = model[int(name)] if name.isdigit() else getattr(model, name)
    return model


def twice(function):
    """The function, which returns twice as much."""
    def doubling(*given, **keywords):
        y = function(*given, **keywords)
        return (2 * y[0], *y[1:]) if isinstance(y, tuple) else 2 * y
    return doubling


def doubled(module, name=""):
    """Have a module return twice what its kind does, or a method of it."""
    kind = type(module)
    name = name or next(name for name in ("call", "forward", "__call__")
                        if hasattr(kind, name))
    module.__class__ = type(kind)(
        "Another", (kind,), {name: twice(getattr(kind, name))})


def with_methods(engine, model):
    """Give a model methods of its own."""
    for name in "decode", "project":
        setattr(model, name, twice(getattr(model, name)))


def hooked(engine, model):
    """Double what a part gives, by a hook where there are hooks."""
    part = model.decoder.layers[0].self_attention
    if engine.NAME == "torch":
        part.register_forward_hook(lambda module, given, y: 2 * y)
    else:
        doubled(part)


def hooked_before(engine, model):
    """Double what a map is given, by a hook where there are hooks."""
    part = at(engine, model, "decoder.layers.0.self_attention.query")
    if engine.NAME == "torch":
        part.register_forward_pre_hook(lambda module, given: (2 * given[0],))
    else:
        kind, name = type(part), "call" if engine.NAME == "keras" else (
            "__call__")
        given = getattr(kind, name)
        part.__class__ = type(kind)("Another", (kind,), {
            name: lambda self, x: given(self, 2 * x)})


def with_an_output(engine, model):
    """Give a model another function of its logits."""
    model.output_function = twice(model.output_function)


def with_a_divisor(engine, model):
    """Give an attention another divisor; Keras has it as a factor too."""
    attention = model.decoder.layers[0].self_attention
    attention.divisor = 5.0
    if engine.NAME == "keras":
        attention._inverse_sqrt_key_dim = np.float64(1 / 5)


def with_a_map_twice(engine, model):
    """Have an attention take values for keys."""
    attention = model.decoder.layers[0].cross_attention
    if engine.NAME == "keras":
        attention._key_dense = attention.value_dense
    else:
        attention.key = attention.value


def with_a_table(engine, model):
    """Give a model another table of positions."""
    for side in model.source_positions, model.target_positions:
        if engine.NAME == "jax":  # it has none of its own
            kind = type(side)
            side.__class__ = type(kind)("Another", (kind,), {"table": property(
                lambda self, kind=kind: kind.table.__get__(self) * 1.5)})
        else:
            side.table = side.table * 1.5


def with_a_start(engine, model):
    """Have a model's positions begin elsewhere."""
    model.target_positions.first = 3


def transposed(engine, model):
    """Have a map's kernel, and a table, lie in memory the other way round."""
    module = importlib.import_module(
        f"{engine.__package__.removesuffix('.fast')}.parameters")
    for name, leaf, *attribute in module.leaves(model):
        if name in ("source_embedding.table",
                    "decoder.layers.0.feed_forward.inner.kernel"):
            if engine.NAME == "numpy":
                setattr(leaf, attribute[0],
                        np.asfortranarray(getattr(leaf, attribute[0])))
            elif engine.NAME == "torch":
                leaf.data = leaf.data.T.contiguous().T


def with_a_function(engine, model):
    """Double what a map gives, by its activation where it may have one."""
    part = at(engine, model, PARTS[0])
    if engine.NAME == "keras":
        part.activation = twice(part.activation)
    else:
        doubled(part)


def multiplied(engine, model, name, factor):
    """Multiply a weight of a model, as its users do; returns the old one."""
    module = importlib.import_module(
        f"{engine.__package__.removesuffix('.fast')}.parameters")
    leaf, *attribute = {
        found: rest for found, *rest in module.leaves(model)}[name]
    if engine.NAME in ("numpy", "mlx"):
        old = getattr(leaf, attribute[0])
        setattr(leaf, attribute[0], factor * old)
    elif engine.NAME == "torch":
        old, leaf.data = leaf.data, factor * leaf.data
    elif engine.NAME == "keras":
        old = leaf.value
        leaf.assign(factor * old)
    else:
        old = leaf[...]
        leaf[...] = factor * old
    return old


FAST = (long_searches, long_searches_in_float32, large_sources,
        varied_searches, long_beams, searches_of_few_rows, far_searches,
        swaps, short_searches, asked_again, changed_weights, empty_sources,
        parts_of_others, ways_of_others, ways_of_a_rotary_model,
        changes_after_answers, parts_in_turn, training_of_others,
        training_in_turn)
TRAINED = asked_again, training_of_others, training_in_turn
