"""A map of names as a TOML file, for reading and correcting."""

import json
import pathlib
import tomllib

from parity_io.errors import InputError
from parity_io.files import check_ordinary, write_whole
from parity.matching.pairs import USER, NameMap, Pair
from parity.matching.parameters import all_parameters
from parity.matching.rearrangement import SAME, parsed
from parity.matching.steps import step_pair


def write(names, path):
    """Write a NameMap as TOML, for reading and correcting."""
    text = json.dumps
    lines = ["# What corresponds in a and b. A layout says what is done to an",
             "# array before it is compared: same, transpose 1 0, reshape 48 6",
             "# 8, part 1 of 3 along 0, or several of these with commas.", ""]
    for side, only in (("a", names.only_a), ("b", names.only_b)):
        for what in ("steps", "parameters"):
            for path_ in only.get(what, ()):
                lines.append(f"# without a partner, {what} of {side}: "
                             f"{text(path_, ensure_ascii=False)}")
    lines += [f"# {note}" for note in names.notes]

    def layouts(pair):
        return "".join(
            f", {side}_layout = {text(getattr(pair, f'{side}_layout'))}"
            for side in "ab" if getattr(pair, f"{side}_layout") != SAME)
    for pair in names.steps:
        lines += ["", "[[step]]", f"a = {text(pair.a)}", f"b = {text(pair.b)}",
                  f"by = {text(pair.by)}"]
        for what in ("inputs", "outputs"):
            lines.append(f"{what} = [")
            lines += [f"  {{a = {text(v.a)}, b = {text(v.b)}{layouts(v)}"
                      f", by = {text(v.by)}}},"
                      for v in getattr(pair, what)]
            lines.append("]")
    for pair in names.parameters:
        lines += ["", "[[parameter]]", f"a = {text(pair.a)}",
                  f"b = {text(pair.b)}"]
        lines += [f"{side}_layout = {text(getattr(pair, f'{side}_layout'))}"
                  for side in "ab" if getattr(pair, f"{side}_layout") != SAME]
        lines.append(f"by = {text(pair.by)}")
    write_whole(path, "\n".join(lines) + "\n")


def read(path, a, b):
    """Read a NameMap and check it against its two traces.

    If a step has no ``inputs`` or ``outputs``, they are paired as in suggest.

    Raises:
        InputError: it is missing or no TOML, or a name is in neither trace,
            or in the other one.
    """
    check_ordinary(path)
    try:
        data = tomllib.loads(pathlib.Path(path).read_text("utf-8-sig"))
    except FileNotFoundError:
        raise InputError(
            f"there is no map {str(path)!r}; check the path.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"the map {str(path)!r} cannot be read ({error}); correct it or "
            "write it again with --write-map.") from None
    surplus = data.keys() - {"step", "parameter"}
    if surplus:
        raise InputError(
            f"the map {str(path)!r} has an entry {min(surplus)!r}; it may "
            "hold only [[step]] and [[parameter]].")

    for what in ("step", "parameter"):
        if not isinstance(data.get(what, []), list) or not all(
                isinstance(each, dict) for each in data.get(what, [])):
            raise InputError(
                f"the map {str(path)!r} has a {what} that is no table; write "
                f"[[{what}]].")

    def pair_of(entry, mine, others, what):
        known = {"a", "b", "a_layout", "b_layout", "by"}
        if (not isinstance(entry, dict) or {"a", "b"} - entry.keys()
                or entry.keys() - known
                or not all(isinstance(v, str) for v in entry.values())):
            raise InputError(
                f"the map {str(path)!r} has {what} that is not a = NAME and b "
                "= NAME, with a_layout and b_layout where needed; correct "
                "it.")
        pair = Pair(**{"by": USER, **entry})
        _known(path, pair.a, pair.b, mine, others, what)
        parsed(pair.a_layout), parsed(pair.b_layout)
        return pair

    steps = []
    for entry in data.get("step", ()):
        try:
            first, second = entry["a"], entry["b"]
        except (KeyError, TypeError):
            raise InputError(
                f"the map {str(path)!r} has a step without a or b; name "
                "both.") from None
        by = entry.get("by", USER)
        if not all(isinstance(word, str) for word in (first, second, by)):
            raise InputError(
                f"the map {str(path)!r} has a step whose a, b or by is no "
                "text; correct it.")
        _known(path, first, second, {s.path for s in a.steps},
               {s.path for s in b.steps}, "a step")
        pair = step_pair(a, b, first, second, by)
        for what in ("inputs", "outputs"):
            if what in entry:
                if not isinstance(entry[what], list):
                    raise InputError(
                        f"the map {str(path)!r} has {what} of {first!r} that "
                        "are no list; correct it.")
                setattr(pair, what, [pair_of(
                    each, getattr(a.step(first), what),
                    getattr(b.step(second), what),
                    f"{what} of {first!r}") for each in entry[what]])
        steps.append(pair)
    parameters = [pair_of(entry, all_parameters(a), all_parameters(b),
                          "a parameter")
                  for entry in data.get("parameter", ())]
    return NameMap(steps, parameters).partners(a, b)


def _known(path, first, second, mine, others, what):
    if first in mine and second in others:
        return
    if first in others and second in mine:
        raise InputError(
            f"the map {str(path)!r} pairs {first!r} of b with {second!r} of "
            "a; swap the two.")
    missing, side = (first, "a") if first not in mine else (second, "b")
    raise InputError(
        f"the map {str(path)!r} names {what} {missing!r} that {side} does not "
        "have; correct it, or write the map again with --write-map.")
