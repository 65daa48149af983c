"""A batch without the padding behind its rows; see contract.packing.

What is packed is [1 N F], as one row. Attention spreads it out again, to
[B T F], for a query must meet the keys of its own row.
"""

import dataclasses

import torch

from contract import packing


class Packed:
    """Where N tokens of a batch [B T] stand; the others are padding."""

    def __init__(self, lengths, ids):
        self.shape = tuple(ids.shape)
        self.places = torch.from_numpy(
            packing.places(lengths, self.shape[1])).to(ids.device)

    def pack(self, x):
        """Of x [B T F] what is not padding: [1 N F]."""
        return x.flatten(0, 1).index_select(0, self.places)[None]

    def spread(self, x):
        """Put x [1 N F] back, with zeros where padding is: [B T F]."""
        room = x.new_zeros(self.shape[0] * self.shape[1], x.shape[-1])
        return room.index_copy(0, self.places, x[0]).view(*self.shape, -1)


@dataclasses.dataclass
class Attending:
    """A mask [B 1 T S], and where its queries and its keys are packed."""

    mask: torch.Tensor
    queries: Packed
    keys: Packed


def packed(config, source, labels):
    """How a batch is packed: Packed of sources and of targets.

    None where so little is padding that it does not pay.
    """
    lengths = packing.lengths(config, source.cpu().numpy(),
                              labels.cpu().numpy())
    both = [Packed(length, ids)
            for length, ids in zip(lengths, (source, labels))]
    read = {"encoder": both[:1], "decoder": both[1:]}.get(config.stacks, both)
    if not all(len(one.places) for one in read) or not packing.pays(
            sum(len(one.places) for one in read),
            sum(one.shape[0] * one.shape[1] for one in read)):
        return None
    return both


def pack_kept(drawn, both):
    """What dropout keeps within the stacks, by place, packed as they are.

    The weights of attention are not packed, nor are embeddings.
    """
    stacks = dict(zip(("encoder", "decoder"), both))
    return {name: mask if name.endswith(".weights_dropout")
            or name.partition(".")[0] not in stacks
            else stacks[name.partition(".")[0]].pack(mask)
            for name, mask in drawn.items()}
