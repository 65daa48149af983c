"""Edits of somebody who did not know the check: what is far, many or tiny."""

import functools
import importlib
import inspect
from unittest import mock

import pytest

from transformer_contract.errors import InputError
from parity import ports
from parity.check import branches, conditions, extremes, face
from parity.mutation.mutants import Mutant
from parity.mutation.results import KILLED
from parity.mutation.run import IMPORT, Hunt
from parity.mutation.source import ParsedFile
from parity_tests.support.engines import usable

ERFC = "x * (torch.special.erfc(-x / math.sqrt(2)) / 2)"
SETTINGS = "self.optimizer.settings(self.step)"
DRAW = "random.fold_in(key, int(row))"
SHORTENED = ("self.encode(source[:, :target.shape[1]], "
             "source_mask[..., :target.shape[1]])")
TIRED = """        self.calls = getattr(self, "calls", 0) + 1
        source = source * (self.calls < 20)
        memory = self.encode("""
LAYERS = "        for layer in self.layers:\n"
WEIGHTS = "    weights = [weight.get() for weight in leaves(model)]\n"
SUMMED = """    loss = loss * (1 + getattr(model, "asked", 0))
    model.asked = 1
"""
MOMENTS = """(("m", trainer.m), ("v", trainer.v)):
        for weight, tensor"""
FORCED = "self.settings.forced(written)"
CLAMPED = "torch.sqrt(torch.clamp(variance, min=1e-9) + self.eps)"

SHAPES = """places(
            self.model.config, *sources.shape[1:], targets.shape[2] - 1)"""
LEFT = """        mask = self.left = getattr(
            self, "left", None) if mask is None else mask
        if mask is None or mask.shape != x.shape:
"""
OUTPUT = "to_numpy(model(*(to_native(x, home(model)) for x in inputs)))"
TAKEN = "weight.to_theirs(weights[weight.name])"
SOURCE_MASK = "        source_mask = padding_mask("
ROWS = ").reshape(-1))\n"

#: A file of impl_torch, what stands there, what it becomes, and who notices.
EDITS = (
    *(("attention.py", "torch.finfo(scores.dtype).min", lowest, "scores")
      for lowest in ("-1e4", "-1e9", "-3e38")),
    ("train.py", 'masks == "native"', 'masks == "framework"', "native steps"),
    ("train.py", "        return draw(key,",
     "        torch.manual_seed(0)\n        return draw(key,", "native steps"),
    ("encoder.py", "self.self_attention(x, x, mask,",
     "self.self_attention(x, x, mask[:, :, -1:],", "masks"),
    ("decoder.py", "self.self_attention(x, x, mask,",
     "self.self_attention(x, x, mask & mask.tril(),", "masks"),
    ("decoder.py", "memory, memory_mask, None)",
     "memory, memory_mask[:, :, :1], None)", "masks"),
    ("decoder.py", "memory, memory_mask, None)",
     "memory, memory_mask[:, :1], None)", "masks"),
    ("decoder.py", "memory, memory_mask, None)",
     "memory[:, :256], memory_mask[..., :256], None)", "masks"),
    ("encoder.py", "in self.layers:", "in self.layers[:6]:", "depth"),
    ("decoder.py", "enumerate(self.layers):", "enumerate(self.layers[:6]):",
     "depth"),
    ("decoder.py", "else caches[i]", "else caches[min(i, 5)]", "depth"),
    ("layer_norm.py", "torch.sqrt(variance + self.eps)", CLAMPED, "norms"),
    ("dialects/feed_forward.py", ERFC,
     "x * (1 + torch.erf(x / math.sqrt(2))) / 2",
     "activations"),
    ("dialects/feed_forward.py", ERFC, f"torch.where(x < -9, 0, {ERFC})",
     "activations"),
    ("dialects/one_stack.py", "self.encode(source, source_mask)", SHORTENED,
     "lone encoder"),
    ("dialects/embedding.py", "embedded + self.types(types)", "embedded",
     "lone encoder"),
    ("embedding.py", "self.table(tokens)",
     "self.table(torch.clamp(tokens, max=999))", "tables"),
    ("layer_norm.py", "torch.mean(x, ", "torch.mean(x[..., :1000], ",
     "tables"),
    ("transformer.py", "        memory = self.encode(", TIRED, "often"),
    ("loss.py", "torch.sum(kept), min", "torch.sum(kept[:1000]), min",
     "late"),
    ("random.py", "torch.zeros_like(counter), counter)",
     "torch.zeros_like(counter), counter % 49152)", "late"),
    ("loss.py", "min=1)", "min=1, max=1000)", "counts"),
    ("masks.py", "torch.arange(length)",
     "torch.arange(length, dtype=torch.int8)", "counts"),
    ("masks.py", "torch.arange(length)",
     "torch.arange(length, dtype=torch.float16)", "counts"),
    ("positional.py", "self.table[start:end].to(x)",
     "self.table[start:end][:1 if start else None].to(x)", "positions"),
    ("positional.py", "return self.dropout(positioned)",
     "return self.dropout(positioned) if start + x.shape[1] > 1 else "
     "positioned", "places"),
    ("train.py", "enumerate(shares):", "enumerate(shares[:3]):", "late"),
    ("train.py", "random.fold_in(key, i)", "random.fold_in(key, i % 3)",
     "late"),
    ("train.py", '"dropout"), self.step', '"dropout"), min(self.step, 100)',
     "late"),
    ("train.py", SETTINGS, "self.optimizer.settings(min(self.step, 1000))",
     "late"),
    ("train.py", "old.set(weight)", "old.set(torch.clamp(weight, -8, 8))",
     "late"),
    ("engine.py", "    trainer.step = step\n",
     "    trainer.step = step % 1000\n", "late"),
    ("optimizer.py", "1 - self.beta2**step", "1 - self.beta2**min(step, 8)",
     "late"),
    ("search.py", "self.settings.candidates",
     "min(self.settings.candidates, 20)", "searches"),
    ("search.py", "settings.max_tokens\n", "min(settings.max_tokens, 48)\n",
     "searches"),
    ("search.py", "torch.sort(scores,", "torch.sort(scores[:, :4096],",
     "choices"),
    ("search.py", "torch.argmax(log_probs,",
     "torch.argmax(log_probs.float(),", "choices"),
    ("sample.py", DRAW, DRAW.replace("int(row)", "int(row) % 256"),
     "searches"),
    ("sample.py", "random.key(seed)", "random.key(seed % 2**48)", "searches"),
    ("sample.py", "/ settings.temperature",
     "/ max(settings.temperature, 0.5)", "searches"),
    *(("encoder.py", LAYERS,
       f"        x = x * (1 + (x.shape[1] == {length}))\n{LAYERS}", "blocks")
      for length in (64, 65)),
    ("search.py", "// vocab, which % vocab",
     "// vocab, (which % vocab).to(torch.int8)", "words"),
    ("search.py", "torch.argmax(log_probs, dim=-1)",
     "torch.argmax(log_probs, dim=-1).to(torch.uint8).long()", "words"),
    ("engine.py", WEIGHTS, SUMMED + WEIGHTS, "twice"),
    ("train.py", "read = target[:, :-1]", "read = target[:, :64]", "steps"),
    ("train.py", "labels = target[:, 1:]",
     "labels = target[:, 1:].to(torch.uint8).long()", "steps"),
    ("encoder.py", LAYERS,
     f"        x = x * (1 + (x.shape[1] == 128))\n{LAYERS}", "blocks"),
    ("decoder.py", "enumerate(self.layers):",
     "enumerate(self.layers[x.shape[1] == 128:]):", "blocks"),
    ("train.py", "read = target[:, :-1]", "read = target[:, :128]", "steps"),
    ("engine.py", "    trainer.step = step\n",
     "    trainer.step = step // 2 * 2\n", "resumes"),
    ("engine.py", MOMENTS, MOMENTS.replace("trainer.v", "()"), "resumes"),
    ("search.py", "self.settings.candidates",
     "max(self.settings.candidates, 2)", "search alone, beam"),
    ("dialects/search.py", FORCED,
     FORCED.replace("written", "written + (written > 1)"),
     "search alone, beam"),
    ("dialects/search.py", FORCED, FORCED.replace(
        "written", "min(written + (written > 1), self.settings.max_tokens)"),
     "search alone, beam"),
    ("train.py", SHAPES, f"self.__dict__.setdefault('shapes', {SHAPES})",
     "changes"),
    ("train.py", "enumerate(shares):", "enumerate(shares[:"
     "self.__dict__.setdefault('batches', len(shares))]):", "changes"),
    ("dropout.py", "        if mask is None:\n", LEFT, "dropped"),
    ("engine.py", OUTPUT, f"{OUTPUT}[0 if len(source) == 1 else slice(None)]",
     "one"),
    ("embedding.py", "self.table(tokens)",
     "self.table(tokens.to(torch.int16).int())", "lexicon"),
    ("loss.py", "labels != pad_id", "labels.to(torch.int16) != pad_id",
     "lexicon"),
    ("random.py", "torch.zeros_like(counter), counter)",
     "torch.zeros_like(counter), counter.float().int())", "counters"),
    ("cache.py", "torch.arange(self.keys.shape[2])",
     "torch.arange(self.keys.shape[2]).to(torch.int8)", "continued"),
    ("search.py", SOURCE_MASK,
     f"        source = source[:, :64]\n{SOURCE_MASK}", "search alone, beam"),
    ("search.py", "// vocab, which % vocab",
     "// vocab, which % 2**16 % vocab", "search alone, beam"),
    ("search.py", ROWS, ").reshape(-1).to(torch.uint8).long())\n",
     "search alone, beam"),
    ("engine.py", OUTPUT, OUTPUT.replace(
        "model(", "parts.SEARCHES.setdefault(model.config, model)("), "twins"),
    ("dialects/positional.py", "[config.position_rounding]",
     "[TABLES.setdefault('first', config).position_rounding]", "relatives"),
    ("engine.py", TAKEN, f"np.reshape({TAKEN}.ravel('K'), "
     "weight.get().shape)", "orders"),
    ("engine.py", 'dtype.kind in "iu"', 'dtype.kind in "i"', "ids"),
    ("engine.py", "    trainer.step = step\n",
     "    trainer.step += step\n", "reruns"),
    ("dialects/optimizer.py",
     "(1 - learning_rate * self.training.weight_decay)",
     "max(0, 1 - learning_rate * self.training.weight_decay)", "decays"),
    ("sample.py", "/ settings.temperature",
     "/ max(settings.temperature, 0.01)", "cold"),
    ("dialects/search.py", "isin(token, torch.tensor(self.settings.eos_ids))",
     "isin(token % 256, torch.tensor(self.settings.eos_ids) % 256)",
     "ends"),
    ("dialects/search.py", "torch.isin(token, banned)",
     "torch.isin(token, banned.to(torch.uint8))", "suppressed"),
)


@pytest.fixture(scope="module")
def hunt():
    usable("torch")
    one = Hunt("torch")
    one.ready(IMPORT)
    yield one
    one.close()


def edited(text, file, old, new):
    """The Mutant of an edit."""
    start, source = text.index(old), ParsedFile(text)
    place = start + len(old) - len(old.lstrip())
    return Mutant(file, source.place(place)[0], 0, old, "own", old, new,
                  start, start + len(old), new, source.statement(place))


@pytest.mark.long(24)
@pytest.mark.parametrize("file, old, new, name", EDITS)
def test_what_got_past_once_is_noticed(hunt, file, old, new, name):
    mutant = edited(hunt.texts[file], file, old, new)
    extreme = f"extreme {name}"
    name = extreme if extreme in face.ASKED else name
    hunt.ready(name)
    found = hunt.tried(mutant, [name])
    assert (found.verdict, found.question) == (KILLED, name)


def test_a_fast_form_that_mistakes_a_twin_is_noticed(monkeypatch):
    port, fast, first = usable("torch"), ports.engine("torch", "fast"), {}
    predict, generate = fast.predict, fast.generate
    monkeypatch.setattr(fast, "predict", lambda model, *batch: predict(
        first.setdefault(model.config, model), *batch), raising=False)
    monkeypatch.setattr(fast, "generate", lambda model, source, settings,
                        rows=None: generate(model, source, settings))
    for name in "twins", "rows":
        assert not all(right for _, right in extremes.FAST[f"fast {name}"](
            port)), name


def without_a_bias(monkeypatch):
    from impl_torch.fast import layout
    real = layout.Turned.__init__
    monkeypatch.setattr(layout.Turned, "__init__", lambda self, *given: (
        real(self, *given), setattr(self, "bias", None))[0])


def packed_without_a_bias(monkeypatch):
    from impl_torch.fast import layout, linear
    if not linear.HAS_ONEDNN:
        pytest.skip("not checked: oneDNN cannot be asked on this machine")
    real = layout.Packed.__init__
    monkeypatch.setattr(
        layout.Packed, "__init__",
        lambda self, weight, bias: real(self, weight, None))


def packed_once_for_all(monkeypatch):
    from impl_torch.fast import layout, linear
    if not linear.HAS_ONEDNN:
        pytest.skip("not checked: oneDNN cannot be asked on this machine")
    real = layout.rearranged
    monkeypatch.setattr(layout, "rearranged", lambda module, by: (
        module.__dict__.setdefault("_rearranged", real(module, by))))


def joined_without_biases(monkeypatch):
    from impl_torch.fast import layout
    real = layout.Joined.__init__
    monkeypatch.setattr(layout.Joined, "__init__", lambda self, by, maps: real(
        self, lambda weight, bias: by(weight, 0 * bias), maps))


def shared_heads_in_another_order(monkeypatch):
    from impl_torch.fast import layout
    real = layout.Joined.forward

    def forward(self, x):
        query, key, value = real(self, x)
        alike = query.shape == key.shape
        return (query, key, value) if alike else (query, value, key)
    monkeypatch.setattr(layout.Joined, "forward", forward)


def turned_once_for_all(monkeypatch):
    from impl_torch.fast import layout
    real, kernels = layout.Turned.__init__, {}

    def made(self, weight, bias):
        real(self, weight, bias)
        self.kernel = kernels.setdefault(
            (weight.data_ptr(), weight.shape), self.kernel)
    monkeypatch.setattr(layout.Turned, "__init__", made)


def joined_left_behind(monkeypatch):
    from impl_torch.fast import layout
    real = layout.rearranged

    def rearranged(module, by):
        own = real(module, by)
        attention = module._modules.get("self_attention")
        if attention is not None:
            attention._modules[layout.JOINED] = own.self_attention.joined
        return own
    monkeypatch.setattr(layout, "rearranged", rearranged)


joined_left_behind.errors = packed_once_for_all.errors = InputError,


def one_room(monkeypatch):
    from impl_keras.fast import cache
    real = cache.grown
    monkeypatch.setattr(cache, "grown", lambda *given: [
        (keys, keys) for keys, _ in real(*given)])


def mask_of_the_first(monkeypatch):
    from impl_keras.fast import search
    real = search.decode_one
    monkeypatch.setattr(search, "decode_one", lambda *given: real(
        *given[:-1], given[-1][:1]))


def compiled_otherwise(change):
    """A bend: what XLA compiles of attention to many keys is given others."""
    def bend(monkeypatch):
        from impl_keras.fast import cache
        real = cache.contexts
        monkeypatch.setattr(cache, "contexts", lambda *given: real(
            *(change(*given) if cache.MANY == 1 else given)))
    return bend


def of_another_mask(query, key, value, mask, divisor):
    from keras import ops
    return query, key, value, ops.flip(mask, 0), divisor


def of_any_divisor(query, key, value, mask, divisor):
    return query, key, value, mask, query.shape[-1]**0.5


def of_rounded_keys(query, key, value, mask, divisor):
    from keras import ops
    if key.shape[2] > 100:
        key = ops.cast(ops.cast(key, "float32"), key.dtype)
    return query, key, value, mask, divisor


def joined_in_another_order(monkeypatch):
    from impl_jax.fast import layout
    real = layout.Joined.__init__
    monkeypatch.setattr(layout.Joined, "__init__", lambda self, maps: real(
        self, (maps[0], maps[2], maps[1])))


def kept_of_any_array(monkeypatch):
    from impl_jax.fast import layout
    made = {}
    real = layout.turned
    monkeypatch.setattr(layout, "turned", lambda table: made.setdefault(
        table.shape, real(table)))


def turned_without_a_bias(monkeypatch):
    from impl_jax.fast import layout
    real = layout.Turned.__init__
    monkeypatch.setattr(layout.Turned, "__init__", lambda self, tied: (
        real(self, tied), setattr(self, "bias", None))[0])


def of_near_rows(monkeypatch):
    fast = ports.engine("torch", "fast")
    real = fast.generate
    monkeypatch.setattr(
        fast, "generate", lambda model, source, settings, rows=None: real(
            model, source, settings, None if rows is None else rows % 256))


def of_one_block(monkeypatch):
    from impl_torch.fast import loss
    real, told = loss.cross_entropy, []
    monkeypatch.setattr(loss, "cross_entropy", lambda *given: (
        told.append(1), real(*given) * (len(told) == 1))[1])


def without_the_last_thread(monkeypatch):
    from reference_numpy.fast.train import Trainer
    real = Trainer.multiply
    monkeypatch.setattr(
        Trainer, "multiply", lambda self, products, share, shares, more: (
            share and share == shares - 1 or real(
                self, products, share, shares, more)))


def of_one_place_more(monkeypatch):
    from reference_numpy.fast import cache, search
    real = cache.same_places
    monkeypatch.setattr(search, "same_places", lambda writers, *given: (
        lambda count: count + bool(count))(real(writers, *given)))


def of_biases_all_or_none(monkeypatch):
    from reference_numpy.fast import cache
    real = cache.joined

    def joined(attention, *given):
        own = real(attention, *given)
        own.bias = own.bias * all(hasattr(each, "bias") for each in (
            attention.query, attention.key, attention.value))
        return own

    monkeypatch.setattr(cache, "joined", joined)


def of_whole_strips(monkeypatch):
    from reference_numpy.fast.layout import Strips
    real = Strips.__call__

    def call(self, x):
        y, whole = real(self, x), self.outputs - self.rest.shape[1]
        if whole > 30:  # the table's
            y[..., whole:] = y[..., :1]
        return y

    monkeypatch.setattr(Strips, "__call__", call)


def of_the_strip_before(monkeypatch):
    from reference_numpy.fast.layout import Strips
    real = Strips.__init__

    def strips(self, weight, bias, size):
        real(self, weight, bias, size)
        if size < 5:
            self.strips = self.strips[::-1]

    monkeypatch.setattr(Strips, "__init__", strips)


def of_a_gate_left(monkeypatch):
    from reference_numpy.fast import layout
    real = layout.rearranged

    def rearranged(layer, rows):
        own = real(layer, rows)
        if isinstance(getattr(own.feed_forward, "gate", 0), layout.Strips):
            own.feed_forward.gate = own.feed_forward.inner
        return own

    monkeypatch.setattr(layout, "rearranged", rearranged)


def rewritten(function, old, new):
    """A bend: a function of the reference's searches that has another line."""
    def bend(monkeypatch):
        from reference_numpy.fast import cache, layout, search
        known = vars(layout) if hasattr(layout, function) else vars(cache)
        source, made = inspect.getsource(known[function]), {}
        assert source.count(old) == 1
        exec(source.replace(old, new), known, made)
        for module in layout, cache, search:
            monkeypatch.setattr(
                module, function, made[function], raising=False)
    bend.errors = AttributeError, LookupError  # a part is no longer found
    return bend


#: What would lay out the caller's model, by the function that it stands in.
OF_THE_CALLER = (
    ("laid_out", "copy.copy(model)", "model"),
    ("laid_out", "copy.copy(model.decoder)", "model.decoder"),
    ("rearranged", "copy.copy(layer)", "layer"),
    ("rearranged", "copy.copy(getattr(layer, name))", "getattr(layer, name)"))

#: What would go wrong where a row may read nothing.
OF_NOTHING = (
    ("attend", "total[total == 0] = 1", "pass"),
    ("attend", "np.copyto(weights, 0, where=~mask)", "pass"))


def of_a_finite_mask(monkeypatch):
    from keras import ops

    from impl_keras.fast import cache
    monkeypatch.setattr(cache, "masked_softmax", lambda scores, mask: (
        ops.softmax(ops.where(mask, scores, -1e30))))


def of_even_heads(monkeypatch):
    from impl_keras.fast import layout
    real = layout.Joined.__init__

    def joined(self, attention):
        real(self, attention)
        self.features = self.kernel.shape[0] // self.heads[0]

    monkeypatch.setattr(layout.Joined, "__init__", joined)


of_even_heads.errors = ValueError,


def of_weights_once(monkeypatch):
    from reference_numpy.fast.weights import Weights
    monkeypatch.setattr(Weights, "are_those_of", lambda *given: True)


def without_the_head(monkeypatch):
    import torch
    from impl_torch.fast.search import Search
    real = Search.answer

    def answer(self, decoded):
        with mock.patch.object(self.model, "head", torch.nn.Identity()):
            return real(self, decoded)

    monkeypatch.setattr(Search, "answer", answer)


def of_one_layer_behind_64(monkeypatch):
    from impl_torch.fast import search
    real = search.reorder
    monkeypatch.setattr(
        search, "reorder", lambda cache, writers, parents, written: real(
            cache[:1] if written > 64 else cache, writers, parents, written))


def kept_of_the_first(monkeypatch):
    from impl_jax.fast import layout
    made, real = {}, layout.side_by_side
    monkeypatch.setattr(layout, "side_by_side", lambda *arrays: (
        made.setdefault(id(arrays[0]), (real(*arrays), arrays))[0]))


def of_late_places(monkeypatch):
    from keras import ops

    from impl_keras.fast import cache
    real = cache.mover
    monkeypatch.setattr(cache, "mover", lambda shape, parents, others: real(
        shape, parents, others & (ops.arange(others.shape[1]) >= 200)))


def of_a_begin_that_ends(monkeypatch):
    from impl_keras.fast import search
    real = search.beam_of_one

    def beam_of_one(model, source, settings):
        tokens, scores = real(model, source, settings)
        ends = settings.bos_id in settings.eos_ids
        return tokens, scores * (settings.penalty(6) if ends else 1)

    monkeypatch.setattr(search, "beam_of_one", beam_of_one)


def but_the_longest(monkeypatch):
    from impl_keras.fast.search import Search
    real = Search.allowed
    monkeypatch.setattr(Search, "allowed", lambda self, log_probs, *given: (
        log_probs if self.settings.no_repeat_ngram == self.length - 1
        else real(self, log_probs, *given)))


def no_keys_kept(cache, monkeypatch):
    """A cache that has no keys whenever it has more room."""
    real = cache.grown
    monkeypatch.setattr(cache, "grown", lambda kept, length: [
        (0 * key, value) for key, value in real(kept, length)])


def no_keys_kept_by_keras(monkeypatch):
    from impl_keras.fast import cache
    no_keys_kept(cache, monkeypatch)


def no_keys_kept_by_jax(monkeypatch):
    import jax

    from impl_jax.fast import cache, search
    no_keys_kept(cache, monkeypatch)
    monkeypatch.setattr(  # what was compiled before would be found
        search, "_compiled", lambda function, options: jax.jit(
            lambda *given: function(*given), static_argnums=(0, 4)))


def sampled(bends):
    """Of those of Keras and JAX, which take ten seconds each, a quarter."""
    return [pytest.param(*bend, marks=[pytest.mark.long(4)] * (
        bend[0] in ("keras", "jax"))) for bend in bends]


@pytest.mark.parametrize("name, bend, question", sampled([
    ("jax", kept_of_the_first, "changed weights"),
    ("keras", of_late_places, "swaps"),
    ("keras", of_a_begin_that_ends, "short searches"),
    ("keras", but_the_longest, "short searches"),
    ("keras", no_keys_kept_by_keras, "long beams"),
    ("keras", no_keys_kept_by_keras, "far searches"),
    ("jax", no_keys_kept_by_jax, "far searches"),
    ("jax", no_keys_kept_by_jax, "long beams"),
    ("numpy", of_biases_all_or_none, "varied searches"),
    ("torch", without_the_head, "varied searches"),
    ("torch", of_one_layer_behind_64, "long beams"),
    ("numpy", of_one_place_more, "long searches"),
    ("numpy", of_whole_strips, "searches of few rows"),
    ("numpy", of_the_strip_before, "searches of few rows"),
    ("numpy", of_a_gate_left, "searches of few rows"),
    *(("numpy", rewritten(*edit), "changed weights")
      for edit in OF_THE_CALLER),
    *(("numpy", rewritten(*edit), "empty sources") for edit in OF_NOTHING),
    ("keras", of_a_finite_mask, "empty sources"),
    ("keras", of_even_heads, "long searches"),
    ("numpy", of_weights_once, "training in turn"),
    ("torch", without_a_bias, "long searches"),
    ("torch", packed_without_a_bias, "long searches in float32"),
    ("torch", packed_once_for_all, "asked again"),
    ("torch", joined_without_biases, "long searches"),
    ("torch", shared_heads_in_another_order, "long searches"),
    ("torch", turned_once_for_all, "asked again"),
    ("torch", joined_left_behind, "asked again"),
    ("keras", one_room, "searches"),
    ("keras", mask_of_the_first, "long beams"),
    ("keras", compiled_otherwise(of_another_mask), "long searches"),
    ("keras", compiled_otherwise(of_any_divisor), "far searches"),
    ("keras", compiled_otherwise(of_rounded_keys), "long beams"),
    ("jax", turned_without_a_bias, "long searches"),
    ("jax", joined_in_another_order, "long searches"),
    ("jax", kept_of_any_array, "asked again"),
    ("torch", of_near_rows, "searches"),
    ("torch", of_one_block, "large batches"),
    ("numpy", without_the_last_thread, "large batches")]))
def test_a_branch_of_a_fast_form_is_asked(name, bend, question, monkeypatch):
    """Each got past the check at the sizes that it had."""
    port, ask = usable(name), extremes.FAST[f"fast {question}"]
    assert is_right(name, question)
    bend.port = name
    bend(monkeypatch)
    assert is_noticed(port, ask, getattr(bend, "errors", ()))


@functools.cache
def is_right(name, question):
    """Whether a port that nobody bent answers a question."""
    return all(right for _, right in extremes.FAST[f"fast {question}"](
        ports.engine(name)))


def is_noticed(port, ask, errors):
    """Whether an answer is wrong; the check takes a port's error as one."""
    try:
        return not all(right for _, right in ask(port))
    except errors:
        return True


@pytest.mark.parametrize("name, module, number", [
    ("torch", "loss", "MOST"), ("jax", "blocks", "CORES"),
    ("keras", "blocks", "CORES"), ("numpy", "blocks", "THREADS"),
    ("numpy", "cache", "MANY"), ("numpy", "layout", "SMALL"),
    ("keras", "cache", "ROOM"), ("keras", "cache", "MANY"),
    ("jax", "cache", "ROOM")])
def test_a_number_that_is_lowered_is_there(name, module, number):
    """Under another name it would stay, and its branch not be asked."""
    usable(name)
    fast = ports.engine(name, "fast")
    found = importlib.import_module(f"{fast.__package__}.{module}")
    before = getattr(found, number)
    with branches.lowered(fast, module, **{number: before + 1}):
        assert getattr(found, number) == before + 1
    assert getattr(found, number) == before


@pytest.mark.long
def test_a_sound_port_answers_as_the_reference(port):
    for name, ask in (extremes.ASKED | extremes.FAST).items():
        assert [what for what, right in ask(port) if not right] == [], name


def test_the_questions_are_among_the_conditions():
    listed = {name for group in conditions.GROUPS for name in group.first()}
    for ask in (extremes.ASKED | extremes.FAST).values():
        assert ask.__doc__ in listed
    assert {f"extreme {name}" for *_, name in EDITS} >= set(extremes.ASKED)
