"""One catalogue of causes: each is written down once and used everywhere."""

import re

import numpy as np
import pytest

import parity
from parity.causes import catalogue, page
from parity.diagnosis import proof
from parity.causes.explain import explain
from parity.causes.faults import network
from parity.causes.fit import FAMILIES
from parity.differences import registry
from parity_tests.support.commands import invoke
from parity_tests.support.engines import usable
from parity_tests.support.places import ROOT

CAUSES = catalogue.causes()


def test_names_are_one_each():
    names = [cause.name for cause in CAUSES]
    assert len(set(names)) == len(names)


def test_a_cause_says_what_it_is_and_what_it_cannot_be():
    for cause in CAUSES:
        assert cause.topic and cause.sentence.endswith("."), cause
        assert bool(cause.put) != bool(cause.not_put), cause
        assert not cause.put or cause.case and cause.step, cause
        if not cause.equivalent:
            assert cause.explained != bool(cause.not_explained), cause
            assert not cause.explained or cause.of, cause


def test_no_two_causes_are_one():
    """Nor is the same told by two names where nothing tells them apart.

    A mask is put in two places, and a projection's kernel into one.
    """
    seen = {}
    for cause in CAUSES:
        if cause.explained and "mask" not in cause.of:
            key = (cause.of, str(cause.settings), str(cause.beside))
            assert seen.setdefault(key, cause.name) == cause.name


def toy():
    """A cause that nobody has."""
    return network.of("cube, not relu", "x³.", "cube", lambda x: x**3)


@pytest.mark.long(24)
def test_a_cause_that_is_added_once_is_used_everywhere(port):
    """Put, found and named, explained, hinted at and listed."""
    with catalogue.added(toy()) as cause:
        done = proof.proof(cause, port)  # 1: put into a port
        assert done.right and done.findings[0].causes == (cause,)  # 2: named
        x = np.random.default_rng(0).normal(size=(3, 5))
        with pytest.raises(AssertionError, match="actual is cube of expected"):
            parity.assert_parity(x**3, x)  # 4: hinted at
        assert f"| {cause.name} | {cause.sentence} |" in page.page()  # 5
    assert cause not in catalogue.faults()


def test_it_is_explained_in_anybodys_model():
    """3: a module with an activation that no one had before."""
    usable("torch")
    import torch
    from torch import nn

    class Cube(nn.Module):
        def forward(self, x):
            return x**3

    def made(activation):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 4), activation,
                             nn.Linear(4, 3)).double()
    x = torch.from_numpy(np.random.default_rng(1).normal(size=(2, 4)))
    a, b = (parity.trace(made(each), x) for each in (nn.ReLU(), Cube()))
    with catalogue.added(toy()) as cause:
        told, = explain(parity.compare(a, b), a, b)
        assert (told.cause, told.in_b) == ("activation", "cube")
        assert told.names == {cause.name: "b"}
        assert f"b has “{cause.name}”: {cause.sentence}" in told.text()
    told, = explain(parity.compare(a, b), a, b)
    assert not told.identified


def test_every_wrong_value_is_a_causes():
    """What a comparison tries beside what is sound is the catalogue's."""
    for family in FAMILIES:
        named = [cause for cause in CAUSES
                 if family.name in cause.of and cause.explained]
        assert named, family.name
        for cause in named:
            for value in cause.settings.values():
                assert catalogue.named(family.name, {
                    name: catalogue.alternatives(one)[0]
                    for name, one in cause.settings.items()
                    if name != "any array"} or {"kernel": value},
                    cause.beside)


def test_others_speak_of_causes_by_their_names():
    """Rows of the differences, and the errata."""
    names = {cause.name for cause in CAUSES}
    assert registry.CAUSES.keys() <= registry.REGISTRY.keys()
    assert {name for row in registry.CAUSES.values()
            for name in row} <= names
    errata = (ROOT / "parity" / "reading" / "errata.py").read_text()
    told = re.findall(r'cause="([^"]+)"', errata)
    assert len(told) > 5 and set(told) <= names
    text = (ROOT / "docs" / "differences.md").read_text()
    for row in registry.CAUSES:
        words = registry.causes_in_words(row)
        assert f"`parity check differences {row}` {words}" in text


def test_the_page_is_the_catalogue(tmp_path):
    path = tmp_path / "causes.md"
    done = invoke(
        "check", "faults", "--topic", "layers", "--port", "torch", "--markdown",
        str(path))
    assert done.exit_code in (0, 4), done.output
    assert path.read_text() == page.page()
    assert (ROOT / "docs" / "causes.md").read_text() == page.page()
