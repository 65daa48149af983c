"""A batch of sentence pairs: token ids and the masks that follow from them."""

import dataclasses

import numpy as np

from transformer_contract import checks
from parity_io.errors import plural


@dataclasses.dataclass(frozen=True)
class Batch:
    """Token ids and masks of B pairs.

    Attributes:
        source: int64 [B S].
        target: int64 [B T], what the decoder reads.
        source_mask: bool [B 1 1 S]; True where a key is not padding.
        target_mask: bool [B 1 T T]; True where a key is not later than the
            query and not padding, but a target's begin is always read (R52).
    """

    source: np.ndarray
    target: np.ndarray
    source_mask: np.ndarray
    target_mask: np.ndarray

    @classmethod
    def of_ids(cls, source, target, pad_id=0, begun=True):
        """A batch whose masks follow from the ids alone.

        ``begun``: the first of a target is its begin, which is read even if
        it is padding's id; a model of one stack has none.
        """
        source, target = np.asarray(source), np.asarray(target)
        length = target.shape[-1]
        earlier = np.tri(length, dtype=bool)
        begin = (np.arange(length) == 0) & begun
        return cls(
            source, target,
            (source != pad_id)[:, None, None, :],
            (begin | (target != pad_id))[:, None, None, :] & earlier,
        )

    @classmethod
    def of_text(cls, sources, targets, tokenizer):
        """A batch from sentences; targets get a bos and an eos."""
        return cls.of_ids(
            tokenizer.pad([tokenizer.encode(text) for text in sources]),
            tokenizer.pad([
                [tokenizer.bos_id, *tokenizer.encode(text), tokenizer.eos_id]
                for text in targets
            ]),
            tokenizer.pad_id,
        )

    def __iter__(self):
        """source, target, source_mask, target_mask: a Transformer's inputs."""
        return iter((self.source, self.target,
                     self.source_mask, self.target_mask))

    def check(self, config):
        """Raise InputError where a model of ``config`` cannot read it."""
        check_inputs(config, *self)
        return self


def check_inputs(config, source, target, source_mask, target_mask):
    """Raise InputError unless a model of ``config`` can read these arrays."""
    checks.tokens(source, config.source_ids, config.source_length, "source")
    checks.tokens(target, config.target_vocab, config.max_length, "target")
    (batch, s), (rows, t) = np.shape(source), np.shape(target)
    checks.pairs(batch, rows)
    checks.mask(source_mask, (batch, 1, 1, s))
    checks.mask(target_mask, (batch, 1, t, t))


def check_pairs(config, sources, targets):
    """Raise InputError unless a model of ``config`` can train on these ids.

    Args:
        sources: int [A B S], A batches of B sequences.
        targets: int [A B T], from bos to eos.
    """
    sources, targets = np.asarray(sources), np.asarray(targets)
    for ids, what in ((sources, "source"), (targets, "target")):
        if ids.ndim != 3:
            raise checks.InputError(
                f"the {what} ids have shape {list(ids.shape)}; give batches "
                "of sequences, [batches, batch, length].")
    if sources.shape[:2] != targets.shape[:2]:
        raise checks.InputError(
            f"the sources are {list(sources.shape[:2])} sequences and the "
            f"targets {list(targets.shape[:2])}; give as many of one as of "
            "the other.")
    if sources.size == 0 or targets.size == 0:
        raise checks.InputError(
            f"the ids are empty (sources {list(sources.shape)}, targets "
            f"{list(targets.shape)}); give at least one pair.")
    if targets.shape[2] < 2:
        raise checks.InputError(
            "the targets have one token; give at least two, of which the "
            "first is read and the second predicted.")
    if config.stacks == "encoder" and targets.shape[2] != 1 + sources.shape[2]:
        raise checks.InputError(
            f"the sources have {sources.shape[2]} tokens and the targets "
            f"{targets.shape[2]}; give a model of an encoder alone a label for "
            "each token of a source, behind one that is not read.")
    checks.tokens(sources.reshape(-1, sources.shape[2]),
                  config.source_ids, config.source_length, "source")
    checks.tokens(targets[:, :, 1:].reshape(-1, targets.shape[2] - 1),
                  config.target_vocab, config.max_length, "target")
    checks.tokens(targets[:, :, :1].reshape(-1, 1),
                  config.target_vocab, config.max_length, "target")


def check_search(config, source, settings, rows):
    """Raise InputError unless a model of ``config`` can search as asked.

    Returns:
        ``rows``, or 0, 1, 2, … in their place.
    """
    settings.check(config)
    if config.stacks == "encoder":
        raise checks.InputError(
            "a model of an encoder alone writes no targets; choose one with a "
            "decoder.")
    checks.tokens(source, config.source_ids, config.source_length, "source")
    if config.stacks == "decoder":
        checks.length(np.shape(source)[1] - 1 + settings.max_tokens,
                      config.max_length, "prompt and its target")
    rows = np.arange(len(source)) if rows is None else np.asarray(rows)
    if rows.shape != (len(source),) or rows.dtype.kind not in "iu":
        raise checks.InputError(
            f"the rows are {rows.dtype} of shape {list(rows.shape)}; give a "
            f"whole number for each of {plural(len(source), 'source')}.")
    return rows


def check_one_batch(sources):
    """Raise InputError unless these ids [A B S] are those of one batch."""
    if len(sources) != 1:
        raise checks.InputError(
            f"a step in mixed precision has one batch, and not {len(sources)}; "
            "give one, or accumulate in float32.")
