"""Manners: what a port leaves as it found it, and whether it owns its answers.

``manners`` and ``manners_at_work`` yield (what is asked, whether it is so).
State that is global is compared before and after each of a port's functions,
so that the one is named that changes it.
"""

import copy
import decimal
import functools
import gc
import importlib
import locale
import logging
import os
import pickle
import random
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable

import numpy as np

from transformer_contract.config import PRESETS, at_test_size
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from parity.check import cases, golden
from parity.numerics.dtypes import BOTH

#: The model: one whose steps have been compiled already where that is needed.
PRESET = "lesson"

KEY = np.array([5, 9], np.uint32)

#: Numbers that a processor may be told to take for zero.
SUBNORMAL = np.array([5e-324, 1e-310])

#: What the check itself sets, or draws, while a port works.
MOVED = ("Python's random numbers", "NumPy's random numbers", "random numbers",
         "environment", "filters of warnings", "threads", "streams",
         "threads of products", "garbage collection", "default dtype")

#: Signals that a program may handle.
HANDLED = signal.SIGINT, signal.SIGTERM


def process():
    """What is global in a process: {what: value}."""
    return {
        "environment": dict(os.environ), "folder": os.getcwd(),
        "module path": list(sys.path), "locale": locale.setlocale(
            locale.LC_ALL), "recursion limit": sys.getrecursionlimit(),
        "filters of warnings": list(warnings.filters),
        "garbage collection": gc.isenabled(), "threads": sorted(
            one.name for one in threading.enumerate()),
        "decimals": repr(decimal.getcontext()),
        "Python's random numbers": random.getstate(),
        "NumPy's random numbers": pickle.dumps(np.random.get_state()),
        "NumPy's errors": np.geterr(), "NumPy's print": np.get_printoptions(),
        "numbers near zero": bool((SUBNORMAL * np.ones(2)).any()),
        "hooks of Python": (sys.excepthook, sys.displayhook, sys.gettrace(),
                            sys.getprofile(), threading.excepthook),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "switching of threads": sys.getswitchinterval(),
        "signals": [signal.getsignal(each) for each in HANDLED],
        "temporary folder": tempfile.tempdir,
        "time of sockets": socket.getdefaulttimeout(),
        "logging": (logging.root.level, logging.root.manager.disable,
                    list(logging.root.handlers))}


def torch_state():
    """What is global in PyTorch."""
    torch = importlib.import_module("torch")
    return {
        "gradients on": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "random numbers": torch.get_rng_state().numpy().tobytes(),
        "threads of products": torch.get_num_threads(),
        "float32 products": torch.get_float32_matmul_precision(),
        "TF32": (torch.backends.cuda.matmul.allow_tf32,
                 torch.backends.cudnn.allow_tf32),
        "determinism": torch.are_deterministic_algorithms_enabled(),
        "oneDNN": torch.backends.mkldnn.enabled,
        "anomalies": (torch.is_anomaly_enabled(),
                      torch.is_anomaly_check_nan_enabled()),
        "fast path of attention": torch.backends.mha.get_fastpath_enabled(),
        "kernels of attention": (
            torch.backends.cuda.flash_sdp_enabled(),
            torch.backends.cuda.mem_efficient_sdp_enabled(),
            torch.backends.cuda.math_sdp_enabled()),
        "fresh memory": torch.utils.deterministic.fill_uninitialized_memory,
        "threads between operations": torch.get_num_interop_threads()}


def keras_state():
    """What is global in Keras, and in TensorFlow where it runs on that."""
    keras = importlib.import_module("keras").config
    state = {"default dtype": keras.floatx(), "epsilon": keras.epsilon(),
             "order of axes": keras.image_data_format(),
             "policy of dtypes": keras.dtype_policy().name,
             "tracebacks": keras.is_traceback_filtering_enabled(),
             "flash attention": keras.is_flash_attention_enabled(),
             "logging": keras.is_interactive_logging_enabled()}
    if keras.backend() == "tensorflow":
        config = importlib.import_module("tensorflow").config
        state |= {
            "TF32": config.experimental.tensor_float_32_execution_enabled(),
            "threads": (config.threading.get_intra_op_parallelism_threads(),
                        config.threading.get_inter_op_parallelism_threads()),
            "eager": config.functions_run_eagerly(),
            "soft placement": config.get_soft_device_placement(),
            "compiler": config.optimizer.get_jit()}
    return state


def jax_state():
    """What is global in JAX."""
    return dict(importlib.import_module("jax").config.values)


def mlx_state():
    """What is global in MLX."""
    mlx = importlib.import_module("mlx.core")
    return {"default device": repr(mlx.default_device()),
            "random numbers": [
                np.array(each).tobytes() for each in mlx.random.state]}


STATES = {"torch": torch_state, "keras": keras_state, "jax": jax_state,
          "mlx": mlx_state}

#: What a framework itself changes, of a port's functions: Keras and MLX draw
#: for first values, and MLX's numbers cannot be put back.
CHANGED = {"keras": {"Python's random numbers": ("build", "train_step")},
           "mlx": {"random numbers": ("build", "train_step")}}


def unusual(engine):
    """Have other random numbers, and what a process begins with else."""
    random.seed(17)
    np.random.seed(17)
    if engine.NAME == "torch":
        torch = importlib.import_module("torch")
        torch.manual_seed(17)
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)


class Guest:
    """An engine with a model, and what it is asked.

    Attributes:
        answers: {function: a call that returns its arrays by name}.
        works: the same of what makes gradients, targets and steps.
    """

    def __init__(self, engine):
        self.engine, call = engine, functools.partial
        self.config = at_test_size(PRESETS[PRESET]).replace(dropout=0.1)
        batch = cases.padded_batch(self.config)
        labels = cases.gradients_case(batch, self.config.pad_id).inputs[-1]
        logits = cases.values("logits", *labels.shape, self.config.target_vocab)
        self.weights = weights = golden.shipped(PRESET)
        self.given = {**weights, **dict(zip(("source", "target", "source mask",
                                             "target mask"), batch)),
                      "labels": labels, "logits": logits, "key": KEY}
        self.model = engine.build("transformer", self.config, weights)
        model, pairs = self.model, (batch.source[None], batch.target[None])
        self.answers = {
            "export": call(engine.export, model),
            "call": lambda: engine.call(model, *batch)[1],
            "forward": call(engine.forward, model, *batch),
            "predict": lambda: {"": engine.predict(model, *batch)},
            "masks": call(engine.masks, batch.source, batch.target,
                          self.config.pad_id),
            "loss": lambda: {"": engine.loss(
                logits, labels, self.config.pad_id, 0.1, "uniform")},
            "matmul": lambda: {"": engine.matmul(logits[0], logits[0].T)},
            "build": lambda: engine.export(engine.build(
                "transformer", self.config, weights)),
            "initial_weights": call(
                engine.initial_weights, self.config.replace(
                    n_encoder_layers=1, n_decoder_layers=1), 3)}

        def gradients():
            loss, arrays = engine.gradients(model, *batch, labels, KEY)
            return {"loss": loss, **arrays}

        def search(method):
            return lambda: engine.generate(
                model, batch.source, GenerationConfig(
                    method=method, max_tokens=3))

        def step():
            other = engine.build("transformer", self.config, weights)
            trainer = engine.trainer(other, TrainingConfig(warmup_steps=3))
            told = engine.train_step(trainer, *pairs)
            engine.resume(trainer, 1, engine.moments(trainer))
            return {**told, **engine.moments(trainer)}

        self.works = {"gradients": gradients, "train_step": step, **{
            f"generate, {method}": search(method)
            for method in ("greedy", "beam", "sample")}}

    @property
    def asked(self) -> dict[str, Callable]:
        """All of these."""
        return {**self.answers, **self.works}


#: The Guest of an engine that questions share, since some take long to build.
guest_of = functools.cache(Guest)


def state(engine):
    """What is global: {what: value}."""
    return {**process(), **STATES.get(engine.NAME, dict)()}


#: What was global when a port began to work here: {its name: {what: value}}.
BEGAN: dict = {}


def begun(engine):
    """Note what is global before a port works, its precision being set."""
    BEGAN.setdefault(engine.NAME, state(engine))


def manners(engine):
    """Of what computes forward.

    What is left behind once is seen beside what a port began with.
    """
    now = state(engine)
    for what, value in BEGAN.get(engine.NAME, {}).items():
        if what not in MOVED:
            yield f"{what} since it began", value == now[what]
    guest = guest_of(engine)
    yield from asked_of(engine, guest, "answers")
    if engine.NAME != "numpy":  # which saves memory
        yield from weights_of_its_own(engine, guest)


def manners_at_work(engine):
    """Of what makes gradients, targets and steps of training."""
    yield from asked_of(engine, guest_of(engine), "works")


def weights_of_its_own(engine, guest):
    """Yield whether a model stays as it is where its weights are written into.
    """
    for dtype in BOTH:
        weights = {name: array.astype(dtype)
                   for name, array in guest.weights.items()}
        model = engine.build("transformer", guest.config, weights, dtype)
        before = engine.export(model)
        for array in weights.values():
            array[...] = 1
        yield f"weights of a model in {dtype} are its own", same(
            before, engine.export(model))


def asked_of(engine, guest, which):
    """Yield what each function of a Guest leaves, and what it hands out."""
    given = copy.deepcopy(guest.given)
    for name, function in getattr(guest, which).items():
        unusual(engine)
        before = state(engine)
        first = function()
        after = state(engine)
        for what, value in before.items():
            if name not in CHANGED.get(engine.NAME, {}).get(what, ()):
                yield f"{what} after {name}", value == after[what]
        yield from owned(name, first, function)
    yield "inputs and weights unchanged", all(
        array.tobytes() == given[name].tobytes()
        for name, array in guest.given.items())


def owned(name, first, function):
    """Whether the next answer is equal, though one is written into, and does
    not change that one."""
    kept = copy.deepcopy(first)
    for array in first.values():
        if array.flags.writeable:
            array[...] = 1
    written, second = copy.deepcopy(first), function()
    yield f"{name} twice, the first written into", same(second, kept)
    yield f"arrays of {name} are its own", not any(
        np.shares_memory(array, second[what])
        for what, array in first.items() if array.flags.writeable)
    yield f"{name} as it was", same(first, written)


def same(ours, theirs):
    """Whether arrays by name are equal to the bit."""
    return ours.keys() == theirs.keys() and all(
        array.tobytes() == theirs[name].tobytes()
        for name, array in ours.items())
