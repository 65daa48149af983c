"""The training steps that are timed, each ready to run.

Every run is a step: forward, backward, Adam. A peer computes what ours does,
from our weights, and is written as its library's users write it.
"""

import functools

import numpy as np

from benchmarks import products, workload
from benchmarks.products import Ready, Timed
from benchmarks.workload import pairs as batch
from transformer_contract.training import TrainingConfig

#: Adam by the paper, at a learning rate at which a step takes 1 % off the loss.
#: Ten times that, and float32 decides it: Adam moves a weight whose gradient
#: is near 0 as far as any other, up or down, and the third loss is off by 2e-5.
TRAINING = TrainingConfig(schedule="constant", learning_rate=1e-5)

#: The losses that are compared; after the first, Adam's work is in them.
STEPS = 3


def config():
    """The workload's config without dropout."""
    return workload.config().replace(dropout=0.0)


def _ours(engine, config, weights, batch, product):
    """A step by an engine's trainer; the weights' dtype is the model's."""
    model = engine.build("transformer", config, weights, weights[
        "source_embedding.table"].dtype.name)
    trainer = engine.trainer(model, TRAINING)
    return Ready(lambda: engine.train_step(trainer, *batch)["loss"],
                 np.asarray, product, engine.versions(), STEPS)


def numpy(config, weights, batch, threads):
    """The reference's readable form."""
    from parity_io.memory import keep_freed
    from reference_numpy import engine
    keep_freed()
    return _ours(engine, config, weights, batch,
                 products.numpy)


def numpy_fast(config, weights, batch, threads):
    """The reference's fast form, BLAS on one thread while it runs."""
    import dataclasses

    from threadpoolctl import ThreadpoolController

    from parity_io.memory import keep_freed
    from reference_numpy.fast import engine
    keep_freed()
    ready = _ours(engine, config, weights, batch, products.numpy)
    limit = ThreadpoolController().wrap(limits=1, user_api="blas")
    return dataclasses.replace(ready, run=limit(ready.run))


def torch(config, weights, batch, threads):
    """Our port's fast form, eager."""
    import torch

    from impl_torch.fast import engine
    torch.set_num_threads(threads)
    return _ours(engine, config, weights, batch,
                 products.torch)


def torch_compiled(config, weights, batch, threads):
    """The same, its forward and backward by torch.compile."""
    return torch_peer(config, weights, batch, threads, compiles=True)


def torch_peer(config, weights, batch, threads, compiles=False):
    """torch.nn.Transformer and torch.optim.Adam."""
    import torch

    from benchmarks.peer_torch import (
        PeerTransformer, compiled, load, padding_of)
    from transformer_contract.sinusoids import TABLES
    torch.set_num_threads(threads)
    positions = torch.from_numpy(TABLES[config.positions](
        config.max_length, config.d_model)).to(torch.float32)
    model = load(PeerTransformer(config, positions), weights).train()
    source, target = (torch.from_numpy(ids[0]) for ids in batch)
    read, labels = target[:, :-1], target[:, 1:].flatten()
    causal = torch.nn.Transformer.generate_square_subsequent_mask(
        read.shape[1])
    padding = [padding_of(ids, config.pad_id) for ids in (source, read)]
    run, note = compiled(model) if compiles else (model, "")
    optimizer = torch.optim.Adam(
        model.parameters(), TRAINING.learning_rate,
        (TRAINING.beta1, TRAINING.beta2), TRAINING.eps)

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            run(source, read, causal, padding).flatten(0, 1), labels,
            ignore_index=config.pad_id,
            label_smoothing=config.label_smoothing)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Ready(step, np.asarray, products.torch, {
        "torch": torch.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability()}, STEPS,
        note=note)


def _limit_tensorflow(threads):
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def keras(config, weights, batch, threads):
    """Our port's fast form on TensorFlow; its step is compiled by XLA."""
    _limit_tensorflow(threads)
    from impl_keras.fast import engine
    return _ours(engine, config, weights, batch,
                 functools.partial(products.tensorflow, True))


def keras_peer(config, weights, batch, threads):
    """keras_hub's layers and keras.optimizers.Adam, compiled by XLA."""
    _limit_tensorflow(threads)
    import keras_hub
    import tensorflow as tf

    from benchmarks.peer_keras import PeerTransformer, load, train_step
    from impl_keras import engine
    model = load(PeerTransformer(config), weights)
    source, target = (tf.constant(ids[0]) for ids in batch)
    padded = bool((batch[0] == config.pad_id).any())
    step = tf.function(functools.partial(
        train_step(model, TRAINING, padded), source, target),
        jit_compile=True)
    return Ready(lambda: step().numpy(), np.asarray,
                 functools.partial(products.tensorflow, True),
                 engine.versions() | {"keras_hub": keras_hub.__version__},
                 STEPS)


def jax(config, weights, batch, threads):
    """Our port's fast form; its step is under jit."""
    from impl_jax.fast import engine
    return _ours(engine, config, weights, batch, products.jax)


def jax_peer(config, weights, batch, threads):
    """NNX's layers and optax.adam, under jit, its state donated."""
    import jax
    import optax
    from flax import nnx

    from benchmarks.peer_jax import PeerTransformer, load, train_step
    from impl_jax import engine
    model = load(PeerTransformer(config, rngs=nnx.Rngs(0)), weights)
    optimizer = optax.adam(
        TRAINING.learning_rate, TRAINING.beta1, TRAINING.beta2, TRAINING.eps)
    graph, parameters = nnx.split(model)
    state = [parameters, optimizer.init(parameters)]
    del model, parameters
    compiled = jax.jit(functools.partial(train_step, graph, optimizer),
                       donate_argnums=(0, 1))
    source, target = (jax.numpy.asarray(ids[0]) for ids in batch)

    def step():
        *state[:], loss = compiled(*state, source, target)
        return jax.block_until_ready(loss)

    return Ready(step, np.asarray, products.jax,
                 engine.versions() | {"optax": optax.__version__}, STEPS)


IMPLEMENTATIONS = {
    "torch_peer": Timed(torch_peer, "torch.nn.Transformer", ("torch",),
                        "torch_peer"),
    "torch_compiled": Timed(
        torch_compiled, "torch.nn.Transformer, torch.compile", ("torch",),
        "torch_peer"),
    "numpy": Timed(numpy, "NumPy reference, readable form", ("numpy",),
                   "torch_peer", "readable", "numpy"),
    "numpy_fast": Timed(numpy_fast, "NumPy reference, fast form", ("numpy",),
                        "torch_peer", "fast", "numpy"),
    "torch": Timed(torch, "PyTorch port, fast form, eager", ("torch",),
                   "torch_peer", "fast", "torch"),
    "keras_peer": Timed(keras_peer, "keras_hub layers, XLA",
                        ("keras", "keras_hub"), "keras_peer", "", "keras"),
    "keras": Timed(keras, "Keras port, fast form, XLA", ("keras",),
                   "keras_peer", "fast", "keras"),
    "jax_peer": Timed(jax_peer, "nnx layers and optax, jit",
                      ("jax", "flax.nnx", "optax"), "jax_peer", "", "jax"),
    "jax": Timed(jax, "JAX port, fast form, jit", ("jax", "flax.nnx"),
                 "jax_peer", "fast", "jax"),
}
