"""The projection as one product of two matrices."""

from reference_numpy.dialects import projection
from reference_numpy.fast.linear import Linear, LinearWithoutBias


class Projection(projection.Projection, Linear):
    """See reference_numpy.dialects.projection."""


class ProjectionWithoutBias(
        projection.ProjectionWithoutBias, LinearWithoutBias):
    """See reference_numpy.dialects.projection."""
