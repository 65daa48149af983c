"""The check on a screen or two: what stands in a line, and how wide it is."""

import io

import pytest
from rich.console import Console

from parity.check.run import FULL_SIZE_CASE, Report, Row
from parity.numerics.comparator import DIVERGENCE, MATCH, Difference
from parity.render.overview import Overview

PORTS = ["torch", "keras", "jax"]


def row(preset="lesson", case="norm", name="mean", dtype="float64",
        error=2.4e-15, verdict=MATCH, ports=PORTS, device="cpu"):
    return Row(preset, case, name, dtype, device, (5, 9, 1), 1e-12, {
        port: Difference(error, 1e-12, verdict) for port in ports})


def screen(rows, width=80, dtypes=("float64", "float32"), devices=("cpu",)):
    """The lines that are printed, without the two that say what they are."""
    out = Console(file=io.StringIO(), width=width, highlight=False)
    shown = Overview(out, PORTS, dtypes, devices)
    shown.begin(["lesson", "notebook"])
    shown.add(rows)
    report = Report(rows=rows)
    shown.end(report)
    return out.file.getvalue().splitlines()[2:]


def test_a_line_has_the_largest_error_of_every_port():
    lines = screen([row(), row(error=7.6e-15), row(case="norm, mean 10 "
                    "deviations"), row(dtype="float32", error=3e-8)])
    model, = (line for line in lines if line.startswith("lesson"))
    assert model.split() == ["lesson", "4", *["8e-15"] * 3, *["3e-08"] * 3,
                             "match"]
    component, = (line for line in lines if line.startswith("norm"))
    assert component.split()[1:] == model.split()[1:]


def test_what_diverges_is_marked_by_more_than_a_colour():
    wrong = row(error=3e-5, verdict=DIVERGENCE)
    right = row(preset="notebook")
    lines = screen([wrong, right])
    model, = (line for line in lines if line.startswith("lesson"))
    assert model.split()[2] == "✗3e-05" and model.endswith("DIVERGES")
    model, = (line for line in lines if line.startswith("notebook"))
    assert model.endswith("match")
    assert not any("Nearest" in line for line in lines)


def test_what_has_no_number_says_so():
    lines = screen([row(error=None, verdict=DIVERGENCE), row(ports=["jax"])])
    model, = (line for line in lines if line.startswith("lesson"))
    assert model.split() == ["lesson", "2", "✗?", "✗?", "✗?", "–", "–", "–",
                             "DIVERGES"]


@pytest.mark.parametrize("width", [80, 100, 120, 132])
@pytest.mark.parametrize("dtypes", [
    ("float64",), ("float64", "float32"),
    ("float64", "float32", "bfloat16", "float16")])
@pytest.mark.parametrize("devices", [("cpu",), ("cpu", "cuda")])
def test_every_line_fits(width, dtypes, devices):
    """However many dtypes and devices: a line each where they do not fit."""
    rows = [row(preset, case, dtype=dtype, device=device,
                error=3e-5, verdict=DIVERGENCE)
            for preset, case in (("lesson", "norm"), (
                "vaswani2017_base", FULL_SIZE_CASE))
            for dtype in dtypes for device in devices]
    lines = screen(rows, width, dtypes, devices)
    assert max(map(len, lines)) <= width
    found = [line for line in lines if line.startswith("vaswani2017_base,")]
    assert found and all(line.endswith("DIVERGES") for line in found)


def test_full_size_is_a_model_of_its_own():
    lines = screen([row("vaswani2017_base"), row("dates"),
                    row("vaswani2017_base", FULL_SIZE_CASE)])
    names = [line[:22].strip() for line in lines]
    assert ["vaswani2017_base", "dates", "vaswani2017_base, full"] == [
        name for name in names if name.startswith(("vas", "dates"))]
