"""Dates as people write them, in 25 languages.

The words and their order come from the Unicode CLDR through Babel; beside its
own forms there are other orders, ordinals, capitals, small letters, texts
without accents and commas, and native digits.
"""

import datetime
import functools
import unicodedata

#: The languages, by CLDR's codes.
LOCALES = (
    "ar", "cs", "da", "de", "el", "en", "es", "fi", "fr", "he", "hi", "hu",
    "it", "ja", "ko", "nl", "pl", "pt", "ru", "sv", "th", "tr", "uk", "vi",
    "zh",
)

#: CLDR's own forms; its short ones are left out: 3/4/26 can be two dates.
FORMS = ("full", "long", "medium")

#: Other orders and abbreviations, where months are words. L is the month's
#: name as it stands alone, which people put where the genitive belongs.
ORDERS = (
    "d MMM y", "d MMMM y", "d MMM, y", "d. MMM y", "d. MMMM y", "d-MMM-y",
    "d LLL y", "d LLLL y", "MMM d y", "MMM d, y", "MMMM d, y", "MMMM d y",
    "y MMM d", "E d MMM y", "E, d MMM y", "E, MMM d, y", "EEEE d MMMM y",
)

#: Where that is another name than the usual one. To every other language Babel
#: would give the names of whichever it was asked for first.
ALONE = ("cs", "de", "el", "fi", "pl", "ru", "uk", "vi")

#: Where months are numbers, so that these orders are nobody's.
NUMBERED = ("ja", "ko", "zh")

#: Orders of numbers that mean one date: the year first, or dots.
NUMBERS = (
    "y/M/d", "y/MM/dd", "y.MM.dd", "y-M-d", "yMMdd", "y MM dd", "d.M.y",
    "dd.MM.y", "d. M. y", "dd. MM. y",
)

#: Orders that mean one date only where the day is above 12.
EITHER = ("d/M/y", "M/d/y", "dd/MM/y", "MM/dd/y", "d-M-y", "MM-dd-y",
          "M-d-y", "dd-MM-y")

#: What follows the day where it is the first of its month.
FIRST_OF_MONTH = {"fr": "er", "it": "º", "pt": "º"}

#: Digits from 0 to 9 of the languages that have more than ours.
DIGITS = {
    "ar": "٠١٢٣٤٥٦٧٨٩", "hi": "०१२३४५६७८९", "th": "๐๑๒๓๔๕๖๗๘๙",
    "ja": "０１２３４５６７８９", "zh": "０１２３４５６７８９",
}

#: How a text is changed, whatever it says.
STYLES = ("capitals", "small letters", "bare", "digits")


class ImpossibleDate(datetime.date):
    """A day that the calendar lacks, such as 31 February, as Babel writes it.

    As a date, it is the first of January.
    """

    parts: tuple

    def __new__(cls, year, month, day):
        self = super().__new__(cls, year, 1, 1)
        self.parts = year, month, day
        return self

    month = property(lambda self: self.parts[1])
    day = property(lambda self: self.parts[2])

    def isoformat(self):
        """As ISO 8601 would write it."""
        return "{:04}-{:02}-{:02}".format(*self.parts)


def written(date, pattern, locale):
    """A date in a language, by a form of CLDR or a pattern."""
    from babel.dates import format_date
    if locale not in ALONE:
        pattern = pattern.replace("L", "M")
    return format_date(date, pattern, locale=locale)


@functools.cache
def _pattern(locale, form):
    """CLDR's pattern of a form or a skeleton in a language, or None."""
    from babel import Locale
    known = Locale.parse(locale)
    found = known.date_formats.get(form) or known.datetime_skeletons.get(form)
    return None if found is None else found.pattern


def ordinal(day):
    """What English writes behind a day's number."""
    return "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(
        day % 10, "th")


def worded(date, locale, draw):
    """A date whose month is named, in another order or abbreviated."""
    if locale in NUMBERED:
        pattern = _pattern(locale, draw.of(("yMMMEd", "yMMMd")))
    elif locale == "en" and not draw.below(3):
        locale = draw.of(("en", "en_GB"))
        day = f"d'{ordinal(date.day)}'"
        pattern = draw.of((
            f"MMMM {day}, y", f"{day} MMMM y", f"{day} 'of' MMMM y",
            f"'the' {day} 'of' MMMM y", f"E {day} MMM y", f"MMM {day} y",
            f"MMM {day}, y"))
    elif locale in FIRST_OF_MONTH and date.day == 1:
        pattern = _pattern(locale, "long").replace(
            "d", f"d'{FIRST_OF_MONTH[locale]}'", 1)
    elif not draw.below(4):
        pattern = _pattern(locale, draw.of(("yMMMEd", "yMMMd")))
    else:
        locale = draw.of(("en", "en_GB")) if locale == "en" else locale
        pattern = draw.of(ORDERS)
    return written(date, pattern, locale)


def numbered(date, draw, either=EITHER):
    """A date in digits alone, in an order that means one date."""
    orders = NUMBERS + either if date.day > 12 else NUMBERS
    return written(date, draw.of(orders), "en")


def vague(date, locale, draw, either=EITHER):
    """A text that does not say which date it means, and may mean this one."""
    way = draw.below(9)
    if way < 4 and date.day < 13 and date.day != date.month:
        return written(date, draw.of(either), "en")
    if way < 4:
        return written(date, draw.of(ORDERS).replace("y", "yy"), locale)
    if way == 4:
        pattern = _pattern(locale, draw.of(("yMMMM", "MMMMd")))
        return written(date, pattern, locale)
    if way == 5:
        return written(date, draw.of(("y", "EEEE", "d", "LLLL")), locale)
    return " ".join(draw.of(_words(locale))
                    for _ in range(1 + draw.below(2)))


@functools.cache
def _words(locale):
    """Names that are no dates, and sentences of the tokenizer's."""
    from babel import Locale
    from transformer_contract.tokenizer import SENTENCES, read_pairs
    known = Locale.parse(locale)
    sentences = read_pairs(SENTENCES)[0] if locale == "en" else ()
    return tuple(text for text in (
        *sorted({*known.territories.values(), *known.languages.values()}),
        *sentences) if len(text) < 24)


def styled(text, style, locale):
    """A text in one of STYLES; unchanged where the language has none."""
    if style == "capitals":
        if locale == "tr":
            text = text.replace("i", "İ")
        elif locale == "el":
            text = plain(text)
        return text.upper()
    if style == "small letters":
        if locale == "tr":
            text = text.replace("İ", "i").replace("I", "ı")
        return text.lower()
    if style == "bare":
        return " ".join(plain(text).replace(",", " ").split())
    if style == "digits" and locale in DIGITS:
        return text.translate(str.maketrans("0123456789", DIGITS[locale]))
    return text


def plain(text):
    """A text without accents over Latin, Greek and Cyrillic letters."""
    signs = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(
        sign for sign in signs if not "\u0300" <= sign <= "\u036f"))
