"""Stacks that have no ends of their own, between ours, to have a loss."""

import dataclasses

from transformer_contract.dialects.rows import SAME, Entry, linear


def add_embeddings_and_projection(dialect):
    """A dialect of stacks with two plain tables and a projection.

    There are no positions, and embeddings are as their tables have them.
    """
    return dataclasses.replace(
        dialect, component="transformer",
        fixed={**dialect.fixed, "positions": "none",
               "embedding_scale": "none"},
        keys={**dialect.keys, "source_vocab": "source_vocab",
              "target_vocab": "target_vocab", "pad_id": "pad_id",
              "max_length": "max_length"},
        rows=(*dialect.rows,
              Entry("source_embedding.table", "source.weight", SAME),
              Entry("target_embedding.table", "target.weight", SAME),
              *linear("projection", "projection")),
        outputs={"memory": "memory", "output": "decoded", "logits": "output"})
