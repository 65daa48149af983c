"""The searches that are timed, each ready to run.

All write targets of a forced length: the tokens that would end one, eos and
padding, have rows of zeros in the table, so their logit is always 0, which is
never among the highest of 32 000 logits of either sign.
"""

import dataclasses
import functools
from unittest import mock

import numpy as np

from benchmarks import products, workload
from benchmarks.products import Ready
from transformer_contract import random
from transformer_contract.generation import GenerationConfig
from transformer_contract.weights import probe_weights

BOS, EOS, PAD = 1, 2, workload.VOCAB - 1

#: Tokens of a target after its bos.
LENGTHS = 32, 128, 512, 2048

#: What is searched at once: name -> (method, sources, the longest target).
SEARCHES = {
    "greedy, B = 1": ("greedy", 1, 2048),
    "greedy, B = 8": ("greedy", 8, 512),
    "greedy, B = 32": ("greedy", 32, 128),
    "beam of 4, B = 1": ("beam", 1, 2048),
}

#: Those, and by which it is seen how times grow.
EVERY = SEARCHES | {f"greedy, B = {rows}": ("greedy", rows, 2048)
                    for rows in workload.BATCHES}


def config():
    """The workload's, as Marian is made: halves, and an epsilon of 1e-5."""
    return workload.config().replace(
        positions="halves", norm_eps=1e-5, pad_id=PAD, max_length=2049,
        dropout=0.0)


usual = config


def weights(seed=0, config=None):
    """Probe weights under which targets vary; float32.

    With plain random weights, layers drown what they add to, and the same token
    is repeated for ever. Here sub-layers add little, queries are sharp, and the
    last norm's signs keep a token from following itself.
    """
    config = config or usual()
    arrays = probe_weights(config, seed)
    for name, array in arrays.items():
        if name.endswith(".bias"):
            array *= 0.1
        elif name.endswith(("output.kernel", "outer.kernel")):
            array *= 0.3
        elif name.endswith("query.kernel"):
            array *= 4
    last = arrays[f"decoder.layers.{config.n_decoder_layers - 1}."
                 "feed_forward_residual.norm.scale"]
    key = random.fold_in(random.key(seed), "signs")
    last *= np.sign(random.uniform(key, last.shape, -1.0, 1.0))
    arrays["source_embedding.table"][[EOS, PAD]] = 0
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def batch():
    """Sources without padding, as many as any search has: int64 [B 64]."""
    most = max(rows for _, rows, _ in EVERY.values())
    sources = np.concatenate([
        workload.batch(seed).source for seed in range(most)])[:most]
    return np.minimum(sources, PAD - 1)


def settings(search, length):
    """The GenerationConfig of a case."""
    return GenerationConfig(
        method=EVERY[search][0], bos_id=BOS, eos_id=EOS,
        max_tokens=length)


def _ready(write, source, product, versions):
    """Of write(source, settings), which gives the best targets [B N]."""
    def choose(search, length):
        _, rows, _ = EVERY[search]
        run = functools.partial(write, source[:rows], settings(search, length))
        return Ready(run, np.asarray, product, versions, choose=choose)

    return choose(next(iter(SEARCHES)), LENGTHS[0])


def _engine(engine, config, weights, source, product):
    """Our generate, by an engine, in the precision that the commands set."""
    engine.set_precision()
    model = engine.build("transformer", config, weights, weights[
        "source_embedding.table"].dtype.name)

    def write(source, settings):
        return engine.generate(model, source, settings)["tokens"][:, 0]

    return _ready(write, source, product, engine.versions())


def numpy(config, weights, source, threads):
    """The reference's fast form."""
    from parity_io.memory import keep_freed
    from reference_numpy.fast import engine
    keep_freed()
    return _engine(engine, config, weights, source, products.numpy)


def numpy_uncached(config, weights, source, threads):
    """The reference's fast modules without a cache.

    The readable search decodes the whole padded target for every token; here
    only the tokens that are written are decoded.
    """
    from parity_io.memory import keep_freed
    from reference_numpy.fast import engine
    from reference_numpy.masks import causal_mask, padding_mask
    keep_freed()
    model = engine.build("transformer", config, weights, "float32")

    def write(source, settings):
        source_mask = padding_mask(source, config.pad_id)
        memory, _ = model.encode(source, source_mask)
        target = np.full((len(source), 1), settings.bos_id)
        for length in range(1, 1 + settings.max_tokens):
            decoded, _ = model.decode(
                target, memory, source_mask, causal_mask(length), None)
            logits, _ = model.project(decoded[:, -1:])
            token = np.argmax(logits, axis=-1)
            target = np.concatenate([target, token], axis=1)
            if np.all(token == settings.eos_id):
                break
        return target

    return _ready(write, source, products.numpy, engine.versions())


def torch(config, weights, source, threads):
    """Our port's fast form, eager."""
    import torch

    from impl_torch.fast import engine
    torch.set_num_threads(threads)
    return _engine(engine, config, weights, source, products.torch)


def torch_lesson(config, weights, source, threads, whole=False):
    """A loop that lessons show: all is decoded again for each token.

    Some also encode and project all again: the model is one call to them.
    """
    import torch

    from impl_torch import engine
    torch.set_num_threads(threads)
    engine.set_precision()
    model = engine.build("transformer", config, weights, "float32")

    @torch.no_grad()
    def write(source, settings):
        source = torch.from_numpy(source)
        source_mask = (source != config.pad_id)[:, None, None]
        memory = None if whole else model.encode(source, source_mask)
        target = torch.full((len(source), 1), settings.bos_id)
        for length in range(1, 1 + settings.max_tokens):
            causal = torch.ones(1, 1, length, length, dtype=torch.bool).tril()
            if whole:
                logits = model(source, target, source_mask, causal)[:, -1:]
            else:
                decoded = model.decode(
                    target, memory, source_mask, causal, None)
                logits = model.project(decoded[:, -1:])
            token = torch.argmax(logits, dim=-1)
            target = torch.cat([target, token], dim=1)
            if torch.all(token == settings.eos_id):
                break
        return target.numpy()

    return _ready(write, source, products.torch, engine.versions())


def torch_whole(config, weights, source, threads):
    """The loop of lessons to which the model is one call."""
    return torch_lesson(config, weights, source, threads, whole=True)


def keras(config, weights, source, threads):
    """Our port's fast form on TensorFlow: a search is traced to a graph."""
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    from impl_keras.fast import engine
    return _engine(engine, config, weights, source,
                   functools.partial(products.tensorflow, False))


def jax(config, weights, source, threads):
    """Our port's fast form; a search is under jit."""
    from impl_jax.fast import engine
    return _engine(engine, config, weights, source, products.jax)


def _marian(config, weights, threads):
    import torch

    from benchmarks.peer_marian import marian
    torch.set_num_threads(threads)
    return marian(config, weights, BOS)


def hugging_face(config, weights, source, threads):
    """MarianMTModel.generate."""
    import torch
    import transformers
    model = _marian(config, weights, threads)

    def write(source, settings):
        source = torch.from_numpy(source)
        return model.generate(
            input_ids=source, attention_mask=torch.ones_like(source),
            max_new_tokens=settings.max_tokens, num_beams=settings.width,
            length_penalty=settings.alpha, do_sample=False).numpy()

    return _ready(write, source, products.torch, {
        "torch": torch.__version__, "transformers": transformers.__version__})


def ctranslate2(config, weights, source, threads):
    """The same Marian in CTranslate2."""
    import ctranslate2

    from benchmarks.peer_marian import translator, word
    engine = translator(_marian(config, weights, threads), EOS, threads)

    def write(source, settings):
        rows = engine.translate_batch(
            [[word(token) for token in row] for row in source],
            beam_size=settings.width, length_penalty=settings.alpha,
            max_decoding_length=settings.max_tokens)
        return [[settings.bos_id, *(int(token[1:]) for token
                                      in row.hypotheses[0])] for row in rows]

    return _ready(write, source, products.numpy,
                  {"ctranslate2": ctranslate2.__version__})


@dataclasses.dataclass(frozen=True)
class Implementation:
    """How one is made and told.

    Attributes:
        make: what makes it ready.
        title: how a table says it.
        libraries: what it imports.
        port: whose framework it needs; "" of a peer, which all have.
        form: "fast" of a port's fast form, else "".
        longest: the longest target that it is asked for.
        compiles: whether the first run of each case compiles.
        searches: those that it has.
        peer: the name of the one that it is held against.
    """

    make: object
    title: str
    libraries: tuple
    port: str = ""
    form: str = ""
    longest: int = LENGTHS[-1]
    compiles: bool = False
    searches: tuple = tuple(SEARCHES)
    peer: str = "ctranslate2"

    def __iter__(self):
        return iter((self.make, self.title, self.libraries))

    def has(self, search, length):
        """Whether it is asked for a case."""
        return search in self.searches and length <= min(
            self.longest, SEARCHES[search][2])


IMPLEMENTATIONS = {
    "ctranslate2": Implementation(
        ctranslate2, "CTranslate2, float32",
        ("ctranslate2", "transformers", "torch"), longest=512),
    "hugging_face": Implementation(
        hugging_face, "Hugging Face Marian", ("transformers", "torch"),
        longest=512),
    "numpy": Implementation(
        numpy, "NumPy reference, fast form", ("numpy",), "numpy", "fast"),
    "torch": Implementation(
        torch, "PyTorch port, fast form, eager", ("torch",), "torch", "fast"),
    "keras": Implementation(
        keras, "Keras port, fast form, tf.function", ("keras",), "keras",
        "fast", compiles=True),
    "jax": Implementation(
        jax, "JAX port, fast form, jit", ("jax", "flax.nnx"), "jax", "fast",
        compiles=True),
    "numpy_uncached": Implementation(
        numpy_uncached, "NumPy reference, fast form, uncached", ("numpy",),
        "numpy", "fast", 128, searches=("greedy, B = 1",)),
    "torch_lesson": Implementation(
        torch_lesson, "lessons' loop: decode again, PyTorch port", ("torch",),
        "torch", "", 128, searches=("greedy, B = 1",)),
    "torch_whole": Implementation(
        torch_whole, "lessons' loop: all again, PyTorch port", ("torch",),
        "torch", "", 128, searches=("greedy, B = 1",)),
}
