"""The report of a check as a page."""

import dataclasses
import re

import numpy as np
import pytest

from parity import ports
from parity.causes import catalogue
from parity.check import run as checking
from parity.numerics.comparator import DIVERGENCE, MATCH, Difference
from parity.ports import NotChecked
from parity.render import error_charts, report_page
from parity_tests.support.commands import invoke
from parity_tests.support.page_reader import PageReader

#: No page is larger, so that it opens at once on a slow line.
MOST = 1_500_000


def checked(port_names=("torch",), **keywords):
    """The Report of a check of one preset."""
    if isinstance(ports.engine("torch"), NotChecked):
        pytest.skip("not checked: torch is not installed")
    run = checking.Check(["lesson"], list(port_names), ["float64", "float32"],
                         full_size=False, **keywords)
    run.report.environment = {
        "python": "3", "platform": "here", "cores": 1, "blas": [],
        "ports": {"numpy": {"versions": {"numpy": np.__version__}}}}
    for _ in run.groups():
        pass
    return run.report


@pytest.fixture(scope="module")
def report():
    """A check that matches."""
    return checked()


def row(name="output", case="transformer", dtype="float64", error=1e-15,
        limit=1e-12, verdict=MATCH, preset="lesson", port="torch", **more):
    """A Row made up."""
    return checking.Row(preset, case, name, dtype, "cpu", (2, 3), limit, {
        port: Difference(error, limit, verdict, **more)})


def test_page_stands_alone(report):
    text = report_page.page(report, ["torch"])
    found = PageReader(text)
    assert len(text.encode()) < MOST
    assert all(address.startswith("data:") for address in found.fetched)
    assert "script" not in found.tags and "@import" not in text
    assert len(set(found.ids)) == len(found.ids)
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert found.words.index("Verdict: match") < found.words.index("What it")


def test_every_step_stands_in_a_picture_and_in_a_table(report):
    text = report_page.page(report, ["torch"])
    for chart in error_charts.charts_of(report):
        drawn = re.search(r'class="mark p0" d="([^"]*)"', chart.svg)[1]
        assert drawn.count("M") == len(chart.rows) > 100
        assert chart.svg in text
        for one in chart.rows:
            assert f'<th scope="row">{one.name}<td>' in text
    assert len(error_charts.charts_of(report)) == 2


def test_what_was_not_checked_is_said(report):
    words = PageReader(report_page.page(report, ["torch"])).words
    assert "the ports keras, jax: not asked for." in words
    assert "the dtypes float16, bfloat16: not asked for." in words
    device, rows = report_page.matrices(report)[0]
    cells = dict(rows)["self_attention"]
    assert device == "cpu" and len(cells) == 12
    assert [cell.verdict for cell in cells].count(MATCH) == 2
    assert cells[1].verdict == "not checked"  # float64, keras
    assert words.count("Not checked: it was not asked for.") == 2


def test_a_device_that_is_not_here_is_said(tmp_path):
    if isinstance(ports.engine("torch"), NotChecked) or (
            "xpu" in ports.engine("torch").devices()):
        pytest.skip("not checked: torch is not installed, or has that device")
    path = tmp_path / "report.html"
    ran = invoke(
        "check", "--preset", "lesson", "--port", "torch", "--device", "xpu",
        "--html", str(path))
    assert ran.exit_code == 4
    words = PageReader(path.read_text(encoding="utf-8")).words
    assert "Verdict: nothing compared" in words
    assert "torch, it has no device xpu here" in words
    assert ("the device xpu: asked for, but nothing could be compared there"
            in words)
    assert "the devices cpu, cuda, mps, tpu: not asked for" in words


def test_matrix_counts_every_comparison(report):
    count = sum(cell.count for _, rows in report_page.matrices(report)
                for _, cells in rows for cell in cells)
    assert count == report.compared
    assert count == sum(cell.count for *_, cells
                        in report_page.models(report, ["torch"])
                        for cell in cells)


def test_times(report):
    cases = {one.case for one in report.rows} - {"precision canary"}
    assert cases == {one.case for one in report.times}
    assert {one.port for one in report.times} == {"numpy", "torch"}
    longest = report_page.slowest(report)
    assert longest[0].seconds == max(one.seconds for one in report.times) > 0
    assert report.as_json()["times"][0]["seconds"] > 0


def test_closest_to_a_limit(report):
    (part, port, one), *rest = report_page.closest(report)
    shares = [found.error / found.limit for other in report.rows
              for found in other.differences.values() if found.limit]
    assert part == error_charts.percent(max(shares))
    difference = one.differences[port]
    assert difference.error / difference.limit == max(shares)
    assert len(rest) == report_page.SHOWN - 1


def test_a_fault_is_named_on_the_page(tmp_path):
    if isinstance(ports.engine("torch"), NotChecked):
        pytest.skip("not checked: torch is not installed")
    fault = next(one for one in catalogue.faults()
                 if one.name == "post-norm, not pre-norm")
    path = tmp_path / "report.html"
    with fault.put("torch"):
        ran = invoke(
            "check", "--preset", "lesson", "--port", "torch", "--dtype",
            "float64", "--no-full-size", "--html", str(path))
    assert ran.exit_code == 1
    words = PageReader(path.read_text(encoding="utf-8")).words
    assert f"Cause: {fault.name}" in words
    assert "Verdict: divergence" in words
    assert words.index("The first divergence") < words.index("What it ran")
    assert "torch diverges first at" in words


def test_texts_are_escaped(report):
    nasty = '<img src=x onerror="alert(1)">&'
    bad = dataclasses.replace(report, rows=[
        row(preset=nasty), row(name=nasty, error=None, verdict=DIVERGENCE,
                               reason=nasty)],
        not_checked=[NotChecked("keras", nasty)])
    text = report_page.page(bad, ["torch"])
    assert "<img" not in text and nasty in PageReader(text).words


def test_odd_numbers_are_drawn():
    rows = [row(error=0.0), row(error=None, verdict=DIVERGENCE,
                                reason="shape [1], not [2]"),
            row(error=float("inf"), verdict=DIVERGENCE),
            row(error=0.0, limit=0.0)]
    drawn = error_charts.drawing(rows, "odd")
    assert "nan" not in drawn and "inf" not in drawn
    assert 'class="wrong"' in drawn
    assert error_charts.drawing([row(error=0.0)], "zero").count("<path")


def test_a_limit_far_below_every_error_is_in_the_picture():
    drawn = error_charts.drawing([row(error=0.5, verdict=DIVERGENCE)], "far")
    assert "1e−12" in drawn and "1e−14" not in drawn


def test_pictures_that_have_no_room_are_named(report, monkeypatch):
    charts = error_charts.charts_of(report)
    monkeypatch.setattr(error_charts, "ROOM", charts[0].size + 10)
    kept, left_out = error_charts.fitting(charts)
    assert len(kept) == len(left_out) == 1
    assert kept[0].worst == max(chart.worst for chart in charts)
    assert left_out[0] in PageReader(
        report_page.page(report, ["torch"])).words


def test_written_whole_or_not_at_all(report, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")
    monkeypatch.setattr(report_page, "matrices", lambda report: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report_page.write(path, report, ["torch"])
    assert path.read_text() == "before" and len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_is_not_there_is_told_before_the_work(tmp_path):
    ran = invoke("check", "--html", str(tmp_path / "no" / "report.html"))
    assert ran.exit_code == 2 and "give a file in a folder" in ran.output
