"""What commit 3f768e1 wrote, in the first days of version 0.1, is read.

Its matrix was ``parity matrix --json``, its map ``parity compare --write-map``;
the dump is of torch's Linear, ReLU, LayerNorm and Linear in float64.
"""

import json
import shutil

from parity.matrix import cells
from parity.numerics.comparator import MATCH
from parity_tests.support.commands import invoke
from parity_tests.support.places import ROOT

EARLIER = ROOT / "parity_tests" / "data" / "earlier"


def test_a_dump_and_a_map(tmp_path):
    shutil.copytree(EARLIER / "dump", tmp_path / "b")
    done = invoke("compare", EARLIER / "dump", tmp_path / "b", "--map",
                  EARLIER / "map.toml")
    assert done.exit_code == 0, done.output
    assert "MATCH" in done.output and "15 arrays agree" in done.output


def test_a_dump_of_another_schema_is_refused(tmp_path):
    """With both numbers, before any of its hashes is asked for."""
    manifest = json.loads((EARLIER / "dump/manifest.json").read_text("utf-8"))
    (tmp_path / "manifest.json").write_text(
        json.dumps(manifest | {"schema": 7}), encoding="utf-8")
    done = invoke("compare", tmp_path, EARLIER / "dump")
    assert done.exit_code == 2
    assert "is of schema 7 and this program reads 1" in done.output


def test_a_matrix():
    found = cells.read_matrix(EARLIER / "matrix.json")
    assert [(str(cell.subject.row), cell.verdict) for cell in found.cells] == [
        ("torch", MATCH), ("torch, aot_eager", MATCH)]
    assert found.as_json()["cells"][0]["target"]["port"] == "torch"
