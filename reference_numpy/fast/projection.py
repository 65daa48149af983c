"""The projection as one product of two matrices.

A tied projection multiplies by the transpose of the embedding's table, which
OpenBLAS reads in twice the time that it takes for the same kernel laid out as a
projection's own is, [D V]. A search that is long enough makes that copy.
"""

import copy

import numpy as np

from reference_numpy import projection
from reference_numpy.fast.linear import Linear, LinearWithoutBias

#: Tokens of a search from which on a copy of the table pays.
LONG = 32

#: Rows of a table that are laid out anew at once, so that both stay in the
#: first cache.
ROWS = 16


class Projection(projection.Projection, Linear):
    """See reference_numpy.projection."""


class ProjectionWithoutBias(
        projection.ProjectionWithoutBias, LinearWithoutBias):
    """See reference_numpy.projection."""


#: By whether there is a bias.
PROJECTIONS = {True: Projection, False: ProjectionWithoutBias}


def turned(model):
    """A model of the same parts, whose projection has a kernel of its own.

    Weights that are changed later do not reach it.
    """
    table = model.projection.embedding.table
    own = PROJECTIONS[model.config.has_output_bias](*table.shape[::-1])
    own.kernel = transposed(table)
    if model.config.has_output_bias:
        own.bias = model.projection.bias
    model = copy.copy(model)
    model.projection = own
    return model


def transposed(table):
    """A table [V D] as a kernel [D V], in the kernel's order."""
    kernel = np.empty(table.shape[::-1], table.dtype)
    for i in range(0, len(table), ROWS):
        kernel[:, i:i + ROWS] = table[i:i + ROWS].T
    return kernel
