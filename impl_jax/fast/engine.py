"""The fast form's engine; functions without one are the readable engine's."""

import jax

from contract import fast_forms
from contract.batch import check_search
from impl_jax import engine
from impl_jax.fast.search import SEARCHES
from impl_jax.fast.train import Trainer


def __getattr__(name):
    return getattr(engine, name)


def not_fused(config):
    """What is left to the readable form, in words each."""
    return tuple(fast_forms.left(config))


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    return Trainer(model, training)


def generate(model, source, settings, rows=None):
    """Find targets of sources; the readable form's search if need be."""
    if not fast_forms.compiles(model.config, settings):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    with jax.enable_x64(True):  # scores are float64, the model's dtype or not
        tokens, scores = SEARCHES[settings.method](
            model, engine.to_native(source, model.home), settings, rows)
        return {"tokens": engine.to_numpy(tokens),
                "scores": engine.to_numpy(scores)}
