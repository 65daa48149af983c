"""The writers in the documentation write dumps that are read."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from parity.comparison.compare import compare
from parity.dumps.read import load
from parity_tests.support.places import ROOT

#: What the small programs dump.
IDS = np.arange(6, dtype=np.int64).reshape(2, 3)
STEP = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 3, 2)

CPP = """
int main() {
    Dump dump("b");
    std::vector<long long> ids = {0, 1, 2, 3, 4, 5};
    std::vector<float> step;
    for (int i = 0; i < 12; ++i) step.push_back(-1 + i * (2.0 / 11));
    dump.put("inputs/ids", "<i8", ids.data(), {2, 3});
    dump.put("h.0.attn", "<f4", step.data(), {2, 3, 2});
    dump.put("outputs/logits", "<f4", step.data(), {2, 3, 2});
}
"""

RUST = """
fn main() -> io::Result<()> {
    let mut dump = Dump::new("b")?;
    let step: Vec<f32> = (0..12).map(|i| -1.0 + i as f32 * 2.0 / 11.0)
        .collect();
    dump.put("h.0.attn", &step, &[2, 3, 2])?;
    dump.put("outputs/logits", &step, &[2, 3, 2])
}
"""


def writer(language):
    """The code of a writer."""
    page = (ROOT / "docs/dumps.md").read_text(encoding="utf-8")
    found = re.search(f"<!-- writer {language} -->\n```\\w+\n(.*?)```", page,
                      re.S)
    return found[1]


def truth(folder):
    """The same, as the writer in Python writes it."""
    scope = {}
    exec(writer("python"), scope)  # noqa: S102
    dump = scope["Dump"](folder)
    for name, array in (("inputs/ids", IDS), ("h.0.attn", STEP),
                        ("outputs/logits", STEP)):
        dump(name, array)
    return load(folder)


def test_python(tmp_path):
    assert truth(tmp_path / "a").inputs["ids"].shape == (2, 3)


@pytest.mark.parametrize("language, compiler, options, file, main", [
    ("cpp", "g++", ["-std=c++17", "-o", "run"], "main.cpp", CPP),
    ("rust", "rustc", ["-o", "run"], "main.rs", RUST)])
def test_compiled(tmp_path, language, compiler, options, file, main):
    if not shutil.which(compiler):
        pytest.skip(f"not compiled: there is no {compiler} here")
    (tmp_path / file).write_text(writer(language) + main)
    subprocess.run([compiler, file, *options], cwd=tmp_path, check=True,
                   timeout=120)
    subprocess.run([tmp_path / "run"], cwd=tmp_path, check=True, timeout=20)
    made = load(tmp_path / "b")
    comparison = compare(truth(tmp_path / "a"), made)
    assert comparison.status == 0 and comparison.compared >= 2
    assert made.inputs.keys() <= {"ids"}


def test_writers_are_short():
    for language in ("python", "cpp", "rust"):
        assert len(writer(language).splitlines()) <= 40
