"""Whatever an answer does, it does to itself, and it is told in a sentence."""

import contextlib
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from transformer_contract.shipped import PACKAGES
from parity import ports
from parity.course import answer, answering, done, frameworks, judge
from parity.course.exercise import EXERCISES, SOLUTIONS, exercises
from parity_tests.support.commands import invoke
from parity_tests.support.exercises import written
from parity_tests.support.processes import printed

#: A right answer of exercise 4.1.
MASK = SOLUTIONS / "4_1.py"


@pytest.mark.long(24)
@pytest.mark.parametrize("text, status, words", [
    ("def causal_mask(length):\n    while True:\n        pass\n", 1,
     "did not end within 1 seconds"),
    ("while True:\n    pass\n", 1, "did not end within 1 seconds"),
    ("import os\nos._exit(0)\n", 1, "ended its process"),
    ("def causal_mask(length):\n    raise ValueError('a\\nb')\n", 1,
     r"line 2, raises ValueError \(a\) on inputs 1 of 4: length 1"),
    ("def causal_mask(length):\n    raise NotImplementedError('of uint32')\n",
     1, r"raises NotImplementedError \(of uint32\)"),
    ("def causal_mask(length):\n    raise SystemExit(3)\n", 1,
     "raises SystemExit"),
    ("def causal_mask(a, b):\n    return a\n", 1, "raises TypeError"),
    ("def causal_mask(length):\n    return None\n", 1,
     "not an array but NoneType"),
    ("def causal_mask(length):\n    import numpy\n"
     "    return numpy.ones((length, length), bool)\n", 1,
     r"shape \[1, 1\], not \[1, 1, 1, 1\]"),
    ("def mask(length):\n    return 1\n", 2,
     "no function 'causal_mask', but mask; keep the name"),
    ("causal_mask = 1\n", 2, "no function 'causal_mask'; keep"),
    ("def causal_mask(length)\n", 2,
     r"line 1, cannot be run: it raises SyntaxError \(expected ':'\)"),
    ("import nowhere_at_all\n", 2, "ModuleNotFoundError"),
    ("", 2, "no function"),
    ("import numpy\ndef causal_mask(length):\n    return numpy.ma.array(\n"
     "        numpy.ones((1, 1, length, length), bool), mask=True)\n", 1,
     "not an array but MaskedArray; a plain NumPy array"),
    ("import numpy\ndef causal_mask(length):\n"
     "    return numpy.matrix([[True]])\n", 1, "not an array but matrix"),
    ("from reference_numpy.masks import causal_mask\n", 1,
     "not judged: the answer imports reference_numpy, transformer_contract"),
    ("import importlib\ndef causal_mask(length):\n    return importlib."
     "import_module('reference_numpy.masks').causal_mask(length)\n", 1,
     "not judged: the answer imports"),
    ("def causal_mask(length):\n    import os, json\n    for fd in range(9):\n"
     "        try:\n            os.ftruncate(fd, 0)\n            os.write(fd, "
     "json.dumps({'status': 0, 'text': 'right', 'answers': [], 'stage':"
     "'run', 'words': '4.1 is right\\x1b[2J'}).encode())\n"
     "        except OSError:\n            pass\n    os._exit(0)\n", 2,
     r"cannot be run: it raises 4.1 is right\\x1b\[2J"),
    ("import os\nos._exit(3)\n", 1, r"ended its process \(status 3\)"),
    ("import numpy\nnumpy.tri = numpy.array_equal = numpy.ones\n"
     "def causal_mask(length):\n"
     "    return numpy.ones((1, 1, length, length), bool)\n", 1,
     "“no causal mask”"),
    ("class Bad(Exception):\n    def __str__(self):\n        raise self\n"
     "def causal_mask(length):\n    raise Bad\n", 1, "raises Bad"),
    ("class Bad:\n    def __repr__(self):\n        raise self\n"
     "def causal_mask(length):\n    return Bad()\n", 1, "array but Bad"),
    ("def causal_mask(length):\n    raise KeyboardInterrupt\n", 1,
     "raises KeyboardInterrupt on inputs 1"),
    ("raise GeneratorExit\n", 2, "raises GeneratorExit"),
    ("def causal_mask(length):\n    a = []\n    a.append(a)\n"
     "    return a\n", 1, "not an array but list"),
    ("def causal_mask(length):\n    import numpy\n    return numpy."
     "broadcast_to(True, (10**9, 10**8))\n", 1, r"shape \[1000000000, "),
    ("import builtins, json\njson.dumps = builtins.open = None\n"
     "def causal_mask(length):\n    return 1\n", 1, "ended its process"),
    ("import sys\nsys.setrecursionlimit(50)\ndef causal_mask(length):\n"
     "    return causal_mask(length)\n", 1, "raises RecursionError"),
    ("def causal_mask(length):\n    import os\n    os.kill(os.getpid(), 9)\n",
     1, "ended its process"),
    ("def causal_mask(length):\n    return causal_mask\n", 1,
     "not an array but function"),
    ("class causal_mask:\n    def __init__(self, length):\n        pass\n", 1,
     "not an array but causal_mask"),
    ("def causal_mask(length):\n    a = [0] * 60\n    for _ in 'abcdef':\n"
     "        a = [a] * 60\n    return a\n", 1, "not an array but list"),
    ("def causal_mask(length):\n    return 10**5000\n", 1,
     "not an array but int"),
])
def test_bad_answers_are_told_in_a_sentence(
        tmp_path, capfd, text, status, words):
    exercise = exercises()["4.1"]
    slow = answer.SECONDS if "while" not in text else 1
    found, sentence = answer.verdict(exercise, written(tmp_path, text), slow)
    assert found == status
    assert re.search(words, sentence)
    assert sentence.isprintable() and len(sentence) < 600
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("text", [
    "\ufeff", "import numpy\nnumpy.seterr(all='raise')\n",
    "import warnings\nwarnings.simplefilter('error')\n",
    "import dataclasses\n@dataclasses.dataclass\nclass A:\n    b: int\n",
    "import threading, time\nthreading.Thread(target=time.sleep, args=(99,)"
    ").start()\n",
    "import helper\n",
])
def test_right_answers_pass_whatever_stands_before(tmp_path, text):
    """And beside them: files and a folder that are called as modules are."""
    for name in "copy", "random", "token", "json", "numpy":
        (tmp_path / f"{name}.py").write_text("raise ValueError\n")
    (tmp_path / "transformer_contract").mkdir()
    (tmp_path / "transformer_contract" / "__init__.py").write_text(
        "raise ValueError\n")
    (tmp_path / "helper.py").write_text("")
    text += ("" if text == "\ufeff" else
             "from __future__ import annotations\n")
    source = text.partition("from __future__")
    path = written(tmp_path, "".join(source[1:]) + source[0]
                   + MASK.read_text("utf-8"))
    assert answer.verdict(exercises()["4.1"], path)[0] == judge.RIGHT


@pytest.mark.parametrize("number", ["4.3", "8.3", "11.1", "7.2"])
def test_solutions_pass_in_a_process(number, tmp_path):
    """Those that call a function of ours, where all that is odd raises."""
    text = (SOLUTIONS / exercises()[number].file).read_text("utf-8")
    path = written(tmp_path, "import warnings\nimport numpy\n"
                   "warnings.simplefilter('error')\n"
                   "numpy.seterr(all='raise')\n" + text)
    status, words = answer.verdict(exercises()[number], path)
    assert status == judge.RIGHT, words


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_told_end_ends_the_answer(tmp_path, name):
    """No process and no file is left."""
    path = written(tmp_path, "import os, pathlib\npathlib.Path(__file__)"
                   ".with_name('pid').write_text(str(os.getpid()))\n"
                   "while True:\n    pass\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "parity", "exercise", "4.1", str(path)],
        # a shell's nohup hands on that it is ignored
        preexec_fn=lambda: signal.signal(
            getattr(signal, name), signal.SIG_DFL),
        env=os.environ | {"PYTHONPATH": str(PACKAGES),
                          "TMPDIR": str(tmp_path)})
    pid = waited(lambda: (tmp_path / "pid").read_text())
    process.send_signal(getattr(signal, name))
    assert process.wait(20) == 128 + getattr(signal, name)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
    assert {each.name for each in tmp_path.iterdir()} == {"answer.py", "pid"}


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX")
@pytest.mark.parametrize("line", ["pass", "time.sleep(1)"])
def test_an_answer_ends_by_itself(tmp_path, line):
    """Where nobody is there to end it, and though it ignores what it can."""
    path = written(tmp_path, "import signal, time\n"
                   "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"
                   f"while True:\n    {line}\n")
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "parity.course.answering", "4.1",
         str(path), "1"], stdin=subprocess.DEVNULL, timeout=60,
        env=os.environ | {"PYTHONPATH": str(PACKAGES)})
    assert ended.returncode in (-signal.SIGALRM, -signal.SIGKILL)


def waited(read):
    """What ``read`` returns once it does; a minute at most."""
    for _ in range(600):
        with contextlib.suppress(OSError):
            if value := read():
                return value
        time.sleep(0.1)
    raise TimeoutError


def test_quiet_tells_what_is_wrong(tmp_path, capfd):
    path = written(tmp_path, "print('noise')\n"
                   + (EXERCISES / "4_1.py").read_text("utf-8"))
    done = invoke("--quiet", "exercise", "4.1", path)
    assert done.exit_code == 1 and done.stdout == ""
    assert "causal_mask is not written yet" in done.stderr
    assert invoke("--quiet", "exercise", "4.1", MASK).output == ""
    assert "noise" not in "".join(capfd.readouterr())


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX's files")
@pytest.mark.parametrize("make", [
    pathlib.Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_what_is_no_file_is_not_begun(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)
    make(pathlib.Path("exercise_4_1.py"))
    done = invoke("exercise", "4.1")
    assert done.exit_code == 2 and "is no file; move it" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX's folders")
def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    done = invoke("exercise", "4.1")
    assert done.exit_code == 2 and "cannot be written here" in done.stderr
    assert invoke("exercise", "4.1", MASK).exit_code == 0


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed = invoke("exercise")
    assert listed.exit_code == 0
    assert listed.output.count("\n") == len(exercises()) + 3
    assert "1.1, 7.2 and 9.2 have no arrays" in listed.output
    begun = invoke("exercise", "4.1")
    assert begun.exit_code == 0 and "True means" in begun.output
    path = tmp_path / "exercise_4_1.py"
    assert path.read_text("utf-8") == exercises()["4.1"].start
    unwritten = invoke("exercise", "4.1", path)
    assert unwritten.exit_code == 1
    assert "causal_mask is not written yet" in unwritten.output
    path.write_text("import numpy as np\ndef causal_mask(length):\n"
                    "    return np.tri(length, k=1, dtype=bool)[None, None]\n")
    assert "left as it is" in invoke("exercise", "4.1").output
    assert "np.tri" in path.read_text("utf-8")
    wrong = invoke("exercise", "4.1", path)
    assert wrong.exit_code == 1
    assert "On inputs 2 of 4, length 2: " in wrong.output
    assert "  got       True  True\n  expected  True False\n" in (
        wrong.output)
    assert "off by one" not in wrong.output and "--hint" in wrong.output
    wrong = invoke("exercise", "4.1", path, "--hint", "--solution")
    assert "“causal mask off by one, to the future”" in wrong.output
    assert "# numpy" not in wrong.output
    right = invoke("exercise", "4.1", SOLUTIONS / "4_1.py")
    assert right.exit_code == 0 and "4.1 is right" in right.output
    assert "Next: parity exercise 4.2   " in right.output
    assert "jnp.tri" not in right.output
    assert "ours in each framework" in right.output
    right = invoke("exercise", "4.1", SOLUTIONS / "4_1.py", "--solution")
    for words in ("# numpy\n", "np.tri(", "# torch\n", "tril()", "# keras\n",
                  "# jax\n", "jnp.tri("):
        assert words in right.output


@pytest.mark.parametrize("number, text, words", [
    ("4.1", "import numpy\ndef causal_mask(length):\n"
     "    return numpy.tri(length, dtype=bool)\n", "Only the shape is wrong"),
    ("4.1", "import numpy\ndef causal_mask(length):\n"
     "    return numpy.tri(length, k=1, dtype=bool)\n", "off by one"),
    ("4.1", "import numpy\ndef causal_mask(length):\n"
     "    mask = numpy.tri(length, dtype=bool)[None, None]\n"
     "    return mask.swapaxes(2, 3) if length == 2 else mask\n",
     "On inputs 2 it gives what a mistake gives, on others it does not. A "
     "known way to get it: the mask is transposed"),
    ("4.3", "def first_leak(run, tokens):\n    tokens[1:] = 0\n"
     "    return 3\n", "It changes 'tokens', which is the caller's"),
    ("4.3", "def first_leak(run, tokens):\n    pass\n",
     "a function returns that ends without 'return'"),
    ("4.1", "import numpy\ndef causal_mask(length):\n"
     "    return numpy.tri(length)[None, None]\n",
     "Only the dtype is wrong: float64 is returned, and bool is asked for."),
    ("3.1", "import numpy as np\ndef attention(query, key, value):\n"
     "    q, k, v = (each.astype('f4') for each in (query, key, value))\n"
     "    e = np.exp(q @ k.T / np.float32(q.shape[-1] ** 0.5))\n"
     "    return e / e.sum(-1, keepdims=True) @ v\n",
     "Only the dtype is wrong: float32 is returned"),
    ("12.3", "def fault_of(sound, faulty):\n    return 'query'\n",
     "'query' is none of the names that the task gives."),
])
def test_a_hint_of_what_is_no_number(number, text, words, tmp_path):
    """A shape, an argument that is changed, nothing, a mistake here alone."""
    found = answer.judged(exercises()[number], written(tmp_path, text))
    assert found.status == judge.WRONG
    assert words in found.hint


def test_a_number_may_be_an_array_without_axes(tmp_path):
    """As frameworks give one."""
    text = (SOLUTIONS / "4_3.py").read_text("utf-8")
    text += ("\n\nimport numpy\nplain = first_leak\n\n\n"
             "def first_leak(run, tokens):\n"
             "    return numpy.array(plain(run, tokens))\n")
    found = answer.judged(exercises()["4.3"], written(tmp_path, text))
    assert found.status == judge.RIGHT, found.sentence


def test_numbers_are_shown_in_digits_that_tell_them_apart():
    truth = np.array([0.5, 0.654497749])
    for answered in truth + [0, 4e-9], truth.astype(np.float32):
        got, right = judge.numbers_of(answered, truth).splitlines()[1:]
        assert got.split()[1:] != right.split()[1:]


def test_no_factor_where_there_is_none(tmp_path):
    """Numbers that are far too large are no multiple, whatever the error."""
    text = ("import numpy as np\ndef to_bfloat16(x):\n"
            "    return x.view(np.uint32).astype(np.float32)\n")
    found = answer.judged(exercises()["12.1"], written(tmp_path, text))
    assert found.status == judge.WRONG
    assert found.hint == "" and found.unknown


def test_a_factor_is_told_without_causes_of_other_lessons():
    """Half of what is right is 1/√4 of it, as other lessons' mistakes are."""
    truth = np.linspace(1, 2, 8).reshape(2, 4)
    words = judge.hint(truth / 2, truth, 1e-12)
    assert "a constant factor: your answer is 0.5 times" in words
    assert "“" not in words


def test_a_loop_in_a_framework_ends_in_its_own_seconds(tmp_path):
    """Not in those that the framework's import may take."""
    if ports.absent("torch"):
        pytest.skip("not checked: torch is not installed")
    path = written(tmp_path, "import torch\ndef causal_mask(length):\n"
                   "    while True:\n        pass\n")
    begun = time.monotonic()
    found = answer.judged(exercises()["4.1"], path, 1, framework="torch")
    assert "did not end within 1 seconds" in found.sentence
    if hasattr(signal, "setitimer"):
        assert time.monotonic() - begun < answer.IMPORT


def test_another_framework_has_a_file_of_its_own(tmp_path, monkeypatch):
    """One that is begun in NumPy is left, and is not given out for torch's."""
    if ports.absent("torch"):
        pytest.skip("not checked: torch is not installed")
    monkeypatch.chdir(tmp_path)
    assert invoke("exercise", "3.3").exit_code == 0
    for words in "Write your answer into", "was left as it is":
        done = invoke("exercise", "3.3", "--in", "torch")
        assert done.exit_code == 0 and words in done.output
        path = pathlib.Path("torch", "exercise_3_3.py")
        assert f"3.3 {path} --in torch" in done.output
        assert path.read_text("utf-8") == exercises()["3.3"].start_in("torch")
    assert "import numpy" in pathlib.Path("exercise_3_3.py").read_text("utf-8")
    assert invoke("exercise", "3.1").exit_code == 0  # the same for all
    assert "3.1 exercise_3_1.py --in torch" in invoke(
        "exercise", "3.1", "--in", "torch").output


@pytest.mark.parametrize("option", ["--hint", "--solution"])
def test_what_is_said_of_an_answer_needs_one(option):
    done = invoke("exercise", "4.1", option)
    assert done.exit_code == 2 and "name its file" in done.stderr


#: Right numbers, but a library did what the task asks for.
NOT_WRITTEN_OUT = {
    "torch": ("12.1", "import torch\n\n\ndef to_bfloat16(x):\n"
              "    return x.to(torch.bfloat16).float()\n", "bfloat16"),
    "keras": ("12.1", "from keras import ops\n\n\ndef to_bfloat16(x):\n"
              "    return ops.cast(ops.cast(x, 'bfloat16'), 'float32')\n",
              "bfloat16"),
    "jax": ("8.1", "import jax\n\n\n"
            "def softmax_backward(dweights, weights):\n"
            "    return jax.vjp(jax.nn.softmax, jax.numpy.log(weights))[1](\n"
            "        dweights)[0]\n", "vjp"),
    "numpy": ("12.1", "from ml_dtypes import bfloat16 as b\n\n\n"
              "def to_bfloat16(x):\n    return x.astype(b).astype('f4')\n",
              "bfloat16, ml_dtypes")}


@pytest.mark.parametrize("framework", NOT_WRITTEN_OUT)
def test_what_a_library_does_is_no_answer(framework, tmp_path):
    if framework != "numpy" and ports.absent(framework):
        pytest.skip(f"not checked: {framework} is not installed")
    number, text, words = NOT_WRITTEN_OUT[framework]
    found = answer.judged(exercises()[number], written(tmp_path, text),
                          framework=framework)
    assert found.status == judge.WRONG
    assert f"the answer uses {words}, which does what" in found.sentence


def test_names_of_one_s_own_are_no_library_s(tmp_path):
    """A variable called grad, a function that is called as the task's."""
    for one in exercises().values():
        text = (SOLUTIONS / one.file).read_text("utf-8")
        text += "\n\ndef grad(jvp):\n    backward = jvp\n    return backward\n"
        assert not one.without & answering.names_in(text), one.number


def test_what_is_right_is_kept_where_a_person_sits(tmp_path, monkeypatch):
    """And ticked in the lists; scripts leave no file behind."""
    monkeypatch.chdir(tmp_path)
    assert invoke("exercise", "4.1", MASK).exit_code == 0
    assert not list(tmp_path.iterdir())
    assert done.add("4.1") == {"4.1"} == done.add("4.1")
    assert (tmp_path / done.NAME).read_text() == "4.1\n"
    assert "4.1   ✓ A causal mask\n4.2   A masked" in invoke("exercise").output
    assert "exercises 4.1 ✓, 4.2, 4.3" in invoke("lesson").output
    (tmp_path / done.NAME).write_bytes(b"\xff")
    assert done.read() == frozenset()
    assert done.read(tmp_path / "nowhere") == frozenset()


@pytest.mark.parametrize("framework", ports.usual_ports())
def test_an_answer_in_a_framework(framework, tmp_path):
    """Ours is right, and of its arrays; another's arrays are told."""
    if ports.absent(framework):
        pytest.skip(f"not checked: {framework} is not installed")
    exercise, path = exercises()["3.1"], SOLUTIONS / framework / "3_1.py"
    found = answer.judged(exercise, path, framework=framework)
    assert found.status == judge.RIGHT, found
    wrong = written(tmp_path, path.read_text("utf-8").replace(
        " / math.sqrt(query.shape[-1])", ""))
    found = answer.judged(exercise, wrong, framework=framework)
    assert found.status == judge.WRONG
    assert "scores not divided" in found.hint and "got" in found.numbers


def test_what_has_arrays_is_offered_in_each_framework(tmp_path, monkeypatch):
    """And nothing else; what is to be repaired begins with its own code."""
    monkeypatch.chdir(tmp_path)
    alone = [number for number, one in exercises().items()
             if not one.of_arrays]
    assert alone == ["1.1", "7.2", "9.2"]
    done = invoke("exercise", "7.2", "--in", "torch")
    assert done.exit_code == 2 and "leave --in away" in done.output
    for name in ports.usual_ports():
        assert {path.name for path in (SOLUTIONS / name).glob("*.py")} == {
            one.file for one in exercises().values() if one.of_arrays}
        for path in (EXERCISES / name).glob("*.py"):
            one = exercises()[path.stem.replace("_", ".")]
            start = one.start_in(name)
            assert one.task.partition("\n")[0] in start
            assert path.read_text("utf-8") in start
            assert "import numpy" not in start and "import numpy" in one.start


@pytest.mark.long(24)
@pytest.mark.parametrize("framework", ports.usual_ports())
def test_answers_in_a_framework(framework):
    """Ours are right; wrong ones are told, and known mistakes by their names.
    """
    if ports.absent(framework):
        pytest.skip(f"not checked: {framework} is not installed")
    told = json.loads(printed(
        "-m", "parity_tests.support.exercises", framework).splitlines()[-1])
    assert [*told] == [number for number, one in exercises().items()
                       if one.of_arrays]
    for number, found in told.items():
        assert found["right"][0] == judge.RIGHT, (number, found["right"])
        assert found["begun"][0] == judge.WRONG, (number, found["begun"])
        assert found["kept"][0] == judge.WRONG, (number, found["kept"])
        assert "is not right yet" in found["kept"][1], (number, found["kept"])
        for name, (status, words) in found["mistakes"].items():
            assert status == judge.WRONG and name in words, (number, name)


@pytest.mark.parametrize("words, said", [
    (["--in", "fortran"], "framework 'fortran' is unknown"),
    (["--csv", "a.csv"], "name its folder"),
    (["4.1", "--class", "."], "leave the number away"),
    (["--class", "nowhere"], "there is no folder 'nowhere'"),
    (["--class", "."], "has no answer")])
def test_what_cannot_be_asked_is_told(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    done = invoke("exercise", *words)
    assert done.exit_code == 2 and said in done.output


def test_a_class_is_marked(tmp_path):
    """Whose an answer is says its name or its folder; formulas are none."""
    (tmp_path / "=ben").mkdir()
    (tmp_path / "anna_exercise_4_1.py").write_text(MASK.read_text("utf-8"))
    (tmp_path / "=ben" / "exercise_4_1.py").write_text("x = 1\n")
    (tmp_path / "=ben" / "4_1.py").write_text(
        MASK.read_text("utf-8").replace("length,", "length, k=1,"))
    (tmp_path / "=ben" / "notes.py").write_text("")
    table = tmp_path / "marks.csv"
    done = invoke("exercise", "--class", tmp_path, "--csv", table)
    assert done.exit_code == 0
    assert "anna             4.1   right\n" in done.output
    assert "1 of 3 answers right" in done.output
    with table.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["who", "exercise", "verdict", "why", "file"]
    assert [row[:3] for row in rows[1:]] == [
        ["'=ben", "4.1", "not right"], ["'=ben", "4.1", "cannot be used"],
        ["anna", "4.1", "right"]]
    assert "off by one, to the future" in rows[1][3]


def test_an_answer_is_in_the_framework_that_it_imports(tmp_path):
    """Unless told otherwise; a task without arrays is in none."""
    def of(number, text):
        return frameworks.of_answer(exercises()[number],
                                    written(tmp_path, text))
    assert of("3.1", "import numpy as np\nimport jax.numpy as jnp\n") == "jax"
    assert of("3.1", "from keras import ops\n") == "keras"
    assert of("3.1", "def f():\n    import torch\n") == "torch"
    assert of("3.1", "from . import torch\nimport torchvision\n") == "numpy"
    assert of("3.1", "import jax ha\n") == of("3.1", "") == "numpy"
    assert of("7.2", "import torch\n") == "numpy"


@pytest.mark.long(4)
def test_a_class_answers_in_any_framework(tmp_path):
    """Those that are not here cannot be used, and all the others are judged."""
    for name in ports.usual_ports():
        (tmp_path / name).mkdir()
        shutil.copy(SOLUTIONS / name / "3_1.py", tmp_path / name)
    done = invoke("exercise", "--class", tmp_path)
    for name in ports.usual_ports():
        told = "cannot be used" if ports.absent(name) else "right\n"
        assert f"{name:16} 3.1   {told}" in done.output


@pytest.mark.long(4)
def test_a_wrong_answer_says_whose_arrays_it_was_given(tmp_path):
    pytest.importorskip("torch", reason="not checked: torch is not installed")
    path = written(tmp_path, "import torch\n\n\ndef causal_mask(length):\n"
                   "    return torch.ones(1, 1, length, length)\n")
    told = invoke("exercise", "4.1", path).output
    assert "The file imports torch, so that its arrays were given" in told
    told = invoke("exercise", "4.1", path, "--in", "numpy").output
    assert "not an array but Tensor; a plain NumPy array" in told
    right = invoke("exercise", "4.1", SOLUTIONS / "torch" / "4_1.py").output
    assert "4.1 is right" in right and "4.2 --in torch" in right


@pytest.mark.parametrize("words", [
    ["4.9"], ["four"], ["4.1", "nowhere.py"], ["4.1", "."]])
def test_what_is_not_there_is_told(words):
    done = invoke("exercise", *words)
    assert done.exit_code == 2 and done.output.startswith("parity: ")
