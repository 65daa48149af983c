"""The gradients of paired parameters, also where one model ties several."""


class ParameterGradients:
    """The gradients of two models by their parameters.

    Args:
        a, b: Traces.
        pairs: of their parameters.

    Attributes:
        tied: (side, pairs) of each parameter of a side that has several
            partners. Its gradient is the sum of theirs.
    """

    def __init__(self, a, b, pairs):
        self.sides, self.pairs = {"a": a, "b": b}, pairs
        self.tied = [*self._tied("a", "b"), *self._tied("b", "a")]

    def _first(self, side, pair):
        """The path under which a side has a parameter first."""
        path = getattr(pair, side)
        return self.sides[side].aliases.get(path, path)

    def _of(self, side, pair):
        """The gradient that a side has by a parameter; None without one."""
        return self.sides[side].gradients.get(self._first(side, pair))

    def _tied(self, side, other):
        groups: dict[str, list] = {}
        for pair in self.pairs:
            groups.setdefault(self._first(side, pair), []).append(pair)
        for group in groups.values():
            if all(len(set(paths)) > 1 for paths in (
                    [getattr(pair, side) for pair in group],
                    [self._first(other, pair) for pair in group])):
                yield side, group

    def of(self, pair):
        """The gradients of a pair of parameters; None where there is none.

        Where a parameter is tied in one model only, the gradients of the other
        model are added up, for the first pair alone.
        """
        gradients = [self._of(side, pair) for side in "ab"]
        for side, group in self.tied:
            if pair not in group:
                continue
            other = "ab"[side == "a"]
            arrays = [self._of(other, each) for each in group]
            if pair is not group[0] or any(
                    array is None for array in arrays) or len({
                        getattr(each, f"{other}_layout")
                        for each in group}) > 1:
                return None, None
            gradients[side == "a"] = sum(arrays)
        return gradients

    def notes(self):
        """Yield a sentence on each parameter that one model alone ties, or
        trains."""
        for side, group in self.tied:
            other = "ab"[side == "a"]
            names = {getattr(pair, side) for pair in group}
            several = {self._first(other, pair) for pair in group}
            yield (f"{', '.join(sorted(names))} of {side} are one parameter, "
                   f"and {', '.join(sorted(several))} of {other} are not: "
                   "training will make them differ.")
        if any(trace.loss is None for trace in self.sides.values()):
            return
        for pair in self.pairs:
            held = [self._of(side, pair) is not None for side in "ab"]
            if held[0] != held[1]:
                one, other = "ab" if held[0] else "ba"
                yield (f"{getattr(pair, one)} is trained in {one} and not in "
                       f"{other}, so that its gradients were not compared.")
