"""Weights laid out for a search, and by whom its products are computed.

XLA on a processor gives products of float32 to YNNPACK or to Eigen. For the few
rows of a search Eigen is the faster on an AMD EPYC, 0.5 to 1 of the time, as
long as the weight is a kernel [in out]; its transpose takes it ten times as
long. So a tied table is laid out as one for a search that is long enough.
"""

import copy
import functools

import jax
from flax import nnx

from impl_jax.projection import PROJECTIONS, TIED_PROJECTIONS

#: Tokens of a search from which on a copy of the table pays.
LONG = 32

#: Nothing is given to YNNPACK.
BY_EIGEN = ("xla_cpu_experimental_ynn_fusion_type", ""),


class Turned(nnx.Module):
    """A tied projection whose table is kept as a kernel [D V].

    Weights that are changed later do not reach it.
    """

    def __init__(self, tied):
        self.kernel = nnx.Param(tied.embedding.table.embedding[...].T)
        self.bias = getattr(tied, "bias", None)

    def __call__(self, x):
        """Map x [B T D] to logits."""
        logits = x @ self.kernel
        return logits if self.bias is None else logits + self.bias


def laid_out(model, tokens):
    """A model of the same parts, for a search of so many tokens.

    Weights that are changed later do not reach it.

    Returns:
        The model, or itself where nothing pays, and XLA's options for it.
    """
    tied = type(model.projection) in TIED_PROJECTIONS.values()
    known_kind = tied or type(model.projection) in PROJECTIONS.values()
    if tokens < LONG or model.home != "cpu" or not known_kind:
        return model, ()
    if tied:
        model = copy.copy(model)
        model.projection = Turned(model.projection)
    return model, known()


@functools.cache
def known():
    """BY_EIGEN, where this XLA knows it."""
    try:
        jax.jit(abs, compiler_options=dict(BY_EIGEN)).lower(1.0).compile()
    except jax.errors.JaxRuntimeError:
        return ()
    return BY_EIGEN
