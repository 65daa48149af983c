"""The phrases task: dates, amounts and names in five languages, to English.

"il y a 3 jours" becomes "3 days ago", "12,50 francs suisses" "12.50 Swiss
francs". All comes from the Unicode CLDR (Unicode License v3) through Babel:
names of territories, languages, currencies and units, and the patterns that
join them, with their plurals and cases. Every blank is a plain one.

A phrase is drawn as a meaning, of no language, and belongs to training,
validation or testing by a hash of its English: no answer that is tested was
trained on from any language, though its words were.
"""

import datetime
import functools
import hashlib

from transformer_contract import random
from parity.runs.seeded_choices import Draw, draws

#: The languages, by CLDR's codes, and the one that is answered.
LOCALES = ("de", "es", "fr", "pl", "tr")
ANSWER = "en"

#: How many phrases each kind and language has in a set.
VALIDATED, TESTED = 8, 100

#: Of so many answers one is for validation, and one for testing.
SHARE = 20

#: Names are left out that are longer than this in any of the languages.
LONGEST_NAME = 28

#: What the texts of ``unseen`` are, and how many of them are no words.
UNSEEN = "names that no set has, and words that are none"
NO_WORDS = 100

KEY = random.fold_in(random.key(0), "phrases")

FIRST = datetime.date(1950, 1, 1)
DAYS = 36_500

MEASURES = (
    "acceleration-meter-per-square-second", "angle-degree", "area-hectare",
    "area-square-centimeter", "area-square-kilometer", "area-square-meter",
    "area-square-mile", "concentr-percent", "digital-gigabyte",
    "digital-kilobyte", "digital-megabyte", "electric-ampere",
    "electric-ohm", "electric-volt", "energy-joule", "energy-kilocalorie",
    "energy-kilowatt-hour", "force-newton", "frequency-hertz",
    "frequency-megahertz", "length-centimeter", "length-kilometer",
    "length-light-year", "length-meter", "length-millimeter",
    "length-nautical-mile", "length-yard", "mass-carat", "mass-gram",
    "mass-kilogram", "mass-milligram", "mass-ounce", "mass-pound",
    "power-horsepower", "power-kilowatt", "power-watt",
    "pressure-hectopascal", "pressure-pascal", "speed-kilometer-per-hour",
    "speed-knot", "speed-meter-per-second", "speed-mile-per-hour",
    "temperature-celsius", "temperature-fahrenheit", "volume-barrel",
    "volume-cubic-centimeter", "volume-cubic-kilometer", "volume-cubic-meter",
    "volume-gallon", "volume-liter", "volume-milliliter", "volume-tablespoon",
    "volume-teaspoon",
)

#: Durations that are said together, and those that lie ahead or behind.
PARTS = ("week", "hour", "minute", "second")
SPANS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400,
         "week": 604_800, "month": 2_592_000, "year": 31_536_000}


def names_of(draw, choices):
    """One to three different ones."""
    return tuple(dict.fromkeys(
        draw.of(choices) for _ in range(1 + draw.below(3))))


def number_of(draw):
    """From 1 to 99 mostly; or with a decimal, or some thousands."""
    kind = draw.below(6)
    if kind < 4:
        return 1 + draw.below(99)
    return ((1 + draw.below(9999)) / 10 if kind == 4
            else 100 * (10 + draw.below(990)))


def drawn(kind, draw):
    """A meaning of a kind: plain data, of no language."""
    if kind == "date":
        day = _day(draw)
        return draw.of(("full", "long")), day.isoformat()
    if kind == "moment":
        return _day(draw).isoformat(), draw.below(24), draw.below(60)
    if kind == "period":
        first = _day(draw)
        last = first + datetime.timedelta(days=1 + draw.below(60))
        return first.isoformat(), last.isoformat()
    if kind == "duration":
        place = draw.below(len(PARTS) - 1)
        return tuple((unit, 1 + draw.below(59))
                     for unit in PARTS[place:place + 2 + draw.below(2)])
    if kind == "ago":
        unit = draw.of(tuple(SPANS))
        return unit, (1 + draw.below(99)) * (1 if draw.below(2) else -1)
    if kind == "measure":
        return draw.of(MEASURES), number_of(draw)
    if kind == "money":
        way = draw.of(("name", "name", "standard"))
        return way, draw.of(currencies()), number_of(draw)
    if kind == "places":
        return draw.of(("standard", "or")), names_of(draw, territories())
    if draw.below(2):
        return draw.of(languages()), draw.of(territories())
    return draw.of(("standard", "or")), names_of(draw, languages())


KINDS = ("date", "moment", "period", "duration", "ago", "measure", "money",
         "places", "languages")

#: The kinds as they are drawn in training: with many words, twice as often;
#: and texts of words that are none, with any answer, so that none is likely.
DRAWN = (*KINDS, *KINDS[5:], "no words", "no words")

#: What words that are none are made of: syllables of three parts.
BEGINS = (*"bcdfghjklmnprstvwz", "", "", "", "br", "ch", "gr", "pl", "qu",
          "sch", "sh", "st", "th", "tr")
VOWELS = (*"aeiouaeiouaeiouäéiöüy", "ee", "ie", "oo")
ENDS = ("", "", "", "", *"bdfklmnprstxz", "ck", "ld", "lt", "nd", "ng", "rt")

#: CLDR's territories that are none, in codes of two letters.
NO_TERRITORIES = ("QO", "XA", "XB", "ZZ")


def _day(draw):
    return FIRST + datetime.timedelta(days=draw.below(DAYS))


def said(kind, meaning, locale):
    """A meaning in a language."""
    from babel import dates, lists, numbers, units
    if kind == "date":
        form, day = meaning
        text = dates.format_date(
            datetime.date.fromisoformat(day), form, locale)
    elif kind == "moment":
        day, hour, minute = meaning
        text = str(_locale(locale).datetime_formats["full"]).format(
            dates.format_time(datetime.time(hour, minute), "short",
                              locale=locale),
            dates.format_date(datetime.date.fromisoformat(day), "full",
                              locale))
    elif kind == "period":
        first, last = map(datetime.date.fromisoformat, meaning)
        text = dates.format_interval(first, last, "yMMMd", locale=locale)
    elif kind == "duration":
        text = lists.format_list([
            units.format_unit(count, f"duration-{unit}", locale=locale)
            for unit, count in meaning], locale=locale)
    elif kind == "ago":
        unit, count = meaning
        text = dates.format_timedelta(
            datetime.timedelta(seconds=count * SPANS[unit]), unit,
            threshold=1e9, add_direction=True, locale=locale)
    elif kind == "measure":
        unit, count = meaning
        text = units.format_unit(count, unit, locale=locale)
    elif kind == "money":
        way, currency, count = meaning
        text = numbers.format_currency(
            count, currency, locale=locale, format_type=way,
            currency_digits=way != "name" or count != int(count),
            format="#,##0" if way == "name" and count == int(count) else None)
    elif kind == "places":
        style, codes = meaning
        names = _locale(locale).territories
        text = lists.format_list([names[code] for code in codes], style,
                                 locale)
    elif isinstance(meaning[1], str):
        language, territory = meaning
        names = _locale(locale)
        text = f"{names.languages[language]} ({names.territories[territory]})"
    else:
        style, codes = meaning
        names = _locale(locale).languages
        text = lists.format_list([names[code] for code in codes], style,
                                 locale)
    return " ".join(text.replace("\u200f", "").split())


def no_words(draw):
    """One to four words of no language, or numbers beside them.

    Args:
        draw: gives the one number from which they follow.
    """
    draw = Draw(random.bits64(random.key(draw.below(2**63)), (64,)).tolist())
    words = []
    for _ in range(draw.of((1, 1, 1, 2, 2, 3, 4))):
        word = "".join(draw.of(part) for _ in range(1 + draw.below(3))
                       for part in (BEGINS, VOWELS, ENDS))
        words.append(draw.of((word, word, word.title(), word.title(),
                              f"{1 + draw.below(99)} {word}")))
    return " ".join(words)


@functools.cache
def _locale(name):
    from babel import Locale
    return Locale.parse(name)


def _named(table, codes=None):
    """The codes that have a short name in every language, sorted."""
    tables = [getattr(_locale(name), table) for name in (*LOCALES, ANSWER)]
    return tuple(code for code in sorted(tables[-1]) if all(
        0 < len(names.get(code, "")) <= LONGEST_NAME for names in tables)
        and (codes is None or code in codes))


@functools.cache
def territories():
    """Countries and the like: ISO 3166's codes of two letters."""
    return tuple(code for code in _named("territories")
                 if len(code) == 2 and code not in NO_TERRITORIES)


@functools.cache
def languages():
    """ISO 639's codes of two letters, and what CLDR names beside them."""
    return tuple(code for code in _named("languages")
                 if len(code) == 2 or "_" in code)


@functools.cache
def currencies():
    """What is paid with in some territory in 2026."""
    from babel.numbers import get_territory_currencies
    day = datetime.date(2026, 1, 1)
    return _named("currencies", {
        code for territory in _named("territories")
        for code in get_territory_currencies(territory, day)})


def unseen():
    """(source, target, "") of what is in no phrase of any set.

    They are the languages of CLDR whose codes have three letters, which a
    model can only guess, as far as names are alike in two languages; and words
    that are none, with no answer.
    """
    names = {code for code in _named("languages") if len(code) == 3}
    key = random.fold_in(KEY, "no words")
    return [
        *((_locale(locale).languages[code], _locale(ANSWER).languages[code],
           "") for locale in LOCALES for code in sorted(names)[::10]),
        *((no_words(draw), "", "") for draw in draws(key, NO_WORDS))]


def part(answer):
    """"train", "validation" or "test": where an English answer belongs."""
    digest = hashlib.sha256(answer.encode()).digest()
    return {0: "test", 1: "validation"}.get(
        int.from_bytes(digest[:8]) % SHARE, "train")


@functools.cache
def pairs(name, each):
    """(source, target, kind): ``each`` phrases per kind and language.

    Args:
        name: "validation" or "test".
    """
    rows = []
    for kind in KINDS:
        for locale in LOCALES:
            key = random.fold_in(random.fold_in(
                random.fold_in(KEY, name), kind), locale)
            found = {}
            for draw in draws(key, max(200, 3 * SHARE * each)):
                meaning = drawn(kind, draw)
                answer = said(kind, meaning, ANSWER)
                if part(answer) == name:
                    found[said(kind, meaning, locale)] = answer
            rows += [(*pair, kind) for pair in list(found.items())[:each]]
    return rows


def batch(step, rows):
    """Sources and targets of a training step, drawn again for each step."""
    sources: list[str] = []
    targets: list[str] = []
    key = random.fold_in(random.fold_in(KEY, "batches"), step)
    for draw in draws(key, 2 * rows):
        kind, locale = draw.of(DRAWN), draw.of(LOCALES)
        text = no_words(draw) if kind == "no words" else None
        kind = draw.of(KINDS) if text else kind
        meaning = drawn(kind, draw)
        answer = said(kind, meaning, ANSWER)
        if len(sources) < rows and part(answer) == "train":
            sources.append(text or said(kind, meaning, locale))
            targets.append(answer)
    return sources, targets
