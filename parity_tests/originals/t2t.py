"""Tensor2Tensor's Transformer, as a clone of tensorflow/tensor2tensor has it.
"""

import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import pathlib
import sys
import types
from unittest import mock

import numpy as np

from parity_tests.originals import legacy_imports, random_models

#: What it imports for other models, and a Transformer does not use.
STAND_INS = ("tensorflow_addons", "tf_slim", "tensorflow_probability")

#: The files that have the model and descriptions of its sizes and words.
MODULES = ("models.transformer", "layers.modalities", "utils.hparam")

#: What estimators, which TensorFlow has no longer, called a model's modes.
MODES = types.SimpleNamespace(TRAIN="train", EVAL="eval", PREDICT="infer")

#: Padding's id.
PADDING = 0

#: TensorFlow's functions whose numbers are float32 where none is asked for.
FLOATS = ("constant", "ones", "zeros", "to_float", "one_hot")


class _Double:
    """tensorflow.compat.v1, whose float32 is float64."""

    def __init__(self, tf):
        self.tf = tf

    def __getattr__(self, name):
        value = getattr(self.tf, name)
        if name == "float32":
            return self.tf.float64
        return self._double(value) if name in FLOATS else value

    def _double(self, function):
        def made(*args, **words):
            value = function(*args, **words)
            return (self.tf.cast(value, self.tf.float64)
                    if value.dtype == self.tf.float32 else value)
        return made


@functools.cache
@legacy_imports.imported("tensor2tensor")
def modules():
    """TensorFlow as of version 1, and the modules of MODULES.

    Of its many models the one file is imported. From here on nothing in it is
    float32, not even its table of positions, and its layers are those of
    version 1, which TensorFlow keeps for itself.
    """
    import tensorflow.compat.v1 as tf
    from tensorflow.python.keras.legacy_tf_layers import core
    tf.logging.set_verbosity(tf.logging.ERROR)  # on what is deprecated
    folder = pathlib.Path(importlib.util.find_spec(
        "tensor2tensor").submodule_search_locations[0])
    sys.modules["tensor2tensor.models"] = models = types.ModuleType(
        "tensor2tensor.models")
    models.__path__ = [str(folder / "models")]
    estimator = mock.MagicMock(ModeKeys=MODES)
    with legacy_imports.without(*STAND_INS), mock.patch.object(
            tf, "estimator", estimator, create=True):
        found = [importlib.import_module(f"tensor2tensor.{name}")
                 for name in MODULES]
    double = _Double(tf)
    for name, module in sys.modules.items():
        if name.startswith("tensor2tensor.") and hasattr(module, "tf"):
            vars(module).update(tf=double)
    dense = functools.partial(core.Dense, dtype=tf.float64)
    vars(sys.modules["tensor2tensor.layers.common_layers"]).update(
        layers=lambda: types.SimpleNamespace(Dense=dense))
    return tf, *found


class T2T:
    """One model, without the row of a target language.

    Args:
        dialect: not used; the same as the others'.
        described: Tensor2Tensor's own hyperparameters.
    """

    DRAWN: dict = {}

    #: How searches are asked, see ``searching.every``.
    BEAMS, RULES = range(2, 9), ((None, 0.6), (None, 1.0))

    #: That its casts to float32 are taken out.
    casts = True

    @staticmethod
    def provable(dialect):
        """The dialect with a table of positions that is not rounded."""
        return dataclasses.replace(dialect, fixed={
            **dialect.fixed, "position_rounding": "none"})

    asked = staticmethod(random_models.asked)
    completed = staticmethod(lambda weights, source: weights)
    searched = staticmethod(lambda config: config)

    def __init__(self, dialect, described):
        self.tf, self.models, modalities, hparam = modules()
        self.vocab = described["vocab_size"]
        self.hparams = self.models.transformer_base()
        for name, value in {
                **described, "use_target_space_embedding": False}.items():
            if name != "vocab_size":
                self.hparams.set_hparam(name, value)
        self.hparams.loss = {"targets": self._losses}
        words = {"inputs": self.vocab, "targets": self.vocab}
        self.problem = hparam.HParams(
            vocab_size=words, modality=dict.fromkeys(
                words, modalities.ModalityType.SYMBOL),
            input_space_id=0, target_space_id=0, loss_multiplier=1.0)
        with self._graph(MODES.EVAL) as (self.source, model):
            self.labels = self.tf.placeholder(self.tf.int32, [None, None])
            with self.tf.variable_scope(model.name):
                logits, losses = model.call({
                    "inputs": self.source[..., None, None],
                    "targets": self.labels[..., None, None]})
            self.logits, self.loss = logits[:, :, 0, 0], losses["training"]
            self.variables = self._variables()
            self.slopes = self.tf.gradients(
                self.loss, list(self.variables.values()))
            self.session = self.tf.Session()
        self.weights = {name: np.zeros(variable.shape.as_list())
                        for name, variable in self.variables.items()}
        self.load(self.weights)

    def _losses(self, logits, labels, *_, **more):
        """The sum and the number of losses, which are not smoothed."""
        losses = self.tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits)
        return (self.tf.reduce_sum(losses),
                self.tf.cast(self.tf.size(losses), losses.dtype))

    @contextlib.contextmanager
    def _graph(self, mode):
        """Within this, a new graph: the ids of a source, and a model.

        Weights are float64.
        """
        tf = self.tf
        with tf.Graph().as_default(), tf.variable_scope("", dtype=tf.float64):
            tf.set_random_seed(0)  # tensorflow: asked for where it is exact
            yield tf.placeholder(tf.int32, [None, None]), (
                self.models.Transformer(self.hparams, mode, self.problem))

    def _variables(self):
        """The variables of a graph by name."""
        return {variable.op.name: variable
                for variable in self.tf.global_variables()}

    def arrays(self):
        """Every array of it by its own name."""
        return dict(self.weights)

    def load(self, arrays):
        """Take arrays by name."""
        self.weights |= arrays
        self._assign(self.session, self.variables, arrays)

    @staticmethod
    def _assign(session, variables, arrays):
        """Give variables of a session the arrays of their names."""
        starts = {name: variables[name].initializer for name in arrays}
        session.run(list(starts.values()), {
            start.inputs[1]: arrays[name] for name, start in starts.items()})

    # Answers

    def _answer(self, wanted, question):
        """What a part of the graph is, as NumPy has it.

        Tensor2Tensor takes labels, before which it puts a vector of zeros.
        """
        return self.session.run(wanted, {
            self.source: question.source, self.labels: question.labels})

    def run(self, question):
        """Its outputs by name."""
        return {"logits": self._answer(self.logits, question)}

    def gradients(self, question):
        """The loss, and its gradient by every variable."""
        loss, slopes = self._answer([self.loss, self.slopes], question)
        return float(loss), dict(zip(self.variables, slopes))

    def step(self, question, training):
        """Make one step of Adam, whose formula is written out; the loss.

        TensorFlow has its ε before the bias correction, as Keras has.
        """
        loss, gradients = self.gradients(question)
        self.load({name: self.weights[name] - training.learning_rate * slope
                   / (np.abs(slope) + training.eps)
                   for name, slope in gradients.items()})
        return loss

    # Searches

    def question(self, seed, rows):
        """Ids [B S] of inputs; padding's row becomes zeros.

        Padding may be an answer, and is read as zeros there, here as its row.
        """
        table = next(name for name in self.weights
                     if name.endswith("shared/weights_0"))
        rest = np.arange(len(self.weights[table]))[:, None] != PADDING
        self.load({table: self.weights[table] * rest})
        return random_models.sources(self.vocab, PADDING, seed, rows)

    def search(self, question, words):
        """What its beam search answers: tokens [B W N] and scores [B W].

        Tokens begin with the first one. All W hypotheses are asked for, so
        that it does not stop at the best.
        """
        beam, most = words["num_beams"], words["max_new_tokens"]
        with self._graph(MODES.PREDICT) as (source, model):
            model.get_decode_end_id = lambda: words["eos_token_id"]
            found = model.infer(
                {"inputs": source[..., None, None]},
                most - question.shape[1], beam, beam, words["length_penalty"])
            with self.tf.Session() as session:
                self._assign(session, self._variables(), self.weights)
                tokens, scores = session.run(
                    [found["outputs"], found["scores"]],
                    {source: question})
        tokens = np.pad(tokens, (
            (0, 0), (0, 0), (1, most - tokens.shape[2])))
        return tokens, scores
