"""Ask the debugger of a pair, and judge what it tells."""

import ast
import collections
import dataclasses
import os
import re
import time

from benchmarks.families.checking import quiet
from parity.causes.cause import PRECISION
from parity.numerics.comparator import DIVERGENCE
from parity.tracing.trace import WHOLE

#: What became of a fault, best first; and of a sound pair.
RIGHT, PLACE, UNKNOWN, WRONG, CRASH = (
    "right", "place only", "not identified", "wrong", "crash")
SILENT, ALARM = "silent", "alarm"

#: How far a told line may be from the line of the fault.
NEAR = 2


def ask(pair, operations=True):
    """The Comparison of a pair, and what is told of it: Explanations.

    The one place that knows how the debugger is asked: ``parity.diff``, or
    without operations ``parity.compare`` and ``parity.explain``.
    """
    from parity.causes.diff import diff
    from parity.causes.explain import explain
    from parity.comparison.compare import compare
    from parity.tracing.trace import trace
    if operations:
        comparison = diff(pair.a, pair.b)
        return comparison, comparison.explanations
    traces = []
    for make in (pair.a, pair.b):
        model, inputs, keywords = make()
        traces.append(trace(model, *inputs, **keywords))
    comparison = compare(*traces)
    return comparison, explain(comparison, *traces)


@dataclasses.dataclass(frozen=True)
class BenchOutcome:
    """What became of a BenchPair.

    Attributes:
        pair: the BenchPair.
        verdict: one of the above.
        told: what was told, a text each.
        line, place: whether the line was told, or one that uses what it
            sets; or a line or module of the same class.
        seconds: how long it took.
    """

    pair: object
    verdict: str
    told: list
    line: bool = False
    place: bool = False
    seconds: float = 0.0


def outcome_of(pair, operations=True):
    """Ask of a BenchPair, and judge; operations is as of ask."""
    start = time.perf_counter()
    try:
        with quiet():
            comparison, told = ask(pair, operations)
            classes = classes_of(pair)
    except Exception as error:  # the bench counts it
        return BenchOutcome(pair, CRASH, [repr(error)[:200]])
    verdict, line, place = (judged_sound if pair.sound else judged)(
        pair, comparison, told, classes)
    words = [spoken(each) for each in told] or [comparison.verdict]
    return BenchOutcome(pair, verdict, words, line, place,
                        time.perf_counter() - start)


def spoken(each):
    """All the text of an Explanation."""
    return " ".join(filter(None, (
        each.text(), each.place_b, each.expression_a, each.expression_b,
        each.proof, each.write)))


def has(words, each):
    """Whether an Explanation has what is asked for, as fault.py says."""
    words, _, code = words.partition("§")
    expressions = [text.replace("·", "*").replace("^", "**") for text in (
        each.expression_a, each.expression_b)]
    text = spoken(each)
    if not words.startswith("@"):
        text = re.sub(r"\b[A-Za-z_]\w*(\.\w+)+", "", " ".join(filter(None, (
            each.text(), each.proof, each.write))))
    text = " ".join((text, *expressions))
    if re.search(words.removeprefix("@"), text, re.I):
        return True
    counts = [len(re.findall(code, each)) for each in expressions]
    return bool(code) and counts[0] != counts[1]


def judged_sound(pair, comparison, told, classes):
    """A sound pair: neither a divergence nor a cause may be told."""
    alarm = comparison.verdict == DIVERGENCE or any(
        each.identified and each.cause != PRECISION for each in told)
    return ALARM if alarm else SILENT, False, False


def judged(pair, comparison, told, classes):
    """(verdict, whether the line, whether the place was told) of a fault.

    A cause is right that has all that ``says`` asks for. A cause that has not
    is wrong, unless it shows expressions at the line of the fault; that of
    rounding inside is left aside. So is the place: the line; a line of the
    class that it stands in, or one that uses what it sets; or, where no line
    is told, a module of that class or a child of one.
    """
    told = [each for each in told if each.cause != PRECISION]
    if not told and comparison.verdict != DIVERGENCE:
        return WRONG, False, False  # the fault was missed
    lines = [any(on_line(pair, place) for place in (
        each.place_b, each.called_b, each.made_b)) for each in told]
    places = [line or in_place(pair, each, classes)
              for line, each in zip(lines, told)]
    line, place = any(lines[:1]), any(places[:1])
    if not told and comparison.first:
        place = module_fits(pair, comparison.first.b, classes)
    true = [each.identified and all(has(words, each) for words in pair.says)
            for each in told]
    shown = [bool(each.expression_b) and here
             for each, here in zip(told, lines)]
    if any(each.identified and not (good or seen)
           for each, good, seen in zip(told, true, shown)):
        return WRONG, line, place
    if any(good and here for good, here in zip(true, places)):
        return RIGHT, line, place
    return PLACE if place else UNKNOWN, line, place


def on_line(pair, place):
    """Whether a place, "file.py:44", is the fault's line or near it, or uses
    what that line sets."""
    file, _, line = place.rpartition(":")
    if not line.isdigit() or not pair.where or (
            os.path.basename(file) != pair.where[0][0]):
        return False
    return int(line) in using(pair) or any(
        abs(int(line) - right) <= NEAR or right in statement(pair, int(line))
        for _, right in pair.where)


def statement(pair, line):
    """The lines of the statement that a line is of; of one with a body, its
    head."""
    spans = [range(node.lineno, (node.body[0].lineno if getattr(
        node, "body", None) else node.end_lineno + 1))
        for node in ast.walk(ast.parse(pair.source))
        if isinstance(node, ast.stmt)]
    return next((span for span in spans if line in span), ())


def using(pair):
    """Lines that use what the fault's lines set: ``self.NAME``, a constant."""
    text = pair.source.splitlines()
    names = {found[1] for _, right in pair.where if (found := re.match(
        r"\s*(self\.\w+|[A-Z_]+)\s*=", text[right - 1]))}
    return {i + 1 for i, each in enumerate(text) for name in names
            if re.search(re.escape(name) + r"\b", each)}


def in_place(pair, each, classes):
    """Whether what is told is in the class of the fault, or uses it.

    A line near which ``self.NAME`` stands may be of the module NAME.
    """
    paths, text, known = [each.b], pair.source.splitlines(), False
    for told in (each.place_b, each.called_b, each.made_b):
        file, _, line = told.rpartition(":")
        if not line.isdigit() or pair.where and (
                os.path.basename(file) != pair.where[0][0]):
            continue
        known = known or told == each.place_b
        if int(line) in related(pair) or calls(pair, text[int(line) - 1]):
            return True
        if told == each.place_b:
            near = text[max(0, int(line) - 1 - NEAR):int(line) + NEAR]
            paths += re.findall(r"self\.(\w+)", "\n".join(near))
    if not known and module_fits(pair, each.b, classes):
        return True
    return bool(pair.at) and any(re.search(pair.at, path) for path in paths)


def calls(pair, line):
    """Whether a line calls, by its name, the function of the fault."""
    return any(isinstance(node, ast.FunctionDef) and any(
        node.lineno <= right <= node.end_lineno for _, right in pair.where)
        and re.search(rf"\b{node.name}\(", line)
        for node in ast.parse(pair.source).body)


def related(pair):
    """Lines of the classes or functions that the fault's lines stand in, and
    lines that use what these set."""
    lines = using(pair)
    for _, right in pair.where:
        for node in ast.parse(pair.source).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and (
                    node.lineno <= right <= node.end_lineno):
                lines |= {*range(node.lineno, node.end_lineno + 1)}
    return lines


def module_fits(pair, path, classes):
    """Whether a path of b's is a module that holds the fault, or its child."""
    path = "" if path == WHOLE else path
    parent = re.sub(r"(^|\.)[^.]+(\.\d+)*$", "", path)
    return path in classes or parent in classes or bool(
        pair.at and re.search(pair.at, path))


def classes_of(pair):
    """Paths of b's modules whose class holds the fault, or calls the function
    that does."""
    if pair.sound or not pair.where:
        return set()
    tree, names = ast.parse(pair.source), set()
    for _, right in pair.where:
        names |= {node.name for node in tree.body if isinstance(
            node, (ast.ClassDef, ast.FunctionDef))
            and node.lineno <= right <= node.end_lineno}
    for _ in range(3):  # a function that calls a function of it
        names |= {node.name for node in tree.body if isinstance(
            node, (ast.ClassDef, ast.FunctionDef)) and any(
            isinstance(each, ast.Name) and each.id in names
            and isinstance(each.ctx, ast.Load) and not _is_class(tree, each.id)
            for each in ast.walk(node))}
    return {path for path, module in modules(pair.b()[0])
            if {kind.__name__ for kind in type(module).__mro__} & names}


def _is_class(tree, name):
    return any(isinstance(node, ast.ClassDef) and node.name == name
               for node in tree.body)


def modules(model):
    """(path, module) of a model of torch, nnx or Keras."""
    if hasattr(model, "named_modules"):
        return [*model.named_modules()]
    if hasattr(model, "_flatten_layers"):
        from parity.tracing import keras
        return [("" if path == WHOLE else path, layer)
                for path, layer in keras.modules(model)]
    from flax import nnx
    return [(".".join(map(str, path)), node)
            for path, node in nnx.iter_graph(model)
            if isinstance(node, nnx.Module)]


def table(outcomes):
    """Lines of Markdown: what became of each family's, within and across."""
    yield ("| family | faults | cause and place right | line right | place "
           "right | not identified | wrong | crash | sound | alarms |")
    yield "|---|" + "---:|" * 9
    groups = {}
    for each in outcomes:
        way = "across" if each.pair.across else "within"
        for name in (f"{each.pair.family}, {way}", f"all, {way}", "all"):
            groups.setdefault(name, []).append(each)
    for name in sorted(groups, key=lambda name: (name[:3] == "all", name)):
        here = groups[name]
        faults = [each for each in here if not each.pair.sound]
        sound = [each for each in here if each.pair.sound]
        counts = collections.Counter(each.verdict for each in faults)
        yield (f"| {name} | {len(faults)} | {counts[RIGHT]} | "
               f"{sum(each.line for each in faults)} | "
               f"{sum(each.place for each in faults)} | "
               f"{counts[UNKNOWN] + counts[PLACE]} | {counts[WRONG]} | "
               f"{counts[CRASH]} | {len(sound)} | "
               f"{sum(each.verdict != SILENT for each in sound)} |")
