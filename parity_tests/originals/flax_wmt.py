"""Flax's example of translation, as a clone of google/flax has it."""

import functools
import importlib

import numpy as np

from parity_tests.originals import legacy_imports, random_models

#: Padding, with which the decoder begins too.
PADDING = 0


class _Unrounded:
    """jax.numpy, whose float32 is float64."""

    def __getattr__(self, name):
        import jax.numpy
        return getattr(jax.numpy, "float64" if name == "float32" else name)


@functools.cache
@legacy_imports.imported("wmt")
def modules():
    """The example's modules of its model and of its search.

    From here on its model casts no vectors to float32; the table of positions
    stays rounded.
    """
    import jax
    jax.config.update("jax_enable_x64", True)
    models, decode = (importlib.import_module(f"wmt.{name}")
                      for name in ("models", "decode"))
    vars(models).update(jnp=_Unrounded())
    return models, decode


class FlaxWMT:
    """One model, each of whose passes is compiled once.

    Args:
        dialect: not used; the same as the others'.
        described: the fields of the example's TransformerConfig.
    """

    DRAWN: dict = {}

    #: How searches are asked, see ``searching.every``.
    BEAMS, RULES = range(2, 9), ((None, 0.6), (None, 1.0))

    #: That its casts to float32 are taken out.
    casts = True

    provable = staticmethod(lambda dialect: dialect)
    completed = staticmethod(lambda weights, source: weights)
    searched = staticmethod(lambda config: config)
    asked = staticmethod(  # as it shifts labels
        random_models.asked_behind_padding)

    def __init__(self, dialect, described):
        import jax
        from flax.traverse_util import flatten_dict
        self.jax = jax
        self.models, self.decode = modules()
        self.config = self.models.TransformerConfig(
            **described, output_vocab_size=described["vocab_size"],
            dtype=np.float64, deterministic=True)
        ids = np.ones((1, 2), np.int32)
        shapes = jax.eval_shape(
            self.models.Transformer(self.config).init, jax.random.key(0),
            ids, ids)
        self.weights = {name: np.zeros(leaf.shape) for name, leaf
                        in flatten_dict(shapes["params"], sep="/").items()}
        self._run = jax.jit(self._answers)
        self._gradients = jax.jit(jax.value_and_grad(self._loss))

    def arrays(self):
        """Every array of it by its own name."""
        return dict(self.weights)

    def load(self, arrays):
        """Take arrays by name."""
        self.weights |= {name: np.asarray(array)
                         for name, array in arrays.items()}

    # Answers

    def _apply(self, weights, method, *inputs, config=None, cache=None):
        """What a method of its model gives."""
        from flax.traverse_util import unflatten_dict
        model = self.models.Transformer(config or self.config)
        variables = {"params": unflatten_dict(weights, sep="/")}
        if cache is None:
            return model.apply(variables, *inputs, method=method)
        return model.apply({**variables, "cache": cache}, *inputs,
                           method=method, mutable=["cache"])

    def _answers(self, weights, source, labels):
        """Its vectors of the source, and a score for every token.

        What its decoder reads are the labels, shifted behind padding.
        """
        encoded = self._apply(weights, "encode", source)
        return {"encoded": encoded, "logits": self._apply(
            weights, "decode", encoded, source, labels)}

    def _loss(self, weights, source, labels):
        import optax
        logits = self._answers(weights, source, labels)["logits"]
        return optax.softmax_cross_entropy_with_integer_labels(
            logits, labels).mean()

    def run(self, question):
        """Its outputs by name."""
        found = {name: np.asarray(value) for name, value in self._run(
            self.weights, *self._inputs(question)).items()}
        return {**found, "encoded": question.seen(found["encoded"])}

    @staticmethod
    def _inputs(question):
        return question.source, question.labels

    def gradients(self, question):
        """The loss, and its gradient by every array."""
        loss, gradients = self._gradients(
            self.weights, *self._inputs(question))
        return float(loss), {name: np.asarray(gradient)
                             for name, gradient in gradients.items()}

    def step(self, question, training):
        """Make one step of Adam; the loss before it."""
        import optax
        adam = optax.adam(training.learning_rate, training.beta1,
                          training.beta2, training.eps)
        loss, gradients = self.gradients(question)
        changes, _ = adam.update(gradients, adam.init(self.weights))
        self.load(optax.apply_updates(self.weights, changes))
        return loss

    # Searches

    def question(self, seed, rows):
        """Ids [B S] of inputs."""
        return random_models.sources(
            self.config.vocab_size, PADDING, seed, rows)

    def search(self, question, words):
        """What the example's beam search answers, the best first.

        Returns:
            Tokens [B W N] with the first one, and scores [B W].
        """
        beam, most = words["num_beams"], words["max_new_tokens"] + 1
        found = self.jax.jit(functools.partial(
            self._search, beam, most, words["length_penalty"],
            words["eos_token_id"]))(self.weights, question)
        return tuple(np.asarray(each)[:, ::-1] for each in found)

    def _search(self, beam, most, alpha, end, weights, question):
        """As the example's predict_step."""
        config = self.config.replace(decode=True)
        start = self.jax.eval_shape(
            self.models.Transformer(config).init, self.jax.random.key(0),
            question, np.ones((len(question), most), np.int32))["cache"]
        cache = self.jax.tree.map(
            lambda leaf: self.jax.numpy.zeros(leaf.shape, leaf.dtype), start)
        encoded, source = (
            self.decode.flat_batch_beam_expand(each, beam) for each in (
                self._apply(weights, "encode", question), question))

        def scores(ids, cache):
            logits, found = self._apply(
                weights, "decode", encoded, source, ids, config=config,
                cache=cache)
            return logits[:, 0], found["cache"]

        return self.decode.beam_search(
            question, cache, scores, beam, alpha, end, most)
