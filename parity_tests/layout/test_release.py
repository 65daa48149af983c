"""What publishes this project: workflows, their commands and permissions."""

import re
import shutil
import subprocess

import pytest

from parity_tests.support.places import ROOT

yaml = pytest.importorskip("yaml", reason="pyyaml comes with the extra test")

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

#: What GitHub knows of a job and of a step; a word that is wrong does nothing.
JOB = {"runs-on", "needs", "environment", "permissions", "strategy", "steps",
       "timeout-minutes"}
STEP = {"uses", "with", "run", "env", "if"}


def read(path):
    """A workflow; YAML reads the key ``on`` as true."""
    made = yaml.safe_load(path.read_text("utf-8"))
    assert {True, "name", "permissions", "jobs"} == made.keys()
    return made


def steps(workflow):
    for job in workflow["jobs"].values():
        yield from job["steps"]


def targets():
    """The targets of the Makefile."""
    return set(re.findall(r"^([\w./-]+):(?!=)", (ROOT / "Makefile").read_text(
        "utf-8"), flags=re.M))


def test_there_are_workflows_for_all_that_is_promised():
    assert [path.stem for path in WORKFLOWS] == [
        "audit", "docs", "nightly", "release", "tests"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_one_that_runs(path):
    workflow = read(path)
    for name, job in workflow["jobs"].items():
        assert job.keys() <= JOB and {"runs-on", "steps"} <= job.keys()
        assert set([job["needs"]] if "needs" in job else []) <= set(
            workflow["jobs"]) - {name}
    for step in steps(workflow):
        assert step.keys() <= STEP and ("uses" in step) != ("run" in step)
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v1)",
                            step.get("uses", "actions/checkout@v4"))
        for words in re.findall(r"^make (.*)$", step.get("run", ""), re.M):
            asked = [word for word in words.split() if "=" not in word]
            assert set(asked) <= targets(), words


@pytest.mark.skipif(shutil.which("actionlint") is None,
                    reason="not checked: actionlint is not installed")
def test_actionlint_finds_nothing():
    """It knows every event, context, expression and usual action."""
    found = subprocess.run(["actionlint", *WORKFLOWS], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert not found.returncode, found.stdout


def test_only_publishing_may_write():
    """A token to publish with is made for one job, and nothing is secret."""
    release = read(ROOT / ".github" / "workflows" / "release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}}
    assert release["permissions"] == {"contents": "read"}
    publish = release["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == "build"
    assert publish["steps"][-1]["uses"].startswith(
        "pypa/gh-action-pypi-publish@")
    assert "permissions" not in release["jobs"]["build"]
    assert not any("secrets." in path.read_text("utf-8")
                   for path in WORKFLOWS)


def test_a_release_is_built_twice_and_audited():
    builds = " ".join(step.get("run", "") for step in steps(
        read(ROOT / ".github" / "workflows" / "release.yml")))
    assert "make dist audit" in builds
    recipe = (ROOT / "Makefile").read_text("utf-8")
    assert "for out in dist dist/again" in recipe
    assert "pip-audit --strict" in recipe
