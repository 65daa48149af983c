"""Which parameter of A is which of B, found while B runs once.

Before a module of B that has parameters is called, those of A that were given
the same inputs are put into it, one after another, and kept where it then
computes what A computed. Where several do, as query, key and value, or where A
does not show what it computed, the module around it decides: its parts are
tried in every likely way, until it gives what A gave.
"""

import dataclasses
import itertools

from parity.conversion.options import marks
from parity.conversion.orders import OrderedOptions
from parity.conversion.weight_trial import ROUNDING, Doubt, Score, WeightTrial
from parity.numerics.dtypes import EPS
from parity.tracing.trace import WHOLE

#: How often one module, and what is around undecided ones, is tried; and that
#: again after so many that nothing helped.
TRIALS, ATTEMPTS, FEW, FAILURES, KEPT = 40, 72, 12, 3, 16

#: Undecided modules that are tried together, whatever each was given.
TOGETHER = 8

#: What a likely source costs less than an unlikely one.
LIKELY = 4


class UnknownInput(Exception):
    """What a module was given is nothing that A computed."""


@dataclasses.dataclass
class Choice:
    """What a called module may be made of.

    Attributes:
        path: of the module.
        options: tuples of MadeFroms, the likeliest first.
        shown: whether with each of them it gave what A gave.
        alive: whether it was given what A computed.
        leaf: whether nothing below it has parameters that are looked for.
    """

    path: str
    options: list
    shown: bool
    alive: bool
    leaf: bool = False


class WeightSearch(WeightTrial):
    """One run of B, in which its parameters are found.

    Args:
        b: the Live B.
        activations: what A computed.
        index: a SourceIndex.
        names: of B's parameters that are looked for.
    """

    def __init__(self, b, activations, index, names):
        super().__init__(b, activations, index, names)
        self.paths = {id(module): path
                      for path, module in b.tracing.modules(b.model)}
        self.open = set(names)
        self.own: dict = {}
        for name in names:
            self.own.setdefault(b.owners[name], []).append(name)
        self.options = OrderedOptions(index, b.names, {
            name: (name.rpartition(".")[0] or WHOLE) == b.owners[name]
            for name in names})
        self.fixed, self.pending, self.forced = set(), [], {}
        self.settled = []
        self.strict = False
        self.calls, self.dead, self.failures = 0, None, 0

    def run(self):
        """Find the source of every parameter that the run uses."""
        self.b.put(self.began)
        with self.b.tracing.calls_seen(self.b.model, self):
            self.b.model(*self.b.inputs, **self.b.keywords)
        return self.sources

    def check_guesses(self, error):
        """Doubt what no module showed and the outputs hardly depend on.

        Args:
            error: the relative error of B's outputs, with what was found.
        """
        guesses = [name for name in self.sources if name not in self.fixed]
        if guesses:
            self._doubt_hidden(guesses, lambda: self.b.model(
                *self.b.inputs, **self.b.keywords), Score(
                    0, error, ROUNDING * EPS.get(self.b.trace.dtype, 0)),
                whole=False)

    # What is called for each module of B

    def call(self, module, function, args, keywords):
        """Call ``function(*args, **keywords)`` as the call of ``module``."""
        path = self.paths.get(id(module))
        if path is None or self.quiet or not self._below(path):
            return function(*args, **keywords)

        def again():
            return function(*args, **keywords)
        mine = [name for name in self.own.get(path, ()) if name in self.open]
        start, dead, calls = len(self.pending), self.dead, self.calls
        single = len(self.settled)
        state = self._state()
        given = self._arrays([args, keywords])
        if mine:
            self._decide(path, mine, again, given)
        out = again()
        alone = [each.path for each in self.pending[start:]] == [path]
        if alone and self.pending[start].shown:
            return out  # what is around decides which of several it is
        score = self.score(out)
        if score:
            self._confirm(start, again, score)
            self.settled[single:] = [each for each in self.settled[single:]
                                     if each.path == path]
            self.dead = dead
            return out
        if alone and self.pending[start].leaf:
            return out
        if dead is not None or not self._alive(given):
            return out
        single = self.settled[single:]
        if all(len(each.options) < 2 for each in self.pending[start:]) and (
                not self.options.may_stand_in_heads(single)):
            return out
        return self._vary(path, mine, again, given, state, start, calls,
                          single)

    def _below(self, path):
        """Whether a module, or one in it, has parameters to be found."""
        return path == WHOLE or any(
            owner == path or owner.startswith(f"{path}.")
            for owner, names in self.own.items()
            if not self.open.isdisjoint(names))

    def _inside(self, path):
        """Whether a module in it has parameters to be found."""
        return any(owner.startswith(f"{path}.") or path == WHOLE
                   and owner != WHOLE for owner, names in self.own.items()
                   if not self.open.isdisjoint(names))

    # One module's own parameters

    def _decide(self, path, mine, again, given):
        """Choose the sources of a module's own parameters."""
        self.calls += 1
        if path in self.forced:
            self._assume(self.forced[path])
            self.pending.append(Choice(
                path, [self.forced[path]], False, True))
            return
        alive = self._alive(given)
        if not alive and self.strict:
            raise UnknownInput
        below = self._inside(path)
        used = mine if below else [
            name for name in mine if self._matters(name, again)]
        if not used:
            return
        options, shown, score = self._candidates(
            used, again, given, alive, below)
        if not options:
            return
        held = {mark for each in self.pending for name in self._names(each)
                for mark in self.sources[name].marks}
        options.sort(key=lambda option: not marks(option).isdisjoint(held))
        self._assume(options[0])
        if score:
            self._doubt_hidden(used, again, score, whole=not any(
                source.cuts or source.cut for source in options[0]))
        if not alive and self.dead is None:
            self.dead = self.calls
        choice = Choice(path, options, shown, alive, not below)
        if shown and len(options) == 1:
            self._fix(options[0])
            self.settled.append(choice)
        else:
            self.pending.append(choice)

    def _candidates(self, used, again, given, alive, below):
        """Likely sources of these parameters, first of near ones.

        Returns:
            the options, whether with each the module gave what A gave, and the
            Score of the best then.
        """
        near = self.activations.reading(given) if alive else set()
        options: list = []
        for wide in (False, True):
            if alive and not below:
                found, score = self._shown(used, again, near, wide)
                if found:
                    return found, True, score
            known = [marks(option) for option in options]
            options += itertools.islice(
                (option for option in self.options.of(used, near, wide)
                 if marks(option) not in known), KEPT)
        return options, False, None

    def _shown(self, names, again, near, wide):
        """The options with which a module gives what A gave, and the Score of
        the best."""
        found: list = []
        for chosen in itertools.islice(
                self.options.of(names, near, wide), TRIALS):
            cost = sum(source.cost for source in chosen)
            if found and cost > LIKELY + found[0][3]:
                break
            key = sorted((source.owners, source.entry.join, sorted(
                source.marks)) for source in chosen)
            if any(key == known and score.exact
                   for known, score, *_ in found):
                continue
            self._put(chosen)
            score = self._agrees(self._quietly(again), chosen)
            if score:
                found.append((key, score, chosen, cost))
        if not found:
            return [], None
        best = min(score for _, score, *_ in found)
        options, known = [], []
        for key, score, chosen, _ in found:
            if key not in known and not best.much_better(score):
                options.append(chosen)
                known.append(key)
        return options, best

    # The modules around

    def _confirm(self, start, again, score):
        """What was tried since then is right; what cannot be told is noted."""
        choices = self.pending[start:]
        del self.pending[start:]
        for choice in choices:
            self._doubt(choice, choices, again, score)
        for choice in choices:
            self._fix([self.sources[name] for name in self._names(choice)])

    def _doubt(self, choice, choices, again, score):
        """Note parameters that might as well be others'."""
        mine = self._names(choice)
        if not choice.shown:
            self._doubt_hidden(mine, again, score)
            return
        for other in choices:
            if other is choice or not other.shown:
                continue
            one, two = ([self.sources[name] for name in self._names(each)]
                        for each in (choice, other))
            change = [option for option in choice.options
                      if marks(option) == marks(two)], [
                option for option in other.options
                if marks(option) == marks(one)]
            if not all(change):
                continue
            changed = (*change[0][0], *change[1][0])
            if self._still(again, changed, [*one, *two], score):
                self.doubts.update(dict.fromkeys(mine, Doubt(
                    "another would fit as well", self._made([*one, *two]),
                    self._made(changed), max(score.error, score.rounding))))

    def _still(self, again, changed, right, score):
        """Whether the outputs are as near to A's with other sources."""
        self._put(changed)
        other = self.score(self._quietly(again))
        self._put(right)
        return other is not None and not score.much_better(other)

    def _names(self, choice):
        return [source.entry.b for source in choice.options[0]]

    def _vary(self, path, mine, again, given, state, start, calls, single):
        """Try what is around undecided modules in every likely way; and, as
        their heads may stand otherwise, ``single`` ones that are decided."""
        first = self.pending[start:]
        reached = self.dead
        final = self._state()
        shown = [each for each in first if each.alive and len(
            each.options) > 1]
        most = ATTEMPTS if self.failures < FAILURES else FEW

        def attempt(forced, strict):
            self._restore(state)
            self.forced = {**self.forced, **forced}
            self.strict, self.calls, self.dead = strict, calls, None
            before = self.forced
            try:
                if mine and path not in self.forced:
                    self._decide(path, mine, again, given)
                elif mine:
                    self.calls += 1
                    self._assume(self.forced[path])
                made = again()
            except UnknownInput:
                return None
            finally:
                self.strict = False
                self.forced = {key: value for key, value in before.items()
                               if key not in forced}
            return made

        hidden = not any(each.shown for each in shown) and (
            len(first) <= TOGETHER)
        best, more = None, FEW
        for combination, strict in self.options.ways(
                first, single, most, hidden, reached is not None):
            score = self.score(attempt(combination, strict))
            if score and (best is None or score.much_better(best[0])):
                best = score, combination, strict
            if best:
                more -= 1
                if best[0].exact or not more:
                    break
        if best:
            score, combination, strict = best
            made = attempt(combination, strict)
            paths = {each.path for each in first}
            first += [each for each in single if each.path in combination
                      and each.path not in paths]
            self.pending[start:] = [dataclasses.replace(
                each, options=[combination.get(
                    each.path, each.options[0]), *each.options])
                if each.path in combination else each for each in first]
            self._confirm(start, again, score)
            self.dead = None
            return made
        self.failures += 1
        self._restore(final)
        self.dead = reached
        return self._quietly(again)

    # What was chosen

    def _assume(self, sources):
        """Put sources into B, which are not sure."""
        self._put(sources)
        for source in sources:
            self.sources[source.entry.b] = source
            self.open.discard(source.entry.b)

    def _fix(self, sources):
        """These are right."""
        for source in sources:
            self.fixed.add(source.entry.b)
            self.open.discard(source.entry.b)
            self.sources[source.entry.b] = source
            self.index.take(source)

    def _state(self):
        return (dict(self.sources), set(self.fixed), set(self.open),
                list(self.pending), set(self.index.taken), dict(self.doubts),
                list(self.settled))

    def _restore(self, state):
        sources, fixed, opened, pending, taken, doubts, settled = state
        self.settled = list(settled)
        self.doubts = dict(doubts)
        self.sources, self.fixed, self.open = (
            dict(sources), set(fixed), set(opened))
        self.pending, self.index.taken = list(pending), set(taken)
        self._put(self.sources.values())
