"""A server of one page, and what asks it."""

import asyncio
import contextlib
import sys
import threading
import time

import pytest

from parity.reading import asking, live, serving


class Pages(asking.TextAnswers):
    """Answers of one page, whose texts take a moment each."""

    def made(self, path, text, fault):
        """Yield the page of a text."""
        time.sleep(0.01)
        if text == "broken":
            raise ZeroDivisionError
        yield f"read {text}".encode()

    def page(self, path, text, fault, **what):
        """What stands on a page, as words."""
        return f"{text}: {what}".encode()


class Watched(serving.Server):
    """A server that remembers its own mistakes."""

    def __init__(self, *args):
        super().__init__(*args)
        self.mistakes = []

    def handle_error(self, request, address):
        """Remember what is no reader's doing."""
        if not isinstance(sys.exc_info()[1], OSError):
            self.mistakes.append(sys.exc_info()[1])
        super().handle_error(request, address)


@contextlib.contextmanager
def started(folder):
    """A running server that ends a silent connection after 2 seconds."""
    (folder / "index.html").write_text("the page " * 10_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "SECONDS", 2)
        patch.setattr(live, "ids_of", lambda values, text: [])
        with Watched((serving.ADDRESS, 0),
                     serving.handler(serving.Reading(
                         folder, lambda: Pages(None)))) as made:
            thread = threading.Thread(
                target=made.serve_forever, args=[0.1], daemon=True)
            thread.start()
            yield made
            made.shutdown()
            thread.join()


async def asked(server, content, end=False):
    """What comes back for these bytes, which may be all that is sent."""
    reader, writer = await asyncio.open_connection(*server.server_address)
    writer.write(content)
    with contextlib.suppress(OSError):  # it is ended from there
        if end:
            writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer
    return b""


def request(target):
    """A request as a browser sends it."""
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def status(answer):
    """The status of an answer."""
    return int(answer.split(None, 2)[1])
