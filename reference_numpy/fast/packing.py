"""A batch without the padding behind its rows: the contract's packing.

What is packed is [N F]. Attention spreads it out again, to [B T F], for a query
must meet the keys of its own row. A thread has some rows of the batch, and so
some of the N tokens.
"""

import itertools

import numpy as np

from transformer_contract import packing


def share_out(length, count):
    """Slices that share ``length`` out evenly; none is empty."""
    ends = [length * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(ends) if a < b]


class PackedSide:
    """The sources or the targets of a batch, in shares of its rows.

    Attributes:
        ids: int [N], the tokens that are not left out.
        positions: int [N], where in its row each stands.
        length, size: T and B·T of the batch.
        whole: whether no token is left out.
        shares: slices of the N tokens, a share each.
    """

    def __init__(self, ids, lengths, rows):
        self.rows, self.length = rows, ids.shape[1]
        self.places = packing.places(lengths, self.length)
        self.size, self.ids = ids.size, ids.ravel()[self.places]
        self.positions = self.places % self.length
        self.whole = len(self.places) == ids.size
        ends = np.concatenate([[0], np.cumsum(lengths)])
        self.shares = [slice(ends[of.start], ends[of.stop]) for of in rows]

    def __len__(self):
        return len(self.ids)

    def all(self, *arrays):
        """The tokens of all shares, from those of one: [N F] each."""
        return [x.base[:len(self)] for x in arrays]

    def spread(self, x, share):
        """A share's x [n F] as [R T F], zeros where padding is."""
        rows = self.rows[share]
        shape = (rows.stop - rows.start, self.length, x.shape[1])
        if self.whole:
            return x.reshape(shape)
        room = np.zeros((shape[0] * shape[1], shape[2]), x.dtype)
        room[self._places(share)] = x
        return room.reshape(shape)

    def pack(self, x, share, out):
        """Of x [R T F] what is not padding, into out [n F].

        Where nothing is, x is out itself, spread.
        """
        if not self.whole:
            np.take(x.reshape(-1, x.shape[-1]), self._places(share), axis=0,
                    out=out)

    def _places(self, share):
        return (self.places[self.shares[share]]
                - self.rows[share].start * self.length)
