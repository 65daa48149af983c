"""What goes wrong in convolutions, of which our model has none."""

from parity.causes.cause import OTHER, Cause
from parity.causes.formulas.convolution import EXCHANGED, TURNED

NONE = "our model has no convolution"


def of(name, sentence, **settings):
    """The Cause of a convolution with other settings."""
    return Cause(name, "convolutions", sentence, ("convolution",), {
        key.replace("_", " "): value for key, value in settings.items()},
        not_put=NONE)


CAUSES = (
    of("another stride", "A window begins at other places.", stride=OTHER),
    of("another dilation", "A window's places are nearer to each other, or "
       "farther apart.", dilation=OTHER),
    of("another window", "A kernel is longer, or shorter.", window=OTHER),
    of("padded by another number of places", "Places are seen by windows that "
       "begin earlier, or later: causal ones have all padding before, `same` "
       "with a stride less than a padding by number.", padding_before=OTHER),
    of("padded at another end", "Other places are put behind the last one.",
       padding_behind=OTHER),
    of("padded with something else", "Outside are zeros, the same places "
       "mirrored, the edge, or the other end.", padding_filled_with=OTHER),
    of("another number of groups", "Channels are convolved apart from each "
       "other.", groups=OTHER),
    of("channels grouped in turn", "Channel c of the input belongs to "
       "group c mod G, not to c // (C / G).", grouped_channels="in turn"),
    of("a kernel turned round", "A convolution, where a cross-correlation "
       "belongs: frameworks do not turn the kernel.", kernel=TURNED),
    of("a kernel's axes exchanged", "Two axes of a kernel are of one size, "
       "and taken for each other.", kernel=EXCHANGED),
    of("channels and places exchanged", "[batch, channels, places] is read as "
       "[batch, places, channels].", channels=OTHER),
)
