"""What goes wrong with masks, where they are made and where they are used."""

import numpy as np

from parity.causes.cause import ARRAYS, OTHER, Cause
from parity.causes.faults.attention import ATTENTION, weighed_by
from parity.causes.faults.putting import (
    module_of, native_of, numpy_of, replaced)
from parity.causes.formulas import masks
from parity.causes.formulas.scores import OURS, weighed


def causal_by(function):
    """Another causal mask: ``function`` of the right one."""
    return replaced("masks", "causal_mask", lambda old, port: (
        lambda length: native_of(port, np.ascontiguousarray(
            function(numpy_of(port, old(length)))))))


def padding_by(function):
    """Another padding mask, ``function`` of the tokens and of padding's."""
    return replaced("engine", "padding_mask", lambda old, port: (
        lambda tokens, pad_id: native_of(port, np.ascontiguousarray(
            function(numpy_of(port, tokens), pad_id)[:, None, None, :]))))


def begin_hidden(old, port):
    """A decoder's mask that hides a first token that is padding's id."""
    masks = module_of(port, "masks")
    return lambda tokens, pad_id: (
        masks.padding_mask(tokens, pad_id)
        & masks.causal_mask(tokens.shape[1]))


def used_as(function):
    """A mask that attention takes otherwise."""
    return weighed_by(lambda scores, mask: weighed(
        scores, function(mask), OURS))


#: Where a mask shows, by how it is put.
CAUSAL = {"case": "masks", "step": "target_mask"}
PADDING = {"case": "masks", "step": "source_mask"}
USED = {"topic": "attention", "case": "self_attention", "step": "weights"}


def of(name, sentence, words, compute, put, where):
    """The Cause of a mask on which something was done."""
    return Cause(name, sentence=sentence, of=("mask", "attention",
                 "attention without projections", ARRAYS),
                 settings={"mask": words}, compute=compute, put=put,
                 **{"topic": "masks", **where})


#: In the order in which they are tried on a mask.
CAUSES = (
    of("attention without its mask", "The mask is not passed on.", "ignored",
       masks.ignored, used_as(masks.ignored), USED),
    of("no padding mask", "Padding is attended to.", "ignored",
       masks.ignored, padding_by(lambda tokens, pad: np.ones(
           tokens.shape, bool)), PADDING),
    of("no causal mask", "Queries attend to later keys.",
       "the future is seen", masks.with_future, causal_by(masks.with_future),
       CAUSAL),
    of("a causal mask where none belongs", "Later keys are hidden as well.",
       "the future is hidden", masks.without_future,
       used_as(masks.without_future), USED),
    of("causal mask off by one, to the future",
       "A query attends to the next position.",
       "off by one, the next place is seen", masks.with_next,
       causal_by(masks.with_next), CAUSAL),
    of("causal mask off by one, to the past",
       "A query does not attend to its own position.",
       "off by one, the place itself is hidden", masks.without_itself,
       causal_by(masks.without_itself), CAUSAL),
    Cause("a decoder's mask hides a begin that is padding", "masks",
          "A target may begin with padding's id, which is read (R52).",
          put=replaced("masks", "decoder_mask", begin_hidden), **CAUSAL,
          not_explained="two masks show that keys are hidden, not of which "
          "ids"),
    of("padding mask's polarity turned round", "True where there is padding.",
       "turned round", masks.inverted, padding_by(
           lambda tokens, pad: tokens == pad), PADDING),
    of("mask's polarity turned round in attention", "True hides, where "
       "it should let attend.", "turned round", masks.inverted,
       used_as(masks.inverted), USED),
    *(Cause(name, "masks", sentence, ATTENTION, {"sliding window": value},
            not_put="our model sees every place before")
      for name, sentence, value in (
          ("a sliding window off by one", "A query sees one place more, or "
           "one less: the window counts the place itself.", masks.BY_ONE),
          ("no sliding window", "Places far back are seen as well.",
           masks.ALL),
          ("another sliding window", "Places from another distance on are "
           "hidden, in this layer.", OTHER))),
    Cause("another mask", "masks", "Other keys are hidden, by no known "
          "rule.", ("attention", "attention without projections"),
          {"mask": OTHER}, not_put="it stands for whatever mask is not "
          "listed here"),
    Cause("padding mask for another id", "masks", "Another token than "
          "padding is hidden.", put=padding_by(
              lambda tokens, pad: tokens != pad + 1), **PADDING,
          not_explained="a trace has the mask, not the id from which it was "
          "made"),
)
