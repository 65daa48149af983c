"""``parity dump`` and ``parity compare``."""

import json
import pathlib
import textwrap

import pytest
import typer
from typer.testing import CliRunner

from parity_io.errors import InputError
from parity.commands import compare as commands
from parity.commands import invariance, scripts
from parity.numerics.comparator import DIVERGENCE
from parity.render import markdown
from parity_tests.support.engines import usable
from parity_tests.support.processes import printed

APP = typer.Typer()
APP.command()(commands.dump)
APP.command()(commands.compare)

SCRIPT = """
import torch
from torch import nn

def model(eps=1e-5):
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8, eps=eps),
                         nn.Linear(8, 3)).double()
    return made, torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(2, 6)

def renamed(eps):
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            (self.inner, self.norm, self.outer), self.x = *(model(eps)[:1]), 0
        def forward(self, x):
            return self.outer(self.norm(self.inner(x)))
    return Other(), (model()[1],), {}

def same():
    return renamed(1e-5)

def wrong():
    return renamed(1e-6)

def fails():
    return 1 / 0

def ends():
    raise SystemExit(7)

def bad_input():
    return model()[0], torch.ones(2, 5)

def none():
    return None

def text():
    return "text", ()

def keyed():
    return model()[0], (), {3: model()[1]}

def foreign(eps=1e-5):
    made, x = model(eps)
    red = nn.Sequential()
    red.add_module("\\x1b[31mred<script>\\u202e", made)
    return red, x

def foreign_wrong():
    return foreign(1e-3)
"""


def run(*words):
    return CliRunner().invoke(APP, list(map(str, words)))


@pytest.fixture
def script(tmp_path):
    usable("torch")
    (tmp_path / "s.py").write_text(SCRIPT)
    return tmp_path / "s.py"


def test_dump_and_compare(script, tmp_path):
    for name in ("model", "same", "wrong"):
        done = run("dump", f"{script}:{name}", "--framework", "torch",
                   "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
    done = run("compare", tmp_path / "model", tmp_path / "same")
    assert done.exit_code == 0 and done.output.startswith("MATCH ")
    done = run("compare", tmp_path / "model", tmp_path / "wrong",
               "--html", tmp_path / "r.html", "--json", tmp_path / "r.json",
               "--write-map", tmp_path / "names.toml")
    assert done.exit_code == 1
    data = json.loads((tmp_path / "r.json").read_text())
    assert (data["first"]["a"], data["first"]["b"]) == ("1", "norm")
    assert "norm" in (tmp_path / "r.html").read_text()
    done = run("compare", tmp_path / "model", tmp_path / "wrong", "--map",
               tmp_path / "names.toml")
    assert done.exit_code == 1
    (tmp_path / "names.toml").write_text("")
    done = run("compare", tmp_path / "model", tmp_path / "wrong", "--map",
               tmp_path / "names.toml")
    assert done.exit_code == 4 and "Nothing was compared" in done.output
    run("dump", f"{script}:model", "--out", tmp_path / "again")
    done = run("compare", tmp_path / "model", tmp_path / "again")
    assert done.exit_code == 0 and done.output.startswith("MATCH ")
    done = run("compare", tmp_path / "model", tmp_path / "model")
    assert done.exit_code == 2 and "one folder" in done.stderr


@pytest.mark.parametrize("target, words", [
    ("s.py", "FUNCTION, such as"), ("no.py:model", "there is no script"),
    ("s.py:nope", "no function 'nope'"), ("s.py:none", "must return (model"),
    ("s.py:fails", "ZeroDivisionError"), ("s.py:ends", "SystemExit: 7"),
    ("s.py:text", "a str is not a model"),
    ("s.py:keyed", "keywords that are no texts"),
    ("s.py:bad_input", "RuntimeError")])
def test_scripts_that_cannot_be_dumped(script, tmp_path, target, words):
    done = run("dump", script.parent / target, "--out", tmp_path / "d")
    assert done.exit_code == 2, done.output
    assert words in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("target, words", [
    ("s.py", "such as s.py:model (it has model, same"),
    ("s.py:model", "'s.py:model' is one; name the other"),
    ("d", "'d' is one; name the other")])
def test_one_model_alone_is_told(script, monkeypatch, target, words):
    monkeypatch.chdir(script.parent)
    done = run("compare", target)
    assert done.exit_code == 2 and words in done.stderr


def test_names_of_anybody_colour_and_mark_nothing(script, tmp_path):
    """Of a live model, as those of a dump, on the screen and on a page."""
    given = f"{script}:foreign", f"{script}:foreign_wrong"
    page = tmp_path / "r.html"
    done = run("compare", *given, "--all", "--html", page)
    assert done.exit_code == 1 and "\\x1b[31mred<script>" in done.output
    assert "\\x1b[31mred&lt;script&gt;" in page.read_text("utf-8")
    for text in (done.output, page.read_text("utf-8")):
        assert "\x1b" not in text and "\u202e" not in text
    done = asked("invariance", given[0], "--way", "twice")
    assert done.exit_code == 0 and "\x1b" not in done.output


def test_a_dump_of_another_framework_or_place(script, tmp_path):
    done = run("dump", f"{script}:model", "--framework", "jax", "--out",
               tmp_path / "d")
    assert done.exit_code == 2 and "--framework torch" in done.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for out in ("full", "s.py", "no/where"):
        done = run("dump", f"{script}:model", "--out", tmp_path / out)
        assert done.exit_code == 2, out
    done = run("compare", tmp_path / "full", tmp_path / "no")
    assert done.exit_code == 2 and "is no dump" in done.stderr


LARGE = """
    import resource, sys, torch
    from torch import nn
    from parity.tracing.trace import trace
    from parity.comparison.compare import compare
    from parity.tracing.folder import dump, load
    torch.set_num_threads(1)
    torch.manual_seed(0)

    def model():
        return nn.Sequential(nn.Embedding(32000, 512), *(
            nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
            for _ in range(8)), nn.Linear(512, 37000)).eval()

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    right, wrong = model(), model()
    wrong.load_state_dict(right.state_dict())
    wrong[5].norm1.eps = 1e-2
    with torch.no_grad():
        for parameter in wrong.parameters():
            parameter.mul_(1 + 1e-8)
    size = sum(p.numel() for p in right.parameters())
    x = torch.randint(0, 32000, (2, 16))
    before = peak()
    dump(trace(right, x), sys.argv[1] + "/a")
    dump(trace(wrong, x), sys.argv[1] + "/b")
    found = compare(load(sys.argv[1] + "/a"), load(sys.argv[1] + "/b"))
    print(size, peak() - before, found.verdict, found.first.a)
"""


@pytest.mark.long(12)
def test_a_large_model_takes_little_memory(tmp_path):
    """60 M parameters: dumped, both, and compared."""
    usable("torch")
    size, extra, verdict, first = printed(
        "-c", textwrap.dedent(LARGE), tmp_path).split()
    assert int(size) > 60e6 and verdict == DIVERGENCE
    assert first == "5.norm1"
    assert float(extra) < 2, f"{extra} GiB"


def asked(command, script, *words):
    app = typer.Typer()
    app.command()(getattr(invariance, command))
    return CliRunner().invoke(app, [str(script), *map(str, words)])


def test_invariance_of_a_script(script, tmp_path):
    done = asked("invariance", f"{script}:model", "--way", "twice,alone",
                 "--json", tmp_path / "r.json")
    assert done.exit_code == 0, done.output
    assert "run twice" in done.output and "verdict: " in done.output
    data = json.loads((tmp_path / "r.json").read_text())
    assert len(data["responses"]) == 3 and data["schema"] == 1
    for words, told in ((["--way", "x"], "way 'x'"),
                        ([], "there is no script")):
        target = f"{script}:model" if words else "no.py:model"
        done = asked("invariance", target, *words)
        assert done.exit_code == 2 and told in done.stderr
        assert done.stderr.count("\n") == 1


def test_cache_of_a_script(script):
    cache = "invariance", "--way", "cache"
    done = asked(*cache, f"{script}:model")
    assert done.exit_code == 2 and "past_key_values" in done.stderr
    done = asked(*cache, f"{script}:model", "--step", "nope")
    assert done.exit_code == 2 and "no function 'nope'" in done.stderr
    with script.open("a") as file:
        file.write("""
def by_one(model, place, state, x):
    return model(x[:, place:place + 1]), None

def sequences():
    return nn.Linear(6, 2).double(), torch.ones(2, 3, 6).double()

def summed():
    class Summed(nn.Module):
        def forward(self, x):
            return x.cumsum(1)
    return Summed(), torch.ones(2, 3, 6).double()
""")
    done = asked(*cache, f"{script}:sequences", "--step", "by_one")
    assert done.exit_code == 0, done.output
    done = asked(*cache, f"{script}:summed", "--step", "by_one")
    assert done.exit_code == 1 and "place 1" in done.output


def test_a_mistake_of_ours_is_not_the_models(monkeypatch):
    """Of a model that fails a sentence is said; of us, everything."""
    with pytest.raises(InputError, match="the model of s.py:f failed"):
        with scripts.running("s.py:f"):
            raise ValueError("in the model")
    monkeypatch.setattr(scripts, "OURS", pathlib.Path(__file__).parent)
    with pytest.raises(ValueError, match="in parity"):
        with scripts.running("s.py:f"):
            raise ValueError("in parity")


def test_evidence_is_checked_before_the_work(script, tmp_path):
    given = f"{script}:model", f"{script}:wrong", "--evidence"
    done = run("compare", *given, tmp_path / "none" / "e")
    assert done.exit_code == 2 and done.stdout == ""
    assert "give one inside a folder that exists" in done.stderr
    (tmp_path / "e" / "evidence.md").mkdir(parents=True)
    done = run("compare", *given, tmp_path / "e")
    assert done.exit_code == 2 and done.stdout == ""


def test_foreign_words_mark_nothing_in_evidence():
    words = "a\n# t | `x` [y](z) <b> \x1b[31m *"
    assert markdown.plain(words) == (
        "a # t \\| \\`x\\` \\[y\\](z) \\<b> \\\\x1b\\[31m \\*")
    assert markdown.code(words) == "`a # t ¦ 'x' [y](z) <b> \\x1b[31m *`"
