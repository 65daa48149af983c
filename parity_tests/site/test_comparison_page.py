"""The report of a comparison as a page, which stands alone in a mail."""

import re

import pytest

from parity.comparison.compare import compare
from parity.numerics.comparator import DIVERGENCE, MATCH, Difference
from parity.render.comparison_page import ChartRow, as_html
from parity.render.error_charts import ACCUMULATED, LOCAL, TOP, drawing
from parity_tests.support.browser import Opened, chromium
from parity_tests.support.layers import (
    nnx_layer, torch_layer, traced, weights_of)


@pytest.fixture(scope="module")
def text():
    """A comparison of two layers, one of which has another ε."""
    layer = torch_layer()
    return as_html(compare(traced(layer, "torch"), traced(
        nnx_layer(weights_of(layer), eps=(1e-6, 1e-5)), "jax")))


def test_every_step_is_drawn_with_both_errors(text):
    marks = [path.count("M") for path in re.findall(
        r'class="mark p[01]" d="([^"]*)"/><', text)]
    legend, drawn = marks[:2], marks[-2:]
    assert legend == [1, 1] and min(drawn) > 3
    assert "accumulated: norm" in text, "the first step is named"


def test_the_ring_stands_above_the_limit_that_decided():
    """A step alone has a lower limit than the model, drawn in its colour."""
    rows = [ChartRow(f"step {i}", 8e-6, {
        ACCUMULATED: Difference(2e-6, 8e-6, MATCH),
        LOCAL: Difference(error, 2e-6, DIVERGENCE if error > 2e-6 else MATCH)})
        for i, error in enumerate((1e-6, 4e-6, 1e-6))]
    svg = drawing(rows, "three steps")
    ring, = re.findall(r'<circle class="wrong" cx="[\d.]+" cy="([\d.]+)"', svg)
    limit, = re.findall(r'class="limit p1" d="M[\d.]+ ([\d.]+)', svg)
    name, = re.findall(r'<text class="wrong" x="[\d.]+" y="([\d.]+)"', svg)
    assert float(ring) < float(limit)
    assert float(name) < TOP, "it covers no curve"


def test_the_card_comes_first(text):
    assert 0 < text.index('<div class="parity-card">') < text.index("<h2")
    assert text.count('class="word bad">divergence') == 1


def test_it_says_no_time(text):
    """So that two pages of one comparison are equal."""
    assert "<time" not in text
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", text)


def test_it_asks_for_nothing(text):
    assert "<script" not in text and "@import" not in text
    assert not re.findall(r'(?:src|href)="(?!#|data:)', text)
    links = set(re.findall(r'href="#([^"]*)"', text))
    assert links <= set(re.findall(r'\bid="([^"]*)"', text))


@pytest.mark.parametrize("width", [390, 1400])
def test_in_a_browser(text, tmp_path, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright",
                              reason="not checked: axe is not installed")
    path = tmp_path / "report.html"
    path.write_text(text, encoding="utf-8")
    with chromium() as browser, Opened(
            browser, path.as_uri(), width=width) as one:
        assert one.page.evaluate(
            "document.documentElement.scrollWidth - innerWidth") <= 0
        found = axe.Axe().run(one.page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"])
                for each in found] == []
        assert not one.errors and len(one.requests) == 1
