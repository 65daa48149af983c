"""``make test-versions``: what pyproject.toml promises, installed and run.

Each row is an environment of its own: a Python, the oldest or the pinned
libraries, and one framework, all or none. In it the wheel is installed, and
run in another folder. Rows that are not run keep what the page said of them.

    python -m parity_tests.support.versions PAGE [WORD…]

runs the rows that have every WORD, such as ``3.12 pinned torch``.
"""

import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

PYTHONS, SETS = ("3.11", "3.12", "3.13"), ("pinned", "lowest")
EXTRAS = ("none", "torch", "keras", "jax", "all")

HEAD = """\
# Versions

What `pyproject.toml` promises, tried: in each row an environment of its own,
in it the wheel with that extra, and outside of the checkout `parity doctor`,
`parity translate` and `parity check --preset lesson` in float64 and float32.
*Lowest* are the oldest versions that `pyproject.toml` names, *pinned* those of
`constraints.txt`. `make test-versions` writes this page. The wheel has 27 MB
with its ready pages; an environment with it and PyTorch for processors 1.2 GB.

| Python | libraries | framework | result | installed | date |
|---|---|---|---|---|---|
"""


def rows():
    """Every (Python, set, extra)."""
    return [(python, which, extra) for which in SETS for python in PYTHONS
            for extra in EXTRAS]


def interpreter(python):
    """The path of a Python, "" if it is not here."""
    own = sorted(pathlib.Path.home().glob(
        f".pyenv/versions/{python}.*/bin/python"))
    return str(own[-1]) if own else shutil.which(f"python{python}") or ""


def constraints(which):
    """The lines of a constraints file."""
    if which == "pinned":
        return (ROOT / "constraints.txt").read_text("utf-8")
    project = tomllib.loads(
        (ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    promised = [*project["dependencies"], *(
        need for extra in ("torch", "keras", "jax")
        for need in project["optional-dependencies"][extra])]
    return "\n".join(need.replace(">=", "==") for need in promised)


def said(words, folder, expected=0):
    """The output of a command; raises if its status is not the expected."""
    found = subprocess.run(
        [str(word) for word in words], cwd=folder, capture_output=True,
        text=True, env={key: value for key, value in os.environ.items()
                        if key != "PYTHONPATH"})
    if found.returncode != expected:
        lines = (found.stderr.strip() or found.stdout.strip()).splitlines()
        raise RuntimeError(
            f"{' '.join(map(str, words[1:3]))}: {lines[-1][:150]}")
    return found.stdout


def tried(python, which, extra, wheel, folder):
    """(result, what was installed) of one environment."""
    if not (own := interpreter(python)):
        return f"not checked: Python {python} is not here", ""
    said([own, "-m", "venv", folder / "venv"], folder)
    (folder / "constraints.txt").write_text(constraints(which))
    binary = folder / "venv" / "bin"
    name = wheel if extra == "none" else f"{wheel}[{extra}]"
    try:
        said([binary / "pip", "install", "--quiet", "-c",
              folder / "constraints.txt", name], folder)
        doctor = said([binary / "parity", "doctor"], folder)
        answer = said([binary / "parity", "translate", "20 November 2026",
                       "--port", "numpy" if extra == "none" else extra],
                      folder)
        assert "2026-11-20" in answer, answer
        said([binary / "parity", "check", "--preset", "lesson",
              *(() if extra == "none" else ("--require", {
                  "all": "torch,keras,jax"}.get(extra, extra)))],
             folder, expected=4 if extra == "none" else 0)
    except RuntimeError as error:
        return f"fails: {error}", ""
    here = re.findall(r"^(?:numpy|torch|keras|jax) +(.*); devices", doctor,
                      flags=re.M)
    return "passes", ", ".join(here)


def read(page):
    """{row: the rest of its line} of a page that there may be."""
    lines = page.read_text("utf-8").splitlines() if page.exists() else []
    cells = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in lines if line.startswith("| 3.")]
    return {tuple(row[:3]): row[3:] for row in cells}


def write(page, results):
    """Write the page."""
    page.write_text(HEAD + "".join(
        f"| {' | '.join((*row, *results.get(row, NOT_RUN)))} |\n"
        for row in rows()), "utf-8")


NOT_RUN = ("not checked: not run yet", "", "")


def main(page, *words):
    """Try the rows that have every word, and write the page after each."""
    page = pathlib.Path(page)
    results = read(page)
    with tempfile.TemporaryDirectory() as built:
        said([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
              "-w", built, ROOT], ROOT)
        wheel, = pathlib.Path(built).glob("*.whl")
        for row in rows():
            if not set(words) <= set(row):
                continue
            start = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                result = tried(*row, wheel, pathlib.Path(folder))
            date = datetime.date.today().isoformat()
            results[row] = (*result, date)
            write(page, results)
            print(*row, *result, f"{time.perf_counter() - start:.0f} s",
                  sep="  ", flush=True)
    return int(any(result[0].startswith("fails")
                   for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
