"""Requests of all sorts: each has an answer, and none stops the server."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity_tests.fuzz.test_fuzz_files import mangled
from parity_tests.support.fuzzing import tries
from parity_tests.support.serving import asked, request, started, status

pytestmark = pytest.mark.long

TARGETS = ("/", "/index.html", "/read-attention?text=12+May+2031", "/%00",
           "/read-attention?text=%ff&text=a;b", "http://localhost/", "*", "[")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with started(tmp_path_factory.mktemp("site")) as made:
        yield made


@tries(400)
@given(st.data())
def test_requests(running, data):
    content = mangled(data.draw, request(data.draw(st.sampled_from(TARGETS))))
    answer = asyncio.run(asked(running, content, end=True))
    assert not answer or 200 <= status(answer) < 600
    assert not running.mistakes


def test_it_still_answers(running):
    assert status(asyncio.run(asked(running, request("/")))) == 200
