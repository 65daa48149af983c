"""The picture of the whole, and the way to every page."""

import re

import pytest

from transformer_contract.config import preset
from transformer_contract.dialects.table import SYSTEMS
from parity import ports
from parity.reading import articles, diagram, drawing, navigation, sources
from parity.render import terminal

ENGINE = ports.engine("numpy")
PAPER = preset("vaswani2017_base")


def boxes(model):
    """Every Box of a model's Stacks."""
    return [box for stack in model
            for box in (*stack.before, *sum(stack.layer, []), *stack.after)]


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_is_drawn_stands_in_the_model(name):
    config = SYSTEMS[name].config({})
    kinds = diagram.kinds_of(config, ENGINE)
    drawn = {box.path: box.owner
             for box in boxes(diagram.stacks(config, ENGINE)) if box.path}
    assert drawn.items() <= kinds.items()
    parts = {path for path in kinds if re.fullmatch(
        r"\w+\.layers\.0\.(\w+)", path)}
    assert parts <= drawn.keys()


def test_the_norm_stands_where_the_config_says():
    def order(config):
        encoder, _ = diagram.stacks(config, ENGINE)
        return [box.kind for box in encoder.layer[0]]
    assert order(PAPER) == ["box", "sum", "norm"]
    assert order(PAPER.replace(residual="pre")) == ["norm", "box", "sum"]


def test_what_differs_is_marked():
    paper = diagram.stacks(PAPER, ENGINE)
    others = diagram.signatures(paper)
    same = drawing.Drawing(paper, others=others).svg("the paper's")
    assert "other" not in same
    gated = diagram.stacks(PAPER.replace(gated=True), ENGINE)
    drawn = drawing.Drawing(gated, others=others).svg("gated")
    marked = re.findall(r'class="part \w+ other"[^>]*data-path="([^"]+)"',
                        drawn)
    assert marked == ["encoder.layers.0.feed_forward",
                      "decoder.layers.0.feed_forward"]


def test_a_decoder_alone_reads_no_memory():
    model = diagram.stacks(PAPER.replace(
        stacks="decoder", tied="output"), ENGINE)
    drawn = drawing.Drawing(model).svg("a decoder")
    assert "memory" not in drawn and "Cross-attention" not in drawn


def test_every_page_is_in_one_part():
    files, pages = sources.file_names(), dict(articles.PAGES)
    entries = [entry.address for _, part in navigation.parts(
        [*files, "new"], pages, [("lesson-1.html", "One")])
        for entry in part]
    assert sorted(entries) == sorted({
        *(f"{name}.html" for name in (*files, "new")), *pages,
        "lesson-1.html"})


def test_headings_get_ids_and_are_listed():
    outline = navigation.Outline.of(
        '<section id="a"><h2>One <code>x</code><a class="anchor" href="#a">#'
        "</a></h2></section><h2>Two</h2><h3>Two</h3>"
        '<h2 id="b">A &amp; B</h2>')
    assert [(one.address, one.words, one.depth)
            for one in outline.entries] == [
        ("#a", "One x", 1), ("#two", "Two", 1), ("#two-", "Two", 2),
        ("#b", "A & B", 1)]
    assert outline.html.count('id="') == 4


def test_what_is_done_is_told_in_a_pipe_too(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "EVERY", 0)
    with terminal.telling() as tell:
        tell("attention")
        tell("lesson-03-one-head.html")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" s  ")[1] for line in lines] == [
        "attention", "lesson-03-one-head.html"]
