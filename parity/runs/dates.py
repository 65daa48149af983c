"""The dates task: a date as people write it, to ISO 8601.

"vendredi 20 novembre 2026" becomes "2026-11-20". The forms come from the
Unicode CLDR through Babel: full, long and medium, in many languages; the short
ones are left out, since 3/4/26 can be two dates. A fixed key divides the dates
into those for training, validation and testing.
"""

import datetime
import functools

import numpy as np

from contract import random

#: The languages, by CLDR's codes.
LOCALES = (
    "ar", "cs", "da", "de", "el", "en", "es", "fi", "fr", "he", "hi", "hu",
    "it", "ja", "ko", "nl", "pl", "pt", "ru", "sv", "th", "tr", "uk", "vi",
    "zh",
)

FORMS = ("full", "long", "medium")

FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)

#: How many dates each of the two other sets has.
KEPT = 2000

#: How many strings each language and form has in a set.
VALIDATED, TESTED = 4, 100

KEY = random.fold_in(random.key(0), "dates")


@functools.cache
def days(part):
    """The dates of "train", "validation" or "test", in a random order."""
    count = (LAST - FIRST).days + 1
    order = np.argsort(random.bits64(random.fold_in(KEY, "split"), (count,)))
    bounds = {"test": slice(0, KEPT), "validation": slice(KEPT, 2 * KEPT),
              "train": slice(2 * KEPT, None)}
    return [FIRST + datetime.timedelta(days=int(day))
            for day in order[bounds[part]]]


def written(date, locale, form):
    """A date in a language and a form of CLDR."""
    from babel.dates import format_date
    return format_date(date, form, locale=locale)


def pairs(part, each):
    """(source, target, locale): ``each`` dates per language and form."""
    dates, rows = days(part), []
    for locale in LOCALES:
        for form in FORMS:
            for _ in range(each):
                date = dates[len(rows) % len(dates)]
                rows.append((written(date, locale, form), date.isoformat(),
                              locale))
    return rows


def batch(step, rows):
    """Sources and targets of a training step, drawn again for each step."""
    numbers = random.bits64(
        random.fold_in(random.fold_in(KEY, "batches"), step), (rows, 3))
    dates, sources, targets = days("train"), [], []
    for day, locale, form in numbers.tolist():
        date = dates[day % len(dates)]
        sources.append(written(date, LOCALES[locale % len(LOCALES)],
                               FORMS[form % len(FORMS)]))
        targets.append(date.isoformat())
    return sources, targets
