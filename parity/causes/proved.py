"""Differences that were proved by running b, as Explanations."""

import pathlib
import re

from parity.causes.difference import FaultOfPrograms
from parity.causes.explanation import UNIDENTIFIED, Explanation
from parity.causes.lines import lines_of
from parity.causes.naming import (
    ACTIVATIONS, COMPUTATION, named, numbers_of)
from parity.causes.naming_arrays import is_turned
from parity.numerics.words import number
from parity.operations import roles
from parity.operations.built import OWN
from parity.operations.frames import folder_of
from parity.operations.layouts import distance, relaid
from parity.operations.program import PARAMETER
from parity.operations.trial import EXTRA, MISSING, ORDER, SCALAR

#: Causes that are a number of which a table is made.
BASES = {"rotary base", "base of the positions"}

#: Steps that are known by what they are called.
STEPS = {*ACTIVATIONS, "norm", "softmax", "position encoding"}

#: What a module is called where it is not known.
WHOLE = "(model)"


def explanations(outcome, built=None, idle=None, made=None):
    """An Explanation of each difference that a search found.

    Args:
        outcome: a SearchOutcome of parity.operations.found.
        idle: a function of a path, which returns the line at which b's module
            of that path begins, or is made if it is a framework's own; or "".
        built: "a" and "b" -> a function of a module's path and a number,
            which returns the line that sets it, or at which a module of the
            framework's own is made, or ""; and the setting's name, or "".
        made: "a" and "b" -> a function of a module's path, which returns the
            line at which it, or what it is in, is made; or "".
    """
    told, before = [], []
    for found in outcome.found:
        difference = FaultOfPrograms(found)
        each = explanation(difference, outcome.corrected)
        if built:
            _trace_back(difference, each, built)
        if idle and difference.trial.kind == MISSING:
            _in_idle(difference, each, idle)
        if not _is_moved(before, difference, each):
            _add(told, each, found.trial.kind == SCALAR)
        before.append((difference, each))
    told = [each for difference, each in before if not _is_part(
        before, difference, each) and any(each is one for one in told)]
    for each in told:
        each.proof = _proof(outcome, len(told) == 1)
    for difference, each in before if made else ():
        _out_of_libraries(difference, each, made)
    return told


def _is_part(before, difference, each):
    """Whether a difference goes with one that has a name: the order of what
    is gathered from a sequence that runs the other way; or, at the same lines,
    a computation without a name, found together, or softmax's own shift beside
    its axis."""
    trial = difference.trial
    if trial.kind == ORDER and any(
            other.found.after is difference.found.before
            and is_turned(other.trial) for other, _ in before):
        return True
    shifts = trial.b is not None and roles.is_shift(difference.two, trial.b)
    return each.cause in (COMPUTATION, UNIDENTIFIED) and any(
        other is not difference and told.identified
        and told.cause != COMPUTATION
        and (other.found.before is difference.found.before
             or shifts and told.cause.endswith("softmax"))
        and (told.place_a, told.place_b) == (each.place_a, each.place_b)
        for other, told in before)


def _out_of_libraries(difference, each, made):
    """Tell the user's line that makes a layer in the place of a framework's
    own, where nothing of the user's calls it."""
    for side in "ab":
        file = lines_of(difference, side)[0].file
        if file and file.startswith(tuple(filter(None, map(
                folder_of, OWN)))) and getattr(
                each, f"place_{side}").startswith(
                f"{pathlib.PurePath(file).name}:") and (
                line := made[side](getattr(each, side))):
            setattr(each, f"place_{side}", line)
            setattr(each, f"called_{side}", "")


def _in_idle(difference, each, idle):
    """Tell a step of a's module in b's of that path, where b has one that does
    nothing."""
    if any(operation.module == each.a or operation.module.startswith(
            f"{each.a}.") for operation in difference.b.operations):
        return
    if each.a != WHOLE and (line := idle(each.a)):
        each.b, each.also = each.a, [[one, one] for one, _ in each.also]
        each.made_b, each.place_b = each.made_b or each.place_b, line
        each.sentence = _sentence(each)


def _is_moved(before, difference, each):
    """Whether a step that one side does more is one that it does less at
    another place: then it is told once, as standing elsewhere."""
    kinds = {MISSING, EXTRA}
    for other, told in before:
        if {difference.trial.kind, other.trial.kind} != kinds or not (
                same_step(difference, other)):
            continue
        lacks, has = (each, told) if difference.trial.kind == MISSING else (
            told, each)
        told.cause = f"place of {has.cause}"
        told.in_a, told.in_b = lacks.in_a, has.in_b
        for side, kept in (("a", lacks), ("b", has)):
            for name in (side, f"place_{side}", f"called_{side}",
                         f"expression_{side}"):
                setattr(told, name, getattr(kept, name))
        told.sentence = _sentence(told)
        return True
    return False


def same_step(one, two):
    """Whether two steps are one: with the same parameters, or called the same
    where one of them has none."""
    (words, steps, have), (other, theirs, others) = map(step_of, (one, two))
    if have and others or not words == other in STEPS:
        return (steps, have) == (theirs, others)
    return True


def step_of(difference):
    """What a step that one side does more is recognised by: what it is
    called, and the operations and the parameters of it."""
    side = "a" if difference.trial.kind == MISSING else "b"
    program, steps = getattr(difference, side), difference.steps(side)
    skeleton = difference.skeleton(side)
    return named(difference)[0], sorted(each.name for each in steps), sorted(
        program.values[root].signature.moments for each in steps
        for root in skeleton.arrays(each).values()
        if program.values[root].kind == PARAMETER)


def _sentence(each):
    """An Explanation in a sentence."""
    where = each.a if each.a == each.b else f"{each.a} ({each.b} in b)"
    return f"In {where}, {each.cause}: {each.in_b} in b, {each.in_a} in a."


def _trace_back(difference, each, built):
    """Tell of a number the line that sets it, and the one that uses it."""
    if difference.trial.kind == SCALAR:
        numbers = numbers_of(difference)
    elif each.cause in BASES:
        numbers = (float(each.in_a), float(each.in_b))
    else:
        return
    for side, value in zip("ab", numbers):
        line, name = built[side](getattr(each, side), value)
        if line:
            setattr(each, f"called_{side}", getattr(each, f"place_{side}"))
            setattr(each, f"place_{side}", line)
        if name and side == "b":
            each.known.insert(0, f"It is {name} of {each.b} in b.")


def _add(told, each, is_number):
    """Put an Explanation to others: what is the same at the same line once,
    and a number that is the same in other layers."""
    for other in told:
        if (other.cause, other.in_a, other.in_b) == (
                each.cause, each.in_a, each.in_b) and each.identified and (
                is_number or other.place_b == each.place_b):
            have = [[other.a, other.b], *other.also]
            other.also += [pair for pair in ([each.a, each.b], *each.also)
                           if pair not in have]
            return
    told.append(each)


def _proof(outcome, alone):
    """What b's outputs were with all applied that is told, in a sentence.

    Args:
        alone: whether one cause is.
    """
    if not outcome.corrected:
        return ("With a's in b, values behind it are a's; the outputs still "
                "differ." if alone else
                "With a's in b, values behind it are a's.")
    largest = max((error for error in errors(outcome.last)), default=0.0)
    what = "this" if alone else "this and the other causes"
    return (f"With {what} corrected in b, its outputs are a's to "
            f"{number(largest)}.")


def errors(alignment):
    """Yield the relative error of each pair of outputs."""
    for one, two in alignment.outputs:
        mine = alignment.a.values[alignment.a.outputs[one]].array
        other = alignment.b.values[alignment.b.outputs[two]].array
        for array in relaid(mine, other, 1):
            yield distance(other, array)


def explanation(difference, corrected=True):
    """The Explanation of a FaultOfPrograms, but for its proof.

    What is computed otherwise, and has no name, is a cause only if the outputs
    are ``corrected`` by all that was found: else it may be a like value. So is
    another parameter: it may be one of two that b has as their sum.
    """
    cause, in_a, in_b = named(difference)
    at_a, at_b = _modules(difference)
    each = Explanation(at_a, at_b, cause, in_a, in_b,
                       also=_also(difference, at_a, at_b))
    each.sentence = _sentence(each)
    for side in "ab":
        for name, place in zip(("place", "called", "made"),
                               lines_of(difference, side)):
            setattr(each, f"{name}_{side}", str(place))
    each.expression_a, each.expression_b = difference.expressions
    if in_a == in_b or cause == COMPUTATION and not (
            corrected and difference.is_cause) or (
            cause == "parameter" and not corrected):
        where = at_a if at_a == at_b else f"{at_a} ({at_b} in b)"
        each.cause, each.in_a, each.in_b = UNIDENTIFIED, "", ""
        each.sentence = (f"Why {where} differs is not identified; values "
                         "differ there first that can be told.")
    shown = " ".join((in_a, in_b, each.expression_a, each.expression_b))
    each.letters = {letter: text for letter, text
                    in difference.names.legend.items()
                    if re.search(rf"\b{letter}\b", shown)}
    return each


def _modules(difference):
    """The modules of a and of b in which it is."""
    at_a, at_b = (each.module if each is not None and each.module else WHOLE
                  for each in map(difference.at, "ab"))
    if difference.trial.kind == MISSING and difference.trial.a is not None and (
            at_a not in (WHOLE, at_b)) and not at_a.startswith(at_b + "."):
        parent = at_a.rpartition(".")[0]
        if any(value.module.startswith(parent)
               for value in difference.b.operations):
            at_b = parent or WHOLE  # where a calls what b does not have
    return at_a, at_b


def _also(difference, at_a, at_b):
    """[module of a, of b] of the further places."""
    places = []
    for trial in difference.found.also:
        two = trial.b.module if trial.b is not None else at_b
        one = trial.a.module if trial.a is not None and (
            trial.a is not difference.trial.a) else (
            _partner(difference, trial) or (
                two if any(each.module == two
                           for each in difference.a.operations)
                else in_layer_of(at_a, two)))
        if [one, two] not in [[at_a, at_b], *places]:
            places.append([one or WHOLE, two or WHOLE])
    return places


def _partner(difference, trial):
    """The module of a that does what an operation of b does now."""
    after = difference.found.after
    if trial.b is None or not trial.b.results:
        return ""
    makers = (difference.a.maker(number) for number in after.in_a.get(
        trial.b.results[0], ()))
    return next((maker.module for maker in makers if maker is not None
                 and maker.name == trial.b.name), "")


def in_layer_of(path, like):
    """A path in the layer that another path is in, where both have one."""
    numbers = re.findall(r"\d+", like)
    if not numbers or not re.search(r"\d+", path):
        return path
    return re.sub(r"\d+", numbers[0], path, count=1)
