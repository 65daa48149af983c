"""What the documents say of the project: files, links, where things are."""

import ast
import re
import tomllib

import pytest

from parity_tests.support.places import ROOT

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "RULINGS.md", "CHANGELOG.md",
             "weights/README.md", "benchmarks/README.md",
             "docs/SKILL.md", "docs/agents.md", "docs/commands.md",
             "docs/compare.md", "docs/first.md", "docs/match.md",
             "docs/presets.md", "docs/robustness.md", "docs/size.md",
             "docs/systems.md", "docs/training.md", "docs/use.md",
             "docs/versions.md", "lessons/README.md")

#: What a path of this project begins with.
TOP = {path.name for path in ROOT.iterdir()} | {"impl_*"}


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def spans(markdown):
    """The words in `code`, outside of blocks."""
    return [re.sub(r"\s+", " ", word) for word in re.findall(
        "`([^`]+)`", re.sub(r"^```.*?^```", "", markdown, flags=re.M | re.S))]


def paths(markdown):
    """The words in `code` that are paths of this project."""
    return [word for word in spans(markdown)
            if "/" in word and " " not in word and "NAME" not in word
            and word.partition("/")[0] in TOP]


def there(path):
    """The files and folders that a path, or a pattern of one, stands for."""
    return sorted(ROOT.glob(path.rstrip("/")))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_exist(name):
    assert [path for path in paths(text(name)) if not there(path)] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    folder = (ROOT / name).parent
    for link in re.findall(r"\]\(([^)\s]+)\)", text(name)):
        file, _, anchor = link.partition("#")
        if "://" in link:
            continue
        assert (folder / file).exists(), link
        titles = re.findall("^#+ (.+)$", text(name), flags=re.M)
        assert not anchor or anchor in {
            re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")
            for title in titles}, link


def test_packages_stand_in_their_order():
    """As pyproject.toml has it, lowest first; ``__main__`` is the cli's."""
    layout = text("CONTRIBUTING.md").partition("## Where things are")[0]
    packages = re.findall(r"^\| `parity/(\w+)", layout, flags=re.M)
    contracts = tomllib.loads(text("pyproject.toml"))["tool"]["importlinter"][
        "contracts"]
    order = next(each["layers"] for each in contracts if each.get("exhaustive"))
    layers = [name for layer in order for name in layer.split(" | ")]
    assert packages == [name for name in reversed(layers)
                        if name not in ("__main__", "pytest_plugin")]


def where_things_are():
    """The rows of CONTRIBUTING's tables: what, its paths, its names."""
    part = text("CONTRIBUTING.md").partition("## Where things are")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]*)\|$",
                      part.partition("\n## ")[0], flags=re.M)
    return [(what, [span for span in spans(files) if " " not in span],
             spans(names)) for what, files, names in rows if spans(files)]


def defined(path):
    """The functions, classes and constants at the top of a file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            yield from (each.id for target in getattr(
                node, "targets", [getattr(node, "target", None)])
                for each in ast.walk(target) if isinstance(each, ast.Name))


def test_there_are_rows():
    assert len(where_things_are()) == 39


@pytest.mark.parametrize("what, files, names", where_things_are())
def test_a_thing_is_where_it_is_said_to_be(what, files, names):
    """Every path exists; a file has one of the names, and none is left."""
    missing = set(names)
    for pattern in files:
        assert there(pattern), f"{what}: there is no {pattern}"
        for path in there(pattern):
            if path.suffix == ".py":
                here = set(defined(path)) & set(names)
                assert here, f"{what}: none of {names} is in {path}"
                missing -= here
    assert not missing, what
