"""What a class is handed, and what its teacher has."""

import re

import pytest

from parity.course import pack
from parity_tests.support.commands import invoke


@pytest.mark.long(10)
def test_lessons_are_packed(tmp_path):
    pytest.importorskip("jupytext")
    out = tmp_path / "pack"
    done = invoke("teach", 4, 3, 4, "--out", out)
    assert done.exit_code == 0, done.output
    names = {path.relative_to(out).as_posix()
             for path in out.rglob("*") if path.is_file()}
    assert names == {
        "teacher/slides.html", "teacher/key.md", "handout.html",
        "03_one_head.ipynb", "04_masks.ipynb", *(
            f"exercises/exercise_{lesson}_{place}.py"
            for lesson in (3, 4) for place in (1, 2, 3))}
    assert {line.removeprefix(f"{out}/") for line in
            done.output.splitlines()} == names
    shown = (out / "teacher" / "slides.html").read_text("utf-8")
    assert shown.count('class="slide"') == 14
    assert shown.count('src="data:image/png') == 3
    assert not re.search(r'(src|href)="(?!data:|#)', shown)
    handed = (out / "handout.html").read_text("utf-8")
    assert "Exercise 4.3" in handed and "return -1" not in handed
    assert handed.count('src="data:image/png') == 3
    assert "They draw arrows" not in handed  # a teacher's note
    assert not re.search(r'(src|href)="(?!data:|#)', handed)


def test_a_key_has_every_framework_and_mistake():
    key = pack.key([3])
    for words in ("torch.softmax(", "jax.nn.softmax(", "ops.softmax(",
                  "np.exp(", "- scores not divided\n"):
        assert words in key


@pytest.mark.parametrize("words, said", [
    (["3", "15"], "there is no lesson 15"),
    (["3", "--out", "."], "is there already"), ([], "Missing argument")])
def test_what_cannot_be_packed_is_told(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    done = invoke("teach", *words)
    assert done.exit_code == 2 and said in done.output
