"""What all parts are made of: a linear map and a table, as torch has them.

They begin as the contract's initial_weights says, by torch's own numbers.
"""

import math

from torch import nn


class Linear(nn.Linear):
    """x W + b. Parameters: ``weight`` [out in] and ``bias`` [out]."""

    def reset_parameters(self):
        """Uniform, of variance 2 / (in + out) (Glorot and Bengio 2010)."""
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class Table(nn.Embedding):
    """Rows of vectors. Parameter: ``weight`` [V D]."""

    def reset_parameters(self):
        """Uniform, of variance 1 / D: a row has length 1 or so."""
        uniform_rows(self.weight)


def uniform_rows(table):
    """Draw a table [V D]: uniform, of variance 1 / D."""
    limit = math.sqrt(3 / table.shape[1])
    nn.init.uniform_(table, -limit, limit)
