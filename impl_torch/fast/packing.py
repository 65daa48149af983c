"""A batch without the padding behind its rows: the contract's packing.

What is packed is [1 N F], as one row. Attention spreads it out again, to
[B T F], for a query must meet the keys of its own row.
"""

import dataclasses

import torch

from transformer_contract import packing


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


def spread(x, packed):
    """x [B T F] as it is, or [1 N F] put back to where it was packed."""
    return x if packed is None else packed.spread(x)


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


def packed_vectors(model, source, target, source_mask, target_mask, both):
    """What a model projects: [1 N D]; the stacks are given packed x."""
    sources, targets = both
    stacks = model.config.stacks
    if stacks != "decoder":
        memory = model.encoder(
            sources.pack(model.embed_source(source)),
            Attending(source_mask, sources, sources))
        if stacks == "encoder":
            return memory
    x = targets.pack(model.embed_target(target, 0))
    mask = Attending(target_mask, targets, targets)
    if stacks == "decoder":
        return model.decoder(x, mask, None)
    return model.decoder(
        x, memory, Attending(source_mask, targets, sources), mask, None)
