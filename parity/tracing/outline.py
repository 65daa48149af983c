"""A Trace in a few lines: what it is of, and a tree of its steps."""

import html

from parity_io.errors import plural, visible

#: So many lines a tree has at most.
LINES = 10


def shapes(arrays):
    """The shape of the first array, and how many more there are."""
    if not arrays:
        return "none"
    first = next(iter(arrays.values()))
    more = f" +{len(arrays) - 1}" if len(arrays) > 1 else ""
    return ("×".join(map(str, first.shape)) or "scalar") + more


def one_step(step):
    """A step in a line: ``ln1 LayerNorm: 2×8×32 → 2×8×32``."""
    return visible(f"{step.path} {step.kind}: {shapes(step.inputs)} → "
                   f"{shapes(step.outputs)}")


def outline(trace):
    """A trace in about ten lines.

    The steps that stand in no other come first. What is inside them is shown
    as far as there is room.
    """
    if not trace.steps:
        return f"Trace of {visible(trace.framework)}: no steps"
    *steps, whole = trace.steps
    head = (f"Trace of {trace.framework} {whole.kind}: "
            f"{plural(len(trace.steps), 'step')}, "
            f"{plural(len(trace.parameters), 'parameter')}, "
            + f"{trace.dtype}, " * bool(trace.dtype)
            + f"{shapes(whole.inputs)} → {shapes(whole.outputs)}")
    inside = _inside(steps)
    shown = [(step, 0) for step in inside[None]]
    while len(shown) < LINES:
        wider = [each for step, depth in shown for each in (
            (step, depth), *(((inner, depth + 1) for inner in inside.get(
                step.path, ())) if not _opened(shown, inside, step) else ()))]
        if len(wider) == len(shown) or len(wider) > LINES:
            break
        shown = wider
    opened = {step.path for step, _ in shown
              if _opened(shown, inside, step)}
    rows = [("  " * depth + visible(step.path), visible(step.kind),
             f"{shapes(step.inputs)} → {shapes(step.outputs)}"
             + (f"   {plural(_count(inside, step.path), 'step')} inside"
                if step.path in inside and step.path not in opened else ""))
            for step, depth in shown]
    wide = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  " + "  ".join(word.ljust(room) for word, room in zip(
        row, wide)).rstrip() for row in rows]
    if len(lines) > LINES:
        left = len(lines) - LINES + 1
        lines[LINES // 2:LINES // 2 + left] = [f"  … {left} more"]
    return "\n".join([visible(head), *lines])


def as_html(trace):
    """A trace as a notebook shows it: a tree whose modules can be opened."""
    first = html.escape(outline(trace).partition("\n")[0])
    inside = _inside(trace.steps[:-1])

    def listed(steps):
        return "".join(
            f"<details><summary>{html.escape(one_step(step))}</summary>"
            f"{listed(inside[step.path])}</details>" if step.path in inside
            else f"<div>{html.escape(one_step(step))}</div>"
            for step in steps)
    return (f"<p>{first}</p><div style='font-family: monospace; margin-left: "
            f"1em'>{listed(inside[None])}</div>")


def _inside(steps):
    """{path of a step, or None: the steps that stand in it alone}."""
    found: dict = {None: []}
    held: list = []
    for step in sorted(steps, key=lambda step: (step.began, -step.ended)):
        while held and held[-1].ended < step.ended:
            held.pop()
        found.setdefault(held[-1].path if held else None, []).append(step)
        held.append(step)
    return found


def _opened(shown, inside, step):
    """Whether what is inside a step is shown already."""
    inner = inside.get(step.path)
    return bool(inner) and any(each is inner[0] for each, _ in shown)


def _count(inside, path):
    """How many steps stand in a step, at any depth."""
    return sum(1 + _count(inside, step.path) for step in inside.get(path, ()))
