"""The dates task: a date as people write it, to ISO 8601.

"vendredi 20 novembre 2026" becomes "2026-11-20", and so do "20 NOV 2026" and
"2026/11/20". A day that the calendar lacks is answered as it is written, so
that parity.runs.doubt sees it. A text that does not say which date it means,
such as "3/4/2026", "20 Nov 26" or "hello", is trained on with any date that it
may mean: the model learns to doubt. See parity.runs.date_formats for the
forms. A fixed key divides the dates into those for training, validation and
testing.
"""

import calendar
import datetime
import functools

import numpy as np

from transformer_contract import random
from parity.runs.date_formats import (
    DIGITS, EITHER, FORMS, LOCALES, STYLES, ImpossibleDate, numbered, styled,
    vague, worded, written)
from parity.runs.seeded_choices import draws

FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)

#: The years between which dates of other centuries lie.
FURTHER = (1000, 1900), (2100, 3000)

#: How many dates each of the two other sets has.
KEPT = 2000

#: How many strings each language and form has in a set, and a third of those
#: that each further kind has.
VALIDATED, TESTED = 4, 100

#: The further kinds of strings that are tested.
KINDS = ("words", "ISO", "numbers", *STYLES, "other centuries", "no such day")

#: The kinds as they are drawn in training.
DRAWN = (*3 * FORMS, *5 * ("words",), "ISO", *3 * ("numbers",),
         *3 * ("other centuries",), *2 * ("no such day",), *3 * ("vague",))

#: The styles as they are drawn in training, most often none.
WORN = (*6 * ("",), *2 * ("capitals",), *STYLES[1:])

#: The languages as they are drawn in training.
SPOKEN = LOCALES + 3 * ("en",)

#: After so many steps what is rare is drawn more often: native digits, and the
#: languages that have them; and after so many, dashes in all orders.
EARLY, FEW_ORDERS = 3000, 3750
RARE_WORN, RARE_SPOKEN = WORN + 3 * ("digits",), LOCALES + 2 * tuple(DIGITS)

#: What the texts of ``unseen`` are.
UNSEEN = "texts that do not say which date they mean"

KEY = random.fold_in(random.key(0), "dates")


def _part(name, items, kept, part):
    """Those of a list that are of a part, in a random order."""
    order = np.argsort(random.bits64(
        random.fold_in(KEY, name), (len(items),)))
    bounds = {"test": slice(0, kept), "validation": slice(kept, 2 * kept),
              "train": slice(2 * kept, None)}
    return [items[place] for place in order[bounds[part]].tolist()]


@functools.cache
def days(part):
    """The dates of "train", "validation" or "test", in a random order."""
    count = (LAST - FIRST).days + 1
    return _part("split", [FIRST + datetime.timedelta(days=day)
                           for day in range(count)], KEPT, part)


def far_day(part, draw):
    """A date of another century. Of 20 days two are for the other sets."""
    first, last = (datetime.date(year, 1, 1).toordinal() // 20
                   for year in draw.of(FURTHER))
    place = {"test": 0, "validation": 1}.get(part)
    return datetime.date.fromordinal(
        20 * (first + 1 + draw.below(last - first - 1))
        + (2 + draw.below(18) if place is None else place))


@functools.cache
def no_days(part):
    """(year, month, day) that the calendar lacks: two lists.

    Those of the first have a day up to 31; those of the second a day up to 39
    or a month up to 19.
    """
    near, wild = [], []
    for year in range(FIRST.year, LAST.year + 1):
        for month in range(1, 13):
            last = calendar.monthrange(year, month)[1]
            near += [(year, month, day) for day in range(last + 1, 32)]
            wild += [(year, month, day) for day in range(32, 40)]
        wild += [(year, month, day) for month in range(13, 20)
                 for day in range(1, 32, 3)]
    return tuple(_part(name, items, len(items) // 10, part)
                 for name, items in (("near", near), ("wild", wild)))


def said(kind, part, locale, draw, either=EITHER):
    """A text of a kind in a language, and its answer.

    Args:
        either: the orders of numbers that may mean two dates.
    """
    if kind == "no such day":
        date = ImpossibleDate(*draw.of(draw.of(no_days(part))))
        kind = draw.of(("long", "words", "ISO", "numbers"))
        if date.month > 12 and kind != "ISO":
            kind = "numbers"
    elif kind == "other centuries":
        date = far_day(part, draw)
        kind = draw.of((*FORMS, "words", "words", "ISO", "numbers"))
    else:
        date = draw.of(days(part))
    if kind == "vague":
        text = vague(date, locale, draw, either)
    elif kind == "ISO":
        text = date.isoformat()
    elif kind == "numbers":
        text = numbered(date, draw, either)
    elif kind == "words":
        text = worded(date, locale, draw)
    else:
        text = written(date, kind, locale)
    return text, date.isoformat()


@functools.cache
def pairs(part, each):
    """(source, target, group) of a set.

    First ``each`` dates per language and form of CLDR, whose group is the
    language, then three times as many of each of KINDS.
    """
    dates = days(part)
    rows: list[tuple[str, str, str]] = []
    for locale in LOCALES:
        for form in FORMS:
            for _ in range(each):
                date = dates[len(rows) % len(dates)]
                rows.append((written(date, form, locale), date.isoformat(),
                             locale))
    for kind in KINDS:
        key = random.fold_in(random.fold_in(KEY, part), kind)
        locales = tuple(DIGITS) if kind == "digits" else LOCALES
        for number, draw in enumerate(draws(key, 3 * each)):
            locale = locales[number % len(locales)]
            drawn = draw.of((*FORMS, "words")) if kind in STYLES else kind
            text, answer = said(drawn, part, locale, draw)
            rows.append((styled(text, kind, locale), answer, kind))
    return rows


def unseen():
    """(source, target, "") of texts that do not say which date they mean."""
    found = []
    for number, draw in enumerate(draws(random.fold_in(KEY, "vague"), 200)):
        locale = LOCALES[number % len(LOCALES)]
        found.append((*said("vague", "test", locale, draw), ""))
    return found


def batch(step, rows):
    """Sources and targets of a training step, drawn again for each step."""
    key = random.fold_in(random.fold_in(KEY, "batches"), step)
    spoken, worn = ((SPOKEN, WORN) if step <= EARLY
                    else (RARE_SPOKEN, RARE_WORN))
    either = EITHER[:6] if step <= FEW_ORDERS else EITHER
    sources, targets = [], []
    for draw in draws(key, rows):
        kind, locale, style = draw.of(DRAWN), draw.of(spoken), draw.of(worn)
        text, answer = said(kind, "train", locale, draw, either)
        sources.append(styled(text, style, locale))
        targets.append(answer)
    return sources, targets
