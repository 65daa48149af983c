"""The fast form's engine; functions without one are the readable engine's."""

import torch

from contract import fast_forms
from contract.batch import check_search
from impl_torch import engine
from impl_torch.engine import on, to_native, to_numpy
from impl_torch.fast.search import Beam, Greedy, Sample
from impl_torch.fast.train import Trainer

SEARCHES = {"greedy": Greedy, "sample": Sample, "beam": Beam}


def __getattr__(name):
    return getattr(engine, name)


def not_fused(config):
    """What is left to the readable form, in words each."""
    return tuple(fast_forms.left(config))


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    return Trainer(model, training)


def generate(model, source, settings, rows=None):
    """Find targets of sources; see the reference's engine.

    For a model that fast/ does not know it is the readable form's own search.
    """
    if not fast_forms.searches(model.config):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    with torch.no_grad(), on(model.home):
        tokens, scores = SEARCHES[settings.method](
            model, to_native(source, model.home), settings, rows).run()
        return {"tokens": to_numpy(tokens), "scores": to_numpy(scores)}
