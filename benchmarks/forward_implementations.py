"""The forward passes that are timed, each ready to run."""

import functools

from benchmarks import products
from benchmarks.products import Ready, Timed
from benchmarks.workload import batch, config


def numpy(config, weights, batch, threads):
    """The reference's fast form, which keeps no step."""
    from reference_numpy.fast import engine
    model = _numpy(engine, config, weights)
    return _numpy_ready(lambda: engine.predict(model, *batch))


def numpy_steps(config, weights, batch, threads):
    """The same, every step kept in its cache."""
    from reference_numpy.fast import engine
    model = _numpy(engine, config, weights)
    return _numpy_ready(lambda: model.forward(*batch)[0])


def _numpy(engine, config, weights):
    from parity_io.memory import keep_freed
    keep_freed()
    return engine.build("transformer", config, weights, weights[
        "source_embedding.table"].dtype.name)


def _numpy_ready(forward):
    import numpy as np
    return Ready(forward, np.asarray, products.numpy,
                 {"numpy": np.__version__})


def _torch_ready(forward, threads, note=""):
    import torch
    torch.set_num_threads(threads)

    def without_gradients():
        with torch.no_grad():
            return forward()

    return Ready(without_gradients, lambda y: y.numpy(), products.torch, {
        "torch": torch.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability()}, note=note)


def torch(config, weights, batch, threads):
    """Our port's readable form, eager, without gradients."""
    from impl_torch import engine
    return _torch(engine, config, weights, batch, threads)


def torch_fast(config, weights, batch, threads):
    """Our port's fast form, eager, without gradients."""
    from impl_torch.fast import engine
    return _torch(engine, config, weights, batch, threads)


def _torch(engine, config, weights, batch, threads):
    model = engine.build("transformer", config, weights, "float32")
    inputs = [engine.to_native(value, "cpu") for value in batch]
    return _torch_ready(lambda: model(*inputs), threads)


def peer_compiled(config, weights, batch, threads):
    """The same by torch.compile."""
    return peer(config, weights, batch, threads, compiles=True)


def peer(config, weights, batch, threads, compiles=False):
    """torch.nn.Transformer in eval mode, its encoder on the fast path."""
    import torch

    from benchmarks.peer_torch import PeerTransformer, compiled, load
    from transformer_contract.sinusoids import TABLES
    positions = torch.from_numpy(TABLES[config.positions](
        config.max_length, config.d_model)).to(torch.float32)
    model = load(PeerTransformer(config, positions), weights).eval()
    source, target = (torch.from_numpy(ids)
                      for ids in (batch.source, batch.target))
    causal = torch.nn.Transformer.generate_square_subsequent_mask(
        target.shape[1])
    run, note = compiled(model) if compiles else (model, "")
    return _torch_ready(lambda: run(source, target, causal), threads, note)


def peer_slow(config, weights, batch, threads):
    """The same with the fast path off: Python calls, as in training."""
    import torch
    torch.backends.mha.set_fastpath_enabled(False)
    return peer(config, weights, batch, threads)


def keras(config, weights, batch, threads, xla=False):
    """Our port's readable form on TensorFlow, traced to a graph."""
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)

    from impl_keras import engine
    model = engine.build("transformer", config, weights, "float32")
    inputs = [engine.to_native(value, "cpu") for value in batch]
    forward = tf.function(lambda *inputs: model(*inputs), jit_compile=xla)

    return Ready(lambda: forward(*inputs), engine.to_numpy,
                 functools.partial(products.tensorflow, xla),
                 engine.versions())


def keras_xla(config, weights, batch, threads):
    """Our port's readable form on TensorFlow, compiled by XLA."""
    return keras(config, weights, batch, threads, xla=True)


def jax(config, weights, batch, threads):
    """Our port's readable form under jit, its parameters as arguments."""
    import jax
    from flax import nnx

    from impl_jax import engine
    model = engine.build("transformer", config, weights, "float32")
    inputs = [engine.to_native(value, "cpu") for value in batch]
    graph, state = nnx.split(model)

    @jax.jit
    def forward(state, inputs):
        return nnx.merge(graph, state)(*inputs)

    return Ready(lambda: forward(state, inputs).block_until_ready(),
                 engine.to_numpy, products.jax, engine.versions())


def keras_fast(config, weights, batch, threads):
    """Our port's fast form on TensorFlow; XLA has what is large."""
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    from impl_keras.fast import engine
    return _predicting(engine, config, weights, batch,
                       functools.partial(products.tensorflow, True))


def jax_fast(config, weights, batch, threads):
    """Our port's fast form, under jit."""
    from impl_jax.fast import engine
    return _predicting(engine, config, weights, batch, products.jax)


def _predicting(engine, config, weights, batch, product):
    """An engine's own answer to arrays, as an array."""
    model = engine.build("transformer", config, weights, "float32")
    return Ready(lambda: engine.predict(model, *batch), lambda y: y, product,
                 engine.versions())


def keras_peer(config, weights, batch, threads):
    """keras_hub's layers, compiled by XLA."""
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    import keras_hub

    from benchmarks.peer_keras import PeerTransformer, load
    from impl_keras import engine
    model = load(PeerTransformer(config), weights)
    source, target = (tf.constant(ids)
                      for ids in (batch.source, batch.target))
    forward = tf.function(
        lambda *ids: model(*ids, training=False), jit_compile=True)
    return Ready(lambda: forward(source, target), engine.to_numpy,
                 functools.partial(products.tensorflow, True),
                 engine.versions() | {"keras_hub": keras_hub.__version__})


def jax_peer(config, weights, batch, threads):
    """NNX's layers under jit, the parameters as arguments."""
    import jax
    from flax import nnx

    from benchmarks.peer_jax import PeerTransformer, load
    from impl_jax import engine
    model = load(PeerTransformer(config.replace(dropout=0.0),
                                 rngs=nnx.Rngs(0)), weights)
    graph, state = nnx.split(model)
    source, target = (jax.numpy.asarray(ids)
                      for ids in (batch.source, batch.target))

    @jax.jit
    def forward(state, source, target):
        return nnx.merge(graph, state)(source, target)

    return Ready(lambda: forward(state, source, target).block_until_ready(),
                 engine.to_numpy, products.jax, engine.versions())


IMPLEMENTATIONS = {
    "peer": Timed(peer, "torch.nn.Transformer", ("torch",), "peer"),
    "peer_slow": Timed(peer_slow, "torch.nn.Transformer, fast path off",
                       ("torch",), "peer"),
    "peer_compiled": Timed(
        peer_compiled, "torch.nn.Transformer, torch.compile", ("torch",),
        "peer"),
    "numpy": Timed(numpy, "NumPy reference, fast form", ("numpy",), "peer",
                   "fast", "numpy"),
    "numpy_steps": Timed(numpy_steps, "NumPy reference, fast, with steps",
                         ("numpy",), "peer", "fast", "numpy"),
    "torch": Timed(torch, "PyTorch port, readable form, eager", ("torch",),
                   "peer", "readable", "torch"),
    "torch_fast": Timed(torch_fast, "PyTorch port, fast form, eager",
                        ("torch",), "peer", "fast", "torch"),
    "keras_peer": Timed(keras_peer, "keras_hub layers, XLA",
                        ("keras", "keras_hub"), "keras_peer", "", "keras"),
    "keras": Timed(keras, "Keras port, readable form, tf.function",
                   ("keras",), "keras_peer", "readable", "keras"),
    "keras_xla": Timed(keras_xla, "Keras port, readable form, XLA",
                       ("keras",), "keras_peer", "readable", "keras"),
    "keras_fast": Timed(keras_fast, "Keras port, fast form", ("keras",),
                        "keras_peer", "fast", "keras"),
    "jax_peer": Timed(jax_peer, "nnx layers, jit", ("jax", "flax.nnx"),
                      "jax_peer", "", "jax"),
    "jax": Timed(jax, "JAX port, readable form, jit", ("jax", "flax"),
                 "jax_peer", "readable", "jax"),
    "jax_fast": Timed(jax_fast, "JAX port, fast form, jit",
                      ("jax", "flax.nnx"), "jax_peer", "fast", "jax"),
}
