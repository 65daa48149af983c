"""How near a search came to another answer.

Two sound searches compute scores that part in their last digits. Where two
hypotheses score alike to so little, either may come first, and from there on
the answers are others. So the reference can tell, for every row, how wide the
narrowest of its decisions was; a row that was decided by rounding says nothing
about a port.
"""

import numpy as np

from transformer_contract.trace import recording


class Margins:
    """Hears what a search of the reference decides, through its taps.

    Attributes:
        narrowest: float64 [B], each row's narrowest decision, in units of
            log p or of probability; ∞ at first.
    """

    def __init__(self, rows):
        self.narrowest = np.full(rows, np.inf)
        self.deciding, self.heard = np.full(rows, True), {}

    def record(self, search, name, value):
        """Note what a tap of a search shows, and hand it on."""
        settings, self.heard[name] = search.settings, value
        match name:
            case "log_probs" if settings.method == "greedy":
                self.ranked(value, 1)
            case "rank":
                self.drawn(settings, **{
                    what: self.heard[what]
                    for what in ("draw", "scores", "p", "rank")})
            case "candidates":
                self.ranked(value, settings.candidates)
            case "contenders":
                self.ranked(value, settings.beam)
            case "worst":
                with np.errstate(invalid="ignore"):  # of -∞ and -∞
                    self.note(np.abs(value - self.heard["hope"])[:, None])
            case "finished" | "done":
                self.deciding = ~value
        return value

    def note(self, gaps):
        """A decision of each row, by gaps [B n]; what is not finite is none."""
        gaps = np.where(np.isfinite(gaps), gaps, np.inf)
        np.minimum(self.narrowest, gaps.min(axis=-1, initial=np.inf),
                   out=self.narrowest, where=self.deciding)

    def ranked(self, scores, count):
        """That the ``count`` highest of scores [B n] are those, in order."""
        highest = -np.sort(-scores, axis=-1)[:, :count + 1]
        with np.errstate(invalid="ignore"):  # of -∞ and -∞
            self.note(highest[:, :-1] - highest[:, 1:])

    def drawn(self, settings, draw, scores, p, rank):
        """That a draw [B] in [0, 1) fell on a rank [B], by p [B V] of each.

        It could have fallen into what stands beside it, or its token could
        have another rank; top_k and top_p could have kept another token.
        """
        reached = np.cumsum(p, axis=-1)
        whole = (reached[:, :settings.top_k or None][:, -1:]
                 if settings.top_p_of_top_k else 1.0)
        candidates = reached - p < settings.top_p * whole
        if settings.top_k:
            candidates[:, settings.top_k:] = False
            self.ranked(scores, settings.top_k)
        total = np.where(candidates, reached, 0).max(axis=-1, keepdims=True)
        last = np.sum(candidates, axis=-1, keepdims=True) - 1
        inner = np.arange(p.shape[-1]) < last
        self.note(np.where(
            inner, np.abs(reached - draw[:, None] * total), np.inf))
        if settings.top_p < 1:
            self.note(np.abs(reached - p - settings.top_p * whole))
        with np.errstate(invalid="ignore"):  # of -∞ and -∞
            gaps = scores[:, :-1] - scores[:, 1:]
        beside = np.arange(gaps.shape[-1]) - rank[:, None]
        self.note(np.where((beside == 0) | (beside == -1), gaps, np.inf))


def margins(engine, model, source, settings):
    """As the reference's generate, and "margins": float64 [B]."""
    with recording(Margins(len(source))) as heard:
        answers = engine.generate(model, source, settings)
    return {**answers, "margins": heard.narrowest}
