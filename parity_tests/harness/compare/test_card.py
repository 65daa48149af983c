"""The answer of a comparison on a card: in words, as HTML, as plain data."""

import json

import pytest
from rich.console import Console

import parity
from parity.causes.explanation import UNIDENTIFIED, Explanation
from parity.comparison.card_path import StepGroup, pieces
from parity.comparison.card import CardCause, _largest
from parity.comparison.card_text import (
    aligned, marked, middle, text, window)
from parity.comparison.result import FLOAT32, OUTPUT, Comparison, PairRow
from parity.matching.pairs import NameMap
from parity.matching.rearrangement import SAME
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.render.comparison import print_steps
from parity.tracing.trace import WHOLE
from parity_tests.support.engines import usable
from parity_tests.support.explaining import of_traces
from parity_tests.support.layers import (
    nnx_layer, torch_layer, traced, weights_of)

EPS = ("(x - mean(x)) / sqrt(var(x) + 1e-05)",
       "(x - mean(x)) / sqrt(var(x) + 1e-06)")


def a_row(path, order, diverges, error=None, rounding=False):
    """A row of a step's output."""
    return PairRow(
        OUTPUT, path, path, "output", "output", SAME, SAME, "name", "Module",
        (2, 3), "float64", error or (1e-3 if diverges else 0.0), 1e-12,
        DIVERGENCE if diverges else MATCH, order=order, rounding=rounding)


def layers(count, first=0, **more):
    """A Comparison of a model of layers, which part in layer ``first``."""
    paths = ["tok", *(f"blocks.{i}{end}" for i in range(count)
                      for end in (".ln1", ".attn.q", ".attn", ".fc1", ".fc2",
                                  "")), "head", WHOLE]
    start = paths.index(f"blocks.{first}.ln1") if first < count else len(paths)
    rows = [a_row(path, i, i >= start, **more)
            for i, path in enumerate(paths)]
    names = NameMap([], [], {}, {})
    about = {"framework": "torch"}
    return Comparison(rows, names, [], about, {"framework": "jax"}, True,
                      ("", ""), [])


def epsilon(**more):
    return Explanation(
        "blocks.0.ln1", "blocks.0.ln1", "epsilon", "1e-05", "1e-06",
        "In blocks.0.ln1, epsilon: 1e-06 in b, 1e-05 in a.",
        errors={"a": 1e-16, "b": 2e-16, "without": 1e-2},
        also=[[f"blocks.{i}.ln1"] * 2 for i in range(1, 12)], **more)


def shown(comparison):
    """The card's lines, none of which is too long."""
    lines = str(comparison).splitlines()
    assert max(map(len, lines)) <= 80, max(lines, key=len)
    return lines


def test_a_cause_with_all_that_can_be_said_of_it():
    comparison = layers(12)
    comparison.seconds = 12.8
    comparison.corrected = "With it corrected, the outputs agree to 4.1e-16."
    comparison.explanations = [epsilon(
        place_a="tmodel.py:10", place_b="jmodel.py:14", expression_a=EPS[0],
        expression_b=EPS[1], proof="With 1e-05 in b its output is a's.",
        write="nnx.LayerNorm(…, epsilon=1e-05)")]
    assert shown(comparison) == [
        "DIVERGENCE   1 cause, proved · 1 of 75 steps agree"
        "                          13 s",
        "",
        " 1  epsilon  blocks.0.ln1 and 11 more",
        f"    A torch  {EPS[0]}                   tmodel.py:10",
        f"    B jax    {EPS[1]}                   jmodel.py:14",
        " " * 43 + "^^^^^",
        "    proof    With 1e-05 in b its output is a's.",
        "    write    nnx.LayerNorm(…, epsilon=1e-05)",
        "",
        "    tok ✓ │ blocks.0 … blocks.11  ln1 ✗1 q fc1 fc2 │ head",
        "    First to differ: blocks.0.ln1, 1.0e-03 (limit 1.0e-12). Output: "
        "1.0e-03.",
        "    With it corrected, the outputs agree to 4.1e-16."]


def test_without_lines_and_expressions():
    comparison = layers(2)
    comparison.explanations = [epsilon()]
    lines = shown(comparison)
    assert lines[3:6] == [
        "    A torch  1e-05", "    B jax    1e-06",
        "    proof    NumPy gives B to 2.0e-16 with it, 1.0e-02 off without"]


def test_a_value_that_its_expression_does_not_show():
    comparison = layers(2)
    comparison.explanations = [Explanation(
        "a", "b.c", "activation", "gelu", "gelu by tanh", place_b="b.py:3",
        expression_a="erf(x)", expression_b="tanh(x)")]
    lines = shown(comparison)
    assert lines[2:8] == [
        " 1  activation  b.c (a in A)", "    A torch  gelu",
        "    B jax    gelu by tanh" + " " * 49 + "b.py:3",
        "             erf (x)", "             tanh(x)", "             ^^^^"]


def test_what_is_not_identified_has_five_lines_of_evidence():
    comparison = layers(2)
    facts = [f"Fact {i} of them." for i in range(4)]
    comparison.explanations = [
        Explanation("blocks.0.ln1", "blocks.0.ln1", UNIDENTIFIED, known=facts),
        Explanation("head", "head", UNIDENTIFIED, known=[
            *facts, *(f"Fact {i}." for i in range(4, 9))])]
    lines = shown(comparison)
    assert lines[0] == "DIVERGENCE   cause not identified · 1 of 15 steps agree"
    assert [line for line in lines if "· Fact" in line] == [
        *(f"    · {each}" for each in facts), "    · Fact 4."]
    assert " ?  not identified  head" in lines
    assert any("ln1 ✗?" in line for line in lines)


def test_a_match_has_two_lines():
    comparison = layers(2, first=9)
    assert shown(comparison) == [
        "MATCH   15 arrays agree, the outputs included",
        "    Every number is the same."]


def test_a_match_is_nearest_where_it_matches():
    """A guessed pair that differs is no counterpart, and no measure."""
    made = layers(1, first=9)
    made.rows[:] = [a_row("near", 0, False, error=1e-15),
                    a_row("guessed", 1, True)]
    assert _largest(made) == (
        "Nearest to a limit: near · output, 1.0e-15 of 1.0e-12.")


def test_where_float32_is_inside():
    comparison = layers(2, rounding=True, error=3e-8)
    comparison.roundings = {
        "a": [("a.py:1", "float32", None), ("model.py:62", "float32", 2e-8)],
        "b": [("port.py:4", "float32", 3e-8)]}
    assert comparison.verdict == FLOAT32
    assert shown(comparison)[:5] == [
        "EQUAL BUT FOR FLOAT32 INSIDE   largest error 3.0e-08 · 1 of 15 steps "
        "agree", "",
        "    A rounds at  model.py:62   float32   2.0e-08 off by it",
        "                 a.py:1        float32",
        "    B rounds at  port.py:4     float32   3.0e-08 off by it"]
    assert "    tok ✓ │ blocks.0  ln1 ≈ q fc1 fc2 │ blocks.1 │ head" in (
        shown(comparison))


def test_a_narrow_screen_breaks_no_name():
    comparison = layers(2)
    comparison.explanations = [epsilon()]
    lines = text(comparison.card(), 48).splitlines()
    assert max(map(len, lines)) <= 48
    assert any(line.endswith("and 11 more") for line in lines)


def test_as_json_and_html():
    comparison = layers(3)
    comparison.explanations = [epsilon(
        place_b="<b>.py:1", expression_a=EPS[0], expression_b=EPS[1])]
    data = comparison.as_json()["card"]
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["causes"][0]["in_b"] == "1e-06" and data["path"]
    page = comparison._repr_html_()
    assert "&lt;b&gt;.py:1" in page and "<script" not in page
    assert page.count("<mark>") == 2 and "<mark>1e-06</mark>" in page
    assert repr(comparison) == str(comparison)


def groups(*marks):
    return [StepGroup(f"layer.{i}", tuple(
        (f"step{j}", mark) for j, mark in enumerate(row)))
        for i, row in enumerate(marks)]


def line_of(made, room):
    text = "".join(words for words, _ in pieces(made, room))
    assert len(text) <= room
    return text


def test_the_line_of_steps_is_shortened_where_no_cause_is():
    made = groups(*["✓✓✓✓"] * 2, ["✓", "✓", "✗1", ""], *[[""] * 4] * 3)
    assert line_of(made, 99) == (
        "layer.0 ✓ │ layer.1 ✓ │ layer.2  step0 ✓ step1 ✓ step2 ✗1 step3 │ "
        "layer.3 │ layer.4 │ layer.5")
    assert line_of(made, 60) == (
        "… │ layer.1 ✓ │ layer.2  … step1 ✓ step2 ✗1 … │ … │ layer.5")
    assert "step2 ✗1" in line_of(made, 50)


def test_expressions_stand_so_that_what_differs_is_marked():
    one, two, marks = aligned("x + proj", "x + 1.01 · proj")
    assert (one, two) == ("x +        proj", "x + 1.01 · proj")
    assert [two[start:end] for start, end in marks] == ["1.01 · "]
    one, two, marks = aligned(*EPS)
    assert [two[start:end] for start, end in marks] == ["1e-06"]
    assert aligned("x", "x") == ("x", "x", [])
    long = "a + " * 40
    one, two, marks = window(*aligned(long + "1 + b", long + "2 + b"), 30)
    assert len(one) == len(two) == 30 and one[0] == "…"
    (start, end), = marks
    assert (one[start:end], two[start:end]) == ("1", "2")


def test_names_are_cut_in_the_middle():
    assert middle("blocks.0.attention.proj", 15) == "blocks.…on.proj"
    assert middle("short", 15) == "short"


def test_of_two_models():
    """ε in the first norm of an encoder layer, torch beside nnx."""
    theirs = torch_layer()
    a = traced(theirs, "torch")
    b = traced(nnx_layer(weights_of(theirs), eps=(1e-6, 1e-5)), "jax")
    comparison = of_traces(a, b)
    lines = shown(comparison)
    assert lines[0].startswith("DIVERGENCE   1 cause, proved · ")
    assert lines[2:5] == [" 1  epsilon  norms.0 (norm1 in A)",
                          "    A torch  1e-05", "    B jax    1e-06"]
    path = next(line for line in lines if "norm1 ✗1" in line)
    assert "✓" in path.partition("norm1")[0]
    assert "✓" not in path.partition("norm1")[2]


@pytest.mark.parametrize("renamed", ["", "encoder.layer_stack."])
def test_the_table_has_a_line_a_step(renamed):
    comparison = layers(12)
    for row in comparison.rows:
        row.reason = "worst at row [0]" if row.diverges else ""
        row.b = f"{renamed}{row.b}"
    out = Console(width=80, highlight=False)
    with out.capture() as captured:
        print_steps(out, comparison)
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:2] == ["step", "of" if renamed else "shape"]
    assert len(lines[1:lines.index("")]) == len(comparison.rows)
    assert "The limit is 1.0e-12." in lines
    assert not any("divergence" in line for line in lines)


@pytest.mark.parametrize("name", ["trace", "compare", "explain", "nats",
                                  "assert_parity", "invariance"])
def test_functions_are_listed_with_annotations(name):
    assert name in parity.__all__
    function = getattr(parity, name)
    assert "return" in function.__annotations__
    assert parity.__version__.count(".") == 2


def test_a_trace_prints_as_a_tree():
    usable("torch")
    import torch
    from torch import nn

    def block():
        return nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model = nn.Sequential(nn.Linear(3, 4), *(block() for _ in range(20)))
    found = parity.trace(model, torch.ones(2, 3))
    lines = repr(found).splitlines()
    assert lines[0] == ("Trace of torch Sequential: 62 steps, 42 parameters, "
                        "float32, 2×3 → 2×4")
    assert lines[2] == "  1   Sequential  2×4 → 2×4   2 steps inside"
    assert lines[6] == "  … 12 more" and len(lines) == 11
    assert repr(found["20.1"]) == "20.1 ReLU: 2×4 → 2×4"
    page = found._repr_html_()
    assert page.startswith(f"<p>{lines[0]}</p>")
    assert page.count("<details>") == page.count("</details>") == 20
    assert "<div>20.1 ReLU: 2×4 → 2×4</div>" in page
    with pytest.raises(TypeError, match="takes no rtol; limit= is"):
        parity.compare(found, found, rtol=1e-3)
    small = parity.trace(nn.Sequential(block(), block()), torch.ones(2, 4))
    assert repr(small).splitlines()[1:4] == [
        "  0      Sequential  2×4 → 2×4", "    0.0  Linear      2×4 → 2×4",
        "    0.1  ReLU        2×4 → 2×4"]


def test_numbers_that_differ_are_marked_alone():
    """Whatever else the two formulas have."""
    cause = CardCause(1, "epsilon", "norm", "1e-05", "1e-06", "", "",
                      "x + 1e-05", "maximum(0, x) + 1e-06", "", "")
    one, two, ((start, end),) = marked(cause)
    assert (one[start:end], two[start:end]) == ("1e-05", "1e-06")
    assert one.strip() == cause.expression_a and two == cause.expression_b
