"""The server of the pages: a class at once, slow and broken connections."""

import asyncio
import socket
import threading
import time
import webbrowser

import pytest

from parity_io.errors import InputError
from parity import ports
from parity.reading import live, serving
from parity_tests.support.commands import invoke
from parity_tests.support.processes import printed
from parity_tests.support.serving import (
    asked, request, started, status)

@pytest.fixture
def running(tmp_path):
    with started(tmp_path) as made:
        yield made


def test_pages_and_texts_are_answered_at_once(running):
    """All are asked for before any is answered."""
    async def everybody():
        return await asyncio.gather(*(asked(running, request(
            "/" if i % 2 else f"/read-attention?text={i}"))
            for i in range(20)))
    answers = asyncio.run(everybody())
    assert {status(answer) for answer in answers[1::2]} == {200}
    assert all(len(answer) > 90_000 for answer in answers[1::2])
    assert {status(answer) for answer in answers[::2]} <= {200, 202}


def test_a_silent_connection_is_ended_and_others_answered(running):
    with socket.create_connection(running.server_address, 9) as silent:
        answer = asyncio.run(asked(running, request("/")))
        assert silent.recv(1) == b""
    assert status(answer) == 200


@pytest.mark.parametrize("line, expected", [
    (b"GET http://[ HTTP/1.1", 400), (b"GET //[::1 HTTP/1.1", 404),
    (b"GET /%00%ff HTTP/1.1", 404), (b"GET /\xff\xfe HTTP/1.1", 404),
    (b"GET / HTTP/9", 400), (b"GET / HTTP/1.1 x", 400), (b"\x16\x03\x01", 400),
    (b"BREW / HTTP/1.1", 501), (b"GET " + b"/" * 70_000 + b" HTTP/1.1", 414),
    (b"GET /?" + b"a&" * 30_000 + b" HTTP/1.1", 200),
    (b"GET /read-attention?text=%ED%A0%80 HTTP/1.1", 200),
    (b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 200, 431)])
def test_malformed_requests_are_refused(running, capfd, line, expected):
    answer = asyncio.run(asked(
        running, line + b"\r\nHost: localhost\r\n\r\n"))
    assert status(answer) == expected
    assert b"default-src 'none'" in answer
    assert capfd.readouterr().err == ""


def test_a_port_that_is_taken_is_told_before_pages_are_made(
        running, tmp_path):
    found = invoke("read", "--serve", "--tcp-port", running.server_port,
                   "--out", tmp_path / "pages")
    assert found.exit_code == 2 and "cannot be listened on" in found.stderr
    assert "Making" not in found.stdout
    assert not (tmp_path / "pages").exists()


def test_a_reader_who_leaves_is_no_error(running, capfd):
    for _ in range(20):
        with socket.create_connection(running.server_address) as link:
            link.sendall(request("/"))
    time.sleep(0.3)
    assert capfd.readouterr().err == ""


def test_texts_are_read_in_order_and_keep_their_place():
    go, read = threading.Event(), []

    def slowly(text):
        go.wait()
        read.append(text)
        yield text.upper()
    line = live.RequestQueue(slowly)
    texts = [f"text {i}" for i in range(20)]
    assert [line.ask(text, 0) for text in texts] == [
        (None, i + 1) for i in range(20)]
    assert line.ask("text 7", 0) == (None, 8)
    go.set()
    assert line.ask(texts[-1], 9) == (texts[-1].upper(), 0)
    assert read == texts and len(line.answers) == len(texts) < live.KEPT


def test_an_answer_is_shown_in_parts():
    go = [threading.Event(), threading.Event()]

    def read(text):
        for part, event in enumerate(go):
            yield part
            event.wait()
    line = live.RequestQueue(read)
    assert line.ask("text", 0.2) == (0, 1)
    go[0].set()
    assert line.ask("text", 0.2) == (1, 1)
    go[1].set()
    assert line.ask("text", 9) == (1, 0) and not line.parts


def test_no_page_waits_for_what_reads_texts():
    """What the first answer of the command needs is imported alone."""
    assert printed("-c", """if True:
        import sys
        import parity.cli, parity.commands.read
        from parity.reading import ready, rebuild, serving, threads
        print({"numpy", "jinja2", "pygments", "rich.console"} & {*sys.modules})
        """) == "set()\n"


def test_pages_that_are_made_are_waited_for(tmp_path):
    reading = serving.Reading(tmp_path / "site", None)
    assert reading.answer("/")[0] == 404
    reading.progress = "3 of 86 pages: masks.html"
    status, headers, page = reading.answer("/attention.html")
    assert status == 202 and headers["Refresh"] == "2"
    assert b"3 of 86 pages" in page
    assert reading.answer("/style.css")[0] == 404
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text('<html lang="en">')
    assert reading.answer("/")[2] == b'<html lang="en" data-live>'


@pytest.mark.parametrize("column, words", [
    ("torch", ""), ("keras", "it was not asked for"),
    ("jax", "it cannot be loaded: no such file")])
def test_ports_load_behind(monkeypatch, column, words):
    """One that cannot be loaded is told, and the others are read."""
    go = threading.Event()

    class Engine:
        set_precision = build = staticmethod(lambda *what: None)

    def engine(name):
        if name == "numpy":
            return real(name)
        go.wait()
        if name == "jax":
            raise OSError("no such file")
        return Engine
    real = ports.engine
    monkeypatch.setattr(ports, "engine", engine)
    loading = live.Loading(("torch", "jax"))
    assert loading.loaded("numpy")[1] and loading.waiting == ["torch", "jax"]
    go.set()
    assert loading.loaded(column) == (None if words else (Engine, None))
    assert loading.not_checked.get(column, "") == words


@pytest.mark.parametrize("kind, opened", [
    (webbrowser.Mozilla, True), (webbrowser.BackgroundBrowser, True),
    (webbrowser.GenericBrowser, False)])
def test_a_browser_in_the_terminal_is_not_opened(monkeypatch, kind, opened):
    asked = []
    monkeypatch.setattr(kind, "open", lambda *given: asked.append(given[1]))
    monkeypatch.setattr(webbrowser, "get", lambda: kind("browser"))
    serving.show("http://127.0.0.1:1/")
    assert asked == ["http://127.0.0.1:1/"] * opened


def test_an_error_goes_to_who_asked():
    line = live.RequestQueue(lambda text: iter([{"right": 1}[text]]))
    with pytest.raises(KeyError):
        line.ask("wrong", 9)
    assert line.ask("right", 9) == (1, 0)


def test_no_text_is_refused_at_once():
    with pytest.raises(InputError, match="no text"):
        live.ids_of(None, "")
