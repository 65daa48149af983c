"""Which parameter of A is which of B, found while B runs once.

Before a module of B that has parameters is called, those of A that were given
the same inputs are put into it, one after another, and kept where it then
computes what A computed. Where several do, as query, key and value, or where A
does not show what it computed, the module around it decides: its parts are
tried in every likely way, until it gives what A gave.
"""

import contextlib
import dataclasses
import itertools

import numpy as np

from parity.conversion.options import Options, marks
from parity.conversion.seen import same
from parity.conversion.sources import is_bias
from parity.conversion.weights import drawn
from parity.tracing.recorder import mapped
from parity.tracing.trace import WHOLE, is_float

#: How often one module, and what is around undecided ones, is tried; and that
#: again after so many that nothing helped.
TRIALS, ATTEMPTS, FEW, FAILURES, KEPT = 40, 72, 12, 3, 16

#: Undecided modules that are tried together, whatever each was given.
TOGETHER = 8

#: What a likely source costs less than an unlikely one.
LIKELY = 4


class Dead(Exception):
    """What a module was given is nothing that A computed."""


@dataclasses.dataclass
class Choice:
    """What a called module may be made of.

    Attributes:
        path: of the module.
        options: tuples of MadeFroms, the likeliest first.
        shown: whether with each of them it gave what A gave.
        alive: whether it was given what A computed.
    """

    path: str
    options: list
    shown: bool
    alive: bool


class WeightSearch:
    """One run of B, in which its parameters are found.

    Args:
        b: the Live B.
        seen: what A saw.
        book: of sources.
        names: of B's parameters that are looked for.
    """

    def __init__(self, b, seen, book, names):
        self.b, self.seen, self.book = b, seen, book
        self.framework = b.tracing.framework_for(b.model)
        self.paths = {id(module): path
                      for path, module in b.tracing.modules(b.model)}
        self.open = set(names)
        self.own = {}
        for name in names:
            self.own.setdefault(b.owners[name], []).append(name)
        self.options = Options(book, b.names, {
            name: (name.rpartition(".")[0] or WHOLE) == b.owners[name]
            for name in names})
        self.sources, self.fixed, self.doubts = {}, set(), {}
        self.pending, self.forced = [], {}
        self.quiet, self.strict = False, False
        self.calls, self.dead, self.failures = 0, None, 0

    def run(self):
        """Find the source of every parameter that the run uses."""
        with self.b.tracing.calls_seen(self.b.model, self):
            self.b.model(*self.b.inputs, **self.b.keywords)
        return self.sources

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
        state = self._state()
        given = self._arrays([args, keywords])
        if mine:
            self._decide(path, mine, again, given)
        out = again()
        alone = [each.path for each in self.pending[start:]] == [path]
        if alone and self.pending[start].shown:
            return out  # what is around decides which of several it is
        if self.seen_all(out):
            self._confirm(start, again)
            self.dead = dead
            return out
        if dead is not None or not self._alive(given):
            return out
        if all(len(each.options) < 2 for each in self.pending[start:]):
            return out
        return self._vary(path, mine, again, given, state, start, calls)

    def _below(self, path):
        """Whether a module, or one in it, has parameters to be found."""
        return path == WHOLE or any(
            owner == path or owner.startswith(f"{path}.")
            for owner, names in self.own.items()
            if not self.open.isdisjoint(names))

    def _arrays(self, value):
        """The arrays in a nest of arguments or outputs, as NumPy's."""
        found = []

        def visit(name, leaf):
            if self.framework.is_array(leaf) and self.framework.is_seen(leaf):
                found.append(self.framework.to_numpy(leaf))
            return leaf
        mapped(value, "", visit)
        return found

    def _alive(self, given):
        """Whether all floating inputs are what A computed."""
        return all(self.seen.has(array) for array in given
                   if is_float(array) and array.ndim > 1
                   and np.ptp(array) > 0)

    def seen_all(self, out):
        """Whether A computed what a module gives, or its first array."""
        arrays = [array for array in self._arrays(out) if is_float(array)]
        return bool(arrays) and self.seen.has(arrays[0])

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
            raise Dead
        below = any(owner.startswith(f"{path}.") or path == WHOLE
                    and owner != WHOLE for owner, names in self.own.items()
                    if not self.open.isdisjoint(names))
        used = mine if below else [
            name for name in mine if self._matters(name, again)]
        if not used:
            return
        near = self.seen.reading(given) if alive else set()
        found, options = [], []
        for wide in (False, True):
            if alive and not below and not found:
                found = self._shown(used, again, near, wide)
            if not found:
                known = [marks(option) for option in options]
                options += itertools.islice(
                    (option for option in self.options.of(used, near, wide)
                     if marks(option) not in known), KEPT)
        options = found or options
        if not options:
            return
        held = {mark for each in self.pending for name in self._names(each)
                for mark in self.sources[name].marks}
        options.sort(key=lambda option: not marks(option).isdisjoint(held))
        self._assume(options[0])
        if not alive and self.dead is None:
            self.dead = self.calls
        choice = Choice(path, options, bool(found), alive)
        if len(found) == 1:
            self._fix(options[0])
        else:
            self.pending.append(choice)

    def _shown(self, names, again, near, wide):
        """The options with which a module gives what A gave."""
        found, owners = [], set()
        for chosen in itertools.islice(
                self.options.of(names, near, wide), TRIALS):
            cost = sum(source.cost for source in chosen)
            if found and cost > LIKELY + sum(
                    source.cost for source in found[0]):
                break
            key = tuple((source.owners, source.marks) for source in chosen)
            key = repr(sorted(map(repr, key)))
            if key in owners:
                continue
            self._put(chosen)
            if self._agrees(self._quietly(again), chosen):
                found.append(chosen)
                owners.add(key)
        return found

    def _agrees(self, out, chosen):
        """Whether a module gives what A gave, or the part that it is of."""
        arrays = [array for array in self._arrays(out) if is_float(array)]
        if not arrays:
            return False
        main, source = arrays[0], chosen[0]
        with contextlib.suppress(ValueError):  # a cut that does not fit
            if source.cuts:
                return all(self.seen.has(cut(main)) for cut in source.cuts)
            if source.cut is not None:
                return any(
                    same(main, source.cut(each))
                    for each in self.seen.outputs.get(source.owners[0], ())
                    if each.ndim and each.size > main.size)
        return self.seen.has(main)

    def _matters(self, name, again):
        """Whether a module's output depends on one of its parameters."""
        before = self._arrays(self._quietly(again))
        array = self._present(name)
        self.b.put({name: array + drawn(f"{name} otherwise", array)})
        after = self._arrays(self._quietly(again))
        self.b.put({name: array})
        return any(x.shape != y.shape or not np.array_equal(
            x, y, equal_nan=True) for x, y in zip(before, after))

    def _present(self, name):
        """The array that a parameter of B has now."""
        source = self.sources.get(name)
        return (self.b.names[name] if source is None
                else source.entry.made(self.book.a.names))

    # The modules around

    def _confirm(self, start, again):
        """What was tried since then is right; what cannot be told is noted."""
        choices = self.pending[start:]
        del self.pending[start:]
        for choice in choices:
            self._doubt(choice, choices, again)
        for choice in choices:
            self._fix([self.sources[name] for name in self._names(choice)])

    def _doubt(self, choice, choices, again):
        """Note parameters that might as well be others'."""
        mine = self._names(choice)
        if choice.shown:
            for other in choices:
                if other is choice or not other.shown:
                    continue
                one, two = ([self.sources[name] for name in self._names(each)]
                            for each in (choice, other))
                change = [option for option in choice.options
                          if marks(option) == marks(two)], [
                    option for option in other.options
                    if marks(option) == marks(one)]
                if all(change) and self._still(again, change[0][0] + tuple(
                        change[1][0]), [*one, *two]):
                    self.doubts.update(dict.fromkeys(
                        mine, "another would fit as well"))
            return
        for name in mine:
            if not is_bias(name) and not self._matters(name, again):
                self.doubts[name] = "the run does not depend on it"

    def _still(self, again, changed, right):
        """Whether the outputs are still those of A with other sources."""
        self._put(changed)
        out = self._quietly(again)
        self._put(right)
        return self.seen_all(out)

    def _names(self, choice):
        return [source.entry.b for source in choice.options[0]]

    def _vary(self, path, mine, again, given, state, start, calls):
        """Try what is around undecided modules in every likely way."""
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
            except Dead:
                return None
            finally:
                self.strict = False
                self.forced = {key: value for key, value in before.items()
                               if key not in forced}
            return made

        hidden = not any(each.shown for each in shown) and (
            len(first) <= TOGETHER)
        for strict in (False,) if hidden else (True, False):
            choices = shown if strict else first
            if not choices or strict and reached is None:
                continue
            for combination in itertools.islice(
                    self.options.together(choices), most * (1 + 3 * hidden)):
                made = attempt(combination, strict)
                if made is not None and self.seen_all(made):
                    self.pending[start:] = [dataclasses.replace(
                        each, options=[combination.get(
                            each.path, each.options[0]), *each.options])
                        if each.path in combination else each
                        for each in first]
                    self._confirm(start, again)
                    self.dead = None
                    return made
        for combination in itertools.islice(self.options.in_pairs(
                [each for each in first if each.shown]), most):
            made = attempt(combination, True)
            if made is not None and self.seen_all(made):
                self._confirm(start, again)
                self.dead = None
                return made
        self.failures += 1
        self._restore(final)
        self.dead = reached
        return self._quietly(again)

    # What is put into B

    def _quietly(self, again):
        """Call a module without deciding anything."""
        self.quiet = True
        try:
            return again()
        finally:
            self.quiet = False

    def _put(self, sources):
        self.b.put({source.entry.b: source.entry.made(self.book.a.names)
                    for source in sources})

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
            self.book.take(source)

    def _state(self):
        return (dict(self.sources), set(self.fixed), set(self.open),
                list(self.pending), set(self.book.taken))

    def _restore(self, state):
        sources, fixed, opened, pending, taken = state
        self.sources, self.fixed, self.open = (
            dict(sources), set(fixed), set(opened))
        self.pending, self.book.taken = list(pending), set(taken)
        self._put(self.sources.values())
