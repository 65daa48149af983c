"""A mapping of weights as a TOML file, to be read and corrected."""

import json
import math
import tomllib

from parity_io.errors import InputError, visible
from parity_io.files import read_text, write_whole
from parity_io.memory import check_memory
from parity.conversion.entry import (
    GUESS, USER, Rule, Mapping, Slice, parsed_join)
from parity.matching.rearrangement import SAME, parsed

HEAD = """\
# Of what each parameter of B is made. A layout says what is done to an array:
# same, transpose 1 0, reshape 48 6 8, part 1 of 3 along 0, slice 2 18 along 0,
# or several of these with commas, as NumPy does them. `take` is done to each
# parameter of A; several are joined by `join`: concatenate 0, stack 0, sum or
# weight_norm (g and v);
# `then` is done to the whole. `by` says why: run (each step agrees) or user;
# a guess is none, and is not applied.
"""

DRAFT = """\
# THIS IS A DRAFT. It is not applied before what is named here is corrected;
# write by = "user" where you have corrected a guess.
"""


def write(mapping, path, remarks=()):
    """Write a Mapping as TOML, whole or not at all.

    Args:
        remarks: what makes it a draft, a sentence each.
    """
    write_whole(path, text_of(mapping, remarks))


def text_of(mapping, remarks=()):
    """The TOML of a Mapping."""
    text = lambda value: json.dumps(value, ensure_ascii=False)  # noqa: E731
    lines = [DRAFT + "".join(
        f"# - {visible(each)}\n" for each in remarks)] if remarks else []
    lines.append(HEAD)
    for side in "ab":
        lines.append(f"[{side}]  # shapes")
        lines += [f"{text(name)} = {list(shape)}"
                  for name, shape in getattr(mapping, side).items()]
        lines.append("")
    for side in "ab":
        lines.append(f"[tied.{side}]  # second name of a parameter = its first")
        lines += [f"{text(second)} = {text(first)}" for second, first
                  in getattr(mapping, f"tied_{side}").items()
                  if first in getattr(mapping, side)]
        lines.append("")
    lines += ["[left_out]  # without a partner, and kept as they are",
              f"a = {text(mapping.left_a)}", f"b = {text(mapping.left_b)}"]
    for entry in mapping.entries:
        lines += ["", "[[parameter]]", f"b = {text(entry.b)}"]
        if len(entry.pieces) == 1:
            lines += [f"a = {text(entry.names[0])}"]
            if entry.pieces[0].layout != SAME:
                lines.append(f"take = {text(entry.pieces[0].layout)}")
        else:
            lines += ["a = [", *(f"  {text(name)}," for name in entry.names),
                      "]"]
            takes = [piece.layout for piece in entry.pieces]
            if set(takes) != {SAME}:
                lines += ["take = [", *(f"  {text(take)}," for take in takes),
                          "]"]
            lines.append(f"join = {text(entry.join)}")
        if entry.then != SAME:
            lines.append(f"then = {text(entry.then)}")
        lines.append(f"by = {text(entry.by)}")
    return "\n".join(lines) + "\n"


def read(path):
    """Read a Mapping, and check that it fits itself.

    Raises:
        InputError: it is missing or no TOML, names what is not there or
            something twice, holds a guess, or a layout does not fit.
    """
    try:
        data = tomllib.loads(read_text(path))
    except FileNotFoundError:
        raise InputError(
            f"there is no mapping {str(path)!r}; check the path.") from None
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the mapping {str(path)!r} is no TOML ({error}); correct it."
        ) from None

    def wrong(what):
        return InputError(f"the mapping {str(path)!r} {what}")
    known = {"a", "b", "tied", "left_out", "parameter"}
    if surplus := sorted(data.keys() - known):
        raise wrong(f"has an entry {surplus[0]!r}; it may hold only "
                    f"{', '.join(sorted(known))}.")
    shapes = {side: _shapes(data.get(side), side, wrong) for side in "ab"}
    check_memory(9 * sum(math.prod(shape) for each in shapes.values()
                         for shape in each.values()), path)
    tied = _tied(data.get("tied", {}), shapes, wrong)
    left = _left(data.get("left_out", {}), shapes, wrong)
    given = data.get("parameter", [])
    if not isinstance(given, list) or not given:
        raise wrong("has no [[parameter]]; write one for each of B.")
    entries, made = [], set()
    for each in given:
        entry = _entry(each, shapes, tied, wrong)
        if entry.b in made:
            raise wrong(f"makes {entry.b!r} twice; leave one of them out.")
        made.add(entry.b)
        entries.append(entry)
    for name in left["b"]:
        if name in made:
            raise wrong(f"makes {name!r} and leaves it out; choose one.")
    if absent := [name for name in shapes["b"]
                  if name not in made and name not in left["b"]]:
        raise wrong(f"does not say of what {absent[0]!r} of B is made; write "
                    "it, or name it in left_out.")
    mapping = Mapping(entries, **shapes, tied_a=tied["a"], tied_b=tied["b"],
                      left_a=left["a"], left_b=left["b"])
    if guesses := [entry.b for entry in entries if entry.by == GUESS]:
        raise wrong(f"is a draft: of what {guesses[0]!r} of B is made is a "
                    'guess; correct it, and write by = "user".')
    over = mapping.uncovered()
    if unused := [name for name in over if name not in left["a"]]:
        raise wrong(f"does not use {unused[0]!r} of A: {over[unused[0]]}; "
                    "use it, or name it in left_out.")
    return mapping


def _shapes(table, side, wrong):
    """Name -> shape."""
    if not isinstance(table, dict) or not table:
        raise wrong(f"has no table [{side}] with the shapes of "
                    f"{side.upper()}; write the mapping anew.")
    for name, shape in table.items():
        if not isinstance(shape, list) or not all(
                type(length) is int and 0 <= length < 1 << 40
                for length in shape):
            raise wrong(f"gives {name!r} the shape {shape!r}; write a list "
                        "of whole numbers.")
    return {name: tuple(shape) for name, shape in table.items()}


def _tied(table, shapes, wrong):
    """{"a": {second name: first}, "b": likewise}."""
    tied = {side: table.get(side, {}) if isinstance(table, dict) else None
            for side in "ab"}
    for side, names in tied.items():
        if not isinstance(names, dict) or table.keys() - {"a", "b"} or not all(
                isinstance(first, str) and first in shapes[side]
                and second not in shapes[side]
                for second, first in names.items()):
            raise wrong("has a table [tied] that is not SECOND NAME = FIRST "
                        "NAME of parameters, for a and b; correct it.")
    return tied


def _left(table, shapes, wrong):
    """{"a": names, "b": names}."""
    if not isinstance(table, dict) or table.keys() - {"a", "b"}:
        raise wrong("has a table [left_out] that is not a = [NAMES] and b = "
                    "[NAMES]; correct it.")
    left = {side: table.get(side, []) for side in "ab"}
    for side, names in left.items():
        if not isinstance(names, list):
            raise wrong(f"leaves out {names!r}, which is no list; correct it.")
        for name in names:
            if not isinstance(name, str) or name not in shapes[side]:
                raise wrong(f"leaves out {name!r}, which {side.upper()} does "
                            "not have; correct the name.")
    return left


def _entry(each, shapes, tied, wrong):
    """A Rule of a table, checked against the shapes."""
    fields = {"b", "a", "take", "join", "then", "by"}
    if not isinstance(each, dict) or {"a", "b"} - each.keys() or (
            each.keys() - fields) or not isinstance(each["b"], str):
        raise wrong("has a [[parameter]] that is not b = NAME, a = NAME or "
                    "NAMES, with take, join, then and by where needed; "
                    "correct it.")
    name = each["b"]
    names = [each["a"]] if isinstance(each["a"], str) else each["a"]
    takes = each.get("take", SAME)
    takes = [takes] * len(names) if isinstance(takes, str) else takes
    texts = [each.get("join", ""), each.get("then", SAME),
             each.get("by", USER)]
    if not all(isinstance(part, list) and part and all(
            isinstance(text, str) for text in part)
            for part in (names, takes, texts)) or len(takes) != len(names):
        raise wrong(f"has a [[parameter]] {name!r} whose a, take, join, then "
                    "or by is no text, or whose lists differ in length; "
                    "correct it.")
    if name not in shapes["b"]:
        raise wrong(f"makes {name!r}, which B does not have; correct the "
                    "name.")
    names = [tied["a"].get(each, each) for each in names]
    for first in names:
        if first not in shapes["a"]:
            raise wrong(f"makes {name!r} of {first!r}, which A does not have; "
                        "correct the name.")
    for layout in (*takes, texts[1]):
        parsed(layout)
    if texts[0]:
        parsed_join(texts[0])
    entry = Rule(name, tuple(map(Slice, names, takes)), *texts)
    made = entry.shape(shapes["a"])
    if made != shapes["b"][name]:
        raise wrong(f"makes an array of shape {list(made)} for {name!r}, "
                    f"which has {list(shapes['b'][name])}; correct its "
                    "layout.")
    return entry
