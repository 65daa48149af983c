"""Command lines of all sorts: each ends with a status that says which."""

import contextlib
import os

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from parity import ports
from parity.cli import app
from parity.runs import training
from parity_tests.support.fuzzing import answered, tries

pytestmark = pytest.mark.long

COMMANDS = get_command(app).commands

#: Words that people and programs give by mistake.
WORDS = (
    "", " ", "0", "-1", "1", "2", "1e400", "-0.0", "nan", "inf", "9" * 30,
    "9" * 5000, "1e-400", "0x10", "½", "²", "٣", "all", "torch", "pytorch",
    "gpu", "cpu", "cuda", "float64", "bfloat16", "int8", "lesson", "dates",
    "torch,,", ",", "None", "true", "-", "--", "--help", "\udcff", "a\nb",
    "\x1b[31mred", "a" * 5000, "🦉", ".", "..", "/", "/dev/null", "/dev/zero",
    "/dev/full", "/proc/self/mem", "nowhere/at/all", "fifo", "folder",
    "file", "a/b\udcff", "~", "*", "%s%n", "{0}", "[red]x[/]")


def words_of(draw, command):
    """A command with some of its options, each with a word, and arguments."""
    found = []
    for parameter in command.params:
        if not draw(st.integers(0, 3)):
            word = draw(st.sampled_from(WORDS))
            if parameter.param_type_name == "argument":
                found.append(word)
            else:
                found.append(draw(st.sampled_from(parameter.opts)))
                if not getattr(parameter, "is_flag", False):
                    found.append(word)
    if not draw(st.integers(0, 5)):
        found.append(draw(st.sampled_from(WORDS)))
    return found


@pytest.fixture(scope="module", autouse=True)
def here(tmp_path_factory):
    """A folder with a pipe, a folder and a file; what computes does not, and
    what serves for ever is not begun."""
    folder = tmp_path_factory.mktemp("here")
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    (folder / "file").write_text("a\tb\n")

    def done(*args, **more):
        raise typer.Exit(0)

    @contextlib.contextmanager
    def nothing(*args, **more):
        yield done
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("parity.check.run.Check", done)
        patch.setattr("parity.check.golden.make", done)
        patch.setattr("parity.check.golden.problems", lambda folder: [])
        patch.setattr("parity.reading.values.Values", done)
        patch.setattr("parity.reading.lessons.run", done)
        patch.setattr("parity.reading.prebuild.running", nothing)
        patch.setattr("parity.reading.rebuild.making", nothing)
        patch.setattr("parity.reading.serving.serve", done)
        patch.setattr("parity.matrix.run.run", done)
        patch.setattr("parity.matrix.in_place.run", done)
        patch.setattr("parity.runs.quality.measure", done)
        patch.setattr("benchmarks.command.run", done)
        patch.setattr(training, "claimed", done)
        yield folder


#: Those that compute for minutes, whatever their words; not tried.
SLOW = {"check faults", "check differences"}


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - SLOW))
def test_command_lines(here, name):
    before = sorted(here.iterdir())
    if name == "doctor":  # its three imports take 8 to 11 s of CPU
        for port in ports.known_ports():
            ports.engine(port)

    @tries(24)
    @given(st.data())
    def run(data):
        words = words_of(data.draw, COMMANDS[name])
        answered([*name.split(), *words])
    run()
    made = set(here.iterdir()) - set(before)
    assert not {path.name for path in made if ".partial" in path.name}
