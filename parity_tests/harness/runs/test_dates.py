"""The dates: how they are written, what is held out, and the shipped model."""

import datetime

import numpy as np
import pytest

from parity.runs import dates, date_formats, quality
from parity.runs.seeded_choices import draws
from parity.runs.doubt import is_impossible_date
from transformer_contract import random
from parity_tests.support.commands import invoke
from parity_tests.support.runs import answers_of

FRIDAY = datetime.date(2026, 11, 20)


def test_no_date_that_is_tested_is_trained_on():
    kept, drawn = answers_of(dates, 4, 100, 100)
    assert len(kept) > 2500 and len(drawn) > 4000
    assert not kept & drawn


def test_a_set_has_every_language_and_kind():
    rows = dates.pairs("validation", 2)
    assert [group for *_, group in rows] == [
        *(name for name in date_formats.LOCALES for _ in range(6)),
        *(kind for kind in dates.KINDS for _ in range(6))]
    for source, target, group in rows:
        assert is_impossible_date(target) == (group == "no such day"), source
        assert len(target) == 10 and source == source.strip()


def test_every_form_is_drawn_in_training():
    sources = "\n".join(text for step in range(1, 40)
                        for text in dates.batch(step, 64)[0])
    for sign in ("NOV", "nov", "Nov", "th ", "st ", "1er", "٢", "२", "๒", "２",
                 "年", "/", "Sept ", "-05-"):
        assert sign in sources, sign


def test_native_digits_are_drawn_more_often_later():
    early, late = (sum(any("०" <= sign <= "९" for sign in text)
                       for step in range(first, first + 40)
                       for text in dates.batch(step, 64)[0])
                   for first in (1, dates.EARLY + 1))
    assert 0 < 4 * early < late


@pytest.mark.parametrize("text,style,locale,expected", [
    ("20 Nisan 2026", "capitals", "tr", "20 NİSAN 2026"),
    ("20 KASIM 2026", "small letters", "tr", "20 kasım 2026"),
    ("5 Μαΐου 2026", "capitals", "el", "5 ΜΑΙΟΥ 2026"),
    ("vendredi, 1 février 2026", "bare", "fr", "vendredi 1 fevrier 2026"),
    ("20 नवंबर 2026", "digits", "hi", "२० नवंबर २०२६"),
    ("20 May 2026", "digits", "en", "20 May 2026"),
    ("20 May 2026", "", "en", "20 May 2026"),
])
def test_a_style(text, style, locale, expected):
    assert date_formats.styled(text, style, locale) == expected


@pytest.mark.parametrize("day,expected", [
    (1, "st"), (2, "nd"), (3, "rd"), (4, "th"), (11, "th"), (12, "th"),
    (13, "th"), (21, "st"), (22, "nd"), (23, "rd"), (30, "th"), (39, "th")])
def test_an_ordinal(day, expected):
    assert date_formats.ordinal(day) == expected


def test_a_day_that_the_calendar_lacks_is_written_as_it_is():
    day = date_formats.ImpossibleDate(2026, 2, 31)
    assert date_formats.written(day, "long", "fr") == "31 février 2026"
    assert date_formats.written(day, "dd.MM.y", "en") == "31.02.2026"
    assert day.isoformat() == "2026-02-31"
    near, wild = dates.no_days("train")
    for year, month, number in near[:50] + wild[:50]:
        with pytest.raises(ValueError):
            datetime.date(year, month, number)


def test_numbers_mean_one_date():
    """Slashes stand behind days that are no months, or behind the year."""
    key = random.fold_in(random.key(0), "test")
    for day in (FRIDAY, FRIDAY.replace(day=3)):
        texts = {date_formats.numbered(day, draw) for draw in draws(key, 200)}
        assert len(texts) > 6
        either = {text for text in texts if text.endswith(("/2026", "-2026"))}
        assert bool(either) == (day.day > 12)


def test_texts_that_do_not_say_which_date_they_mean_are_doubtful():
    found = quality.measure("dates", ["numpy"], 1)
    assert np.mean([one.right for one in found.asked]) >= 0.95
    sound, wrong = found.doubtful(found.unseen)
    assert (sound + wrong) / len(found.unseen) > 0.95


@pytest.mark.parametrize("text", [
    "20 NOV 2026", "20 Nov 2026", "Nov 20 2026", "nov. 20, 2026",
    "NOVEMBER 20, 2026", "20th November 2026", "20th of november 2026",
    "Fri, Nov 20, 2026", "20-Nov-2026", "2026-11-20", "2026/11/20",
    "20.11.2026", "20/11/2026", "11/20/2026", "20261120",
    "VENDREDI 20 NOVEMBRE 2026", "20. nov. 2026", "20 NOVIEMBRE 2026",
    "٢٠ نوفمبر ٢٠٢٦", "２０２６年１１月２０日", "२० नवंबर २०२६",
])
def test_the_shipped_model_reads(text):
    found = invoke("translate", text)
    assert found.stdout == "2026-11-20\n" and not found.stderr


@pytest.mark.parametrize("text", ["3/4/2026", "20 Nov 26", "11/12/2026"])
def test_what_may_be_two_dates_is_doubtful(text):
    assert "doubtful" in invoke("translate", text).stderr


def test_a_month_that_stands_alone_has_its_languages_name():
    """Babel keeps the names of the first language that is asked for."""
    for locale, expected in (("ja", "11月"), ("he", "נובמבר"),
                             ("sv", "november"), ("ru", "ноябрь"),
                             ("pl", "listopad")):
        assert date_formats.written(
            datetime.date(2026, 11, 20), "LLLL", locale) == expected
