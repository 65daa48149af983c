"""What is timed on an accelerator: training steps and searches, ours and peers.

Each function is given a Job and returns Ready runs. Peers get the same weights
and batches; each is written as its library's users write it there.
"""

import contextlib
import dataclasses
import functools

import numpy as np

from benchmarks import generation_implementations, workload
from benchmarks.generation_implementations import BOS, EOS
from benchmarks.products import Ready, Timed
from benchmarks.training_implementations import TRAINING
from transformer_contract.config import preset
from transformer_contract.generation import GenerationConfig

#: The models; precisions of products; and rows and tokens of each work.
PRESETS = "vaswani2017_big", "vaswani2017_base"
PRECISIONS = "bfloat16", "tf32", "float32"
SHAPES = {"training": (32, 512), "decoding": (32, 128)}
if workload.MODEL == "quick":  # in which both models are the same
    PRESETS = PRESETS[1:]
    SHAPES = {"training": (2, 8), "decoding": (2, 8)}


@dataclasses.dataclass(frozen=True)
class Job:
    """What is to run.

    Attributes:
        work: training or decoding.
        preset, precision: of PRESETS and PRECISIONS.
        device: cpu or cuda.
    """

    work: str
    preset: str
    precision: str
    device: str

    @property
    def shape(self):
        """Rows, and tokens of a source and of a target."""
        return SHAPES[self.work]

    @functools.cached_property
    def config(self):
        """As Marian is made, which all can be; without dropout."""
        return preset(self.preset).replace(
            source_vocab=workload.VOCAB, target_vocab=workload.VOCAB,
            **workload.SMALLER | {
                "positions": "halves", "norm_eps": 1e-5,
                "pad_id": workload.VOCAB - 1, "max_length": 1024,
                "dropout": 0.0})

    @functools.cached_property
    def weights(self):
        """Float32 arrays under which targets vary."""
        return generation_implementations.weights(config=self.config)

    @property
    def pairs(self):
        """Sources [1 B S] and targets [1 B T + 1], none of them padding."""
        rows, length = self.shape
        return [np.minimum(ids, self.config.pad_id - 1)
                for ids in workload.pairs(rows=rows, length=length)]

    @property
    def settings(self):
        """A greedy search that never ends early."""
        return GenerationConfig(method="greedy", bos_id=BOS, eos_id=EOS,
                                max_tokens=self.shape[1])

    @property
    def needs(self):
        """What it needs: (operations of products, bytes read)."""
        rows, length = self.shape
        c = self.config
        if self.work == "decoding":
            flops, size = workload.needs_of_search(c, rows, length, length)
            return flops, size / (2 if self.precision == "bfloat16" else 1)
        return 3 * workload.matmul_flops(c, rows, length, length), 0

    @property
    def tokens(self):
        """Of sources and targets that are read, or of targets written."""
        rows, length = self.shape
        return rows * length * (2 if self.work == "training" else 1)


def _torch_precision(job):
    """What a torch run stands in."""
    import torch
    torch.set_float32_matmul_precision(
        "highest" if job.precision == "float32" else "high")
    if job.precision == "bfloat16":
        return torch.autocast(job.device, torch.bfloat16)
    return contextlib.nullcontext()


def _ended(job):
    """Waits until a torch device has ended."""
    import torch
    return torch.cuda.synchronize if job.device == "cuda" else lambda: None


def torch_product(job, size):
    """A product of two square matrices, in a precision."""
    import torch
    ended = _ended(job)
    a = torch.ones(size, size, device=job.device)
    with _torch_precision(job):
        if job.precision == "bfloat16":
            a = a.bfloat16()

    def multiply():
        a @ a
        ended()

    return multiply


def _ours(job, engine, mixed, cast, ended):
    """Our port's fast form: a step of training, or a search."""
    engine.set_precision()
    short = job.precision == "bfloat16"
    if job.work == "decoding":
        import ml_dtypes
        dtype = ml_dtypes.bfloat16 if short else np.float32
        model = engine.build("transformer", job.config, {
            name: array.astype(dtype) for name, array in job.weights.items()
        }, "bfloat16" if short else "float32", job.device)

        def write():
            with cast:
                return engine.generate(
                    model, job.pairs[0][0], job.settings)["tokens"][:, 0]

        return Ready(write, np.asarray, None, engine.versions())
    model = engine.build("transformer", job.config, job.weights, "float32",
                         job.device)
    steps = mixed.MixedEngine("bfloat16", "mixed-bfloat16") if short else engine
    trainer = steps.trainer(model, TRAINING)
    pairs = job.pairs

    def step():
        with cast:
            loss = steps.train_step(trainer, *pairs)["loss"]
        ended()
        return loss

    return Ready(step, np.asarray, None, engine.versions())


def torch(job):
    """PyTorch port, fast form."""
    import torch

    from impl_torch.fast import engine
    from impl_torch.targets import mixed
    engine.set_precision()

    @contextlib.contextmanager
    def cast():
        torch.set_float32_matmul_precision(
            "highest" if job.precision == "float32" else "high")
        yield

    return _ours(job, engine, mixed, _Again(cast), _ended(job))


class _Again:
    """A context that is entered again and again.

    Args:
        make: makes one.
    """

    def __init__(self, make):
        self.make = make

    def __enter__(self):
        self.now = self.make()
        return self.now.__enter__()

    def __exit__(self, *error):
        return self.now.__exit__(*error)


def jax(job):
    """JAX port, fast form."""
    from impl_jax.fast import engine
    from impl_jax.targets import mixed
    return _ours(job, engine, mixed, _Again(functools.partial(
        mixed.products, job.precision)), lambda: None)


def keras(job):
    """Keras port, fast form."""
    from impl_keras.fast import engine
    from impl_keras.targets import mixed
    return _ours(job, engine, mixed, contextlib.nullcontext(), lambda: None)


def _torch_step(job, model, logits):
    """A step of a torch model: loss, gradients, fused Adam where it is."""
    import torch
    source, target = (torch.from_numpy(ids[0]).to(job.device)
                      for ids in job.pairs)
    read, labels = target[:, :-1], target[:, 1:].flatten()
    optimizer = torch.optim.Adam(
        model.parameters(), TRAINING.learning_rate,
        (TRAINING.beta1, TRAINING.beta2), TRAINING.eps,
        fused=job.device == "cuda" or None)
    precision, ended = _torch_precision(job), _ended(job)

    def step():
        optimizer.zero_grad()
        with precision:
            loss = torch.nn.functional.cross_entropy(
                logits(source, read).flatten(0, 1).float(), labels,
                label_smoothing=job.config.label_smoothing)
        loss.backward()
        optimizer.step()
        ended()
        return loss.detach()

    return Ready(step, lambda loss: loss.cpu().numpy(), None,
                 {"torch": torch.__version__})


def torch_peer(job):
    """torch.nn.Transformer by torch.compile, its attention fused."""
    import torch

    from benchmarks.peer_torch import PeerTransformer, compiled, load
    from transformer_contract.sinusoids import TABLES
    positions = torch.from_numpy(TABLES[job.config.positions](
        job.config.max_length, job.config.d_model)).to(torch.float32)
    model = load(PeerTransformer(job.config, positions), job.weights).to(
        job.device).train()
    causal = torch.nn.Transformer.generate_square_subsequent_mask(
        job.shape[1], device=job.device)
    run, note = compiled(model)
    return dataclasses.replace(_torch_step(
        job, model, lambda source, read: run(source, read, causal)), note=note)


def marian(job):
    """Hugging Face Marian."""
    import torch
    import transformers

    from benchmarks.peer_marian import marian
    model = marian(job.config, job.weights, BOS).to(job.device)
    versions = {"transformers": transformers.__version__}
    if job.work == "training":
        ready = _torch_step(job, model.train(), lambda source, read: model(
            input_ids=source, decoder_input_ids=read, use_cache=False).logits)
        return dataclasses.replace(ready, versions=ready.versions | versions)
    _torch_precision(job)
    model = model.bfloat16() if job.precision == "bfloat16" else model
    source, ended = torch.from_numpy(job.pairs[0][0]).to(
        job.device), _ended(job)

    def write():
        tokens = model.generate(
            input_ids=source, attention_mask=torch.ones_like(source),
            max_new_tokens=job.shape[1], num_beams=1, do_sample=False)
        ended()
        return tokens

    return Ready(write, lambda tokens: tokens.cpu().numpy(), None, versions)


def jax_peer(job):
    """nnx layers, their attention by cuDNN where a GPU has 16 bits."""
    import jax
    import optax
    from flax import nnx

    from benchmarks.peer_jax import PeerTransformer, load, train_step
    from impl_jax import engine
    from impl_jax.targets import mixed
    engine.set_precision()
    short = job.precision == "bfloat16"
    implementation = "cudnn" if short and job.device == "cuda" else "xla"

    def attend(query, key, value, mask=None, **others):
        # NNX's masks are numbers, 0 or 1; JAX's attention asks for bool.
        if mask is not None:
            mask = mask.astype(bool)
        return jax.nn.dot_product_attention(
            query, key, value, mask=mask, implementation=implementation)

    model = load(PeerTransformer(job.config, rngs=nnx.Rngs(0),
                                 attention=attend), job.weights)
    optimizer = optax.adam(
        TRAINING.learning_rate, TRAINING.beta1, TRAINING.beta2, TRAINING.eps)
    graph, parameters = nnx.split(model)
    state = [parameters, optimizer.init(parameters)]
    compiled = jax.jit(functools.partial(
        train_step, graph, optimizer,
        dtype=jax.numpy.bfloat16 if short else None), donate_argnums=(0, 1))
    source, target = (jax.numpy.asarray(ids[0]) for ids in job.pairs)

    def step():
        with mixed.products(job.precision):
            *state[:], loss = compiled(*state, source, target)
            return jax.block_until_ready(loss)

    return Ready(step, np.asarray, None,
                 engine.versions() | {"optax": optax.__version__})


#: Whose decoder keeps no keys and values, so that they are trained alone.
TRAINED = "torch_peer", "jax_peer"

IMPLEMENTATIONS = {
    "torch": Timed(torch, "PyTorch port, fast form", ("torch",), "marian",
                   "fast", "torch"),
    "torch_peer": Timed(
        torch_peer, "torch.nn.Transformer, torch.compile", ("torch",),
        "torch_peer"),
    "marian": Timed(marian, "Hugging Face Marian", ("torch", "transformers"),
                    "marian"),
    "jax": Timed(jax, "JAX port, fast form, jit", ("jax", "flax"), "jax_peer",
                 "fast", "jax"),
    "jax_peer": Timed(jax_peer, "nnx layers and optax, jit",
                      ("jax", "flax", "optax"), "jax_peer", "", "jax"),
    "keras": Timed(keras, "Keras port, fast form", ("keras",), "marian",
                   "fast", "keras"),
}


def works(name):
    """What an implementation does of training and decoding."""
    return tuple(SHAPES)[:1] if name in TRAINED else tuple(SHAPES)
