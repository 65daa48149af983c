"""The pages, served to this machine alone.

Pages that are there are served at once, before what reads the reader's own
texts is imported; others are made behind, by another process. It listens on
127.0.0.1 and answers only requests that name this machine as their host: a page
of another site, whose name was made to lead here, gets nothing. Only the files
of the site are handed out, by name.
"""

import contextlib
import http
import http.server
import mimetypes
import pathlib
import sys
import threading
import urllib.parse
import webbrowser

from parity_io.errors import InputError

ADDRESS = "127.0.0.1"

#: The hosts that a request may name.
HOSTS = ("localhost", ADDRESS)

#: Where the reader's own text is sent, to be read or with a fault.
READ, BREAK, SENTENCE = "/read-attention", "/break-it", "/sentence.json"

#: The seconds in which a connection may be silent.
SECONDS = 10

#: After how many seconds a page that is waited for asks again.
AGAIN = 2

HEADERS = {
    "Content-Security-Policy":
        "default-src 'none'; img-src 'self' data:; style-src 'self' "
        "'unsafe-inline'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def is_ours(host):
    """Whether a Host header names this machine, with or without a port."""
    if not host or "@" in host:
        return False
    name, colon, port = host.strip().lower().rpartition(":")
    if not colon:
        name, port = port, "0"
    return name in HOSTS and port.isascii() and port.isdigit()


class Reading:
    """What the server answers with: the site's files, and live attention.

    Args:
        folder: of the site, which may still be made.
        answers: a function that imports what answers texts, and returns it, as
            asking.TextAnswers. It takes seconds, which no page waits for.

    Attributes:
        progress: while the site is made, how far it is.
    """

    progress = ""

    def __init__(self, folder, answers):
        self.folder, self._make = pathlib.Path(folder), answers
        self._answers, self._lock = None, threading.Lock()

    def answers(self):
        """What answers texts, once it is imported."""
        with self._lock:
            self._answers = self._answers or self._make()
            return self._answers

    def file(self, path):
        """The file of the site that a path names, or None."""
        name = path[1:] or "index.html"
        there = self.folder.iterdir() if self.folder.is_dir() else ()
        return next((one for one in there
                     if one.name == name and one.is_file()), None)

    def waiting(self):
        """The page that stands for those that are still made."""
        from parity.render import markup
        page = markup.environment().get_template("making.html").render(
            progress=self.progress)
        return (http.HTTPStatus.ACCEPTED, {
            "Content-Type": "text/html; charset=utf-8",
            "Refresh": str(AGAIN)}, page.encode())

    def answer(self, target):
        """(status, headers, bytes) for the target of a GET."""
        try:
            parts = urllib.parse.urlsplit(target)
            path = urllib.parse.unquote(parts.path)
            query = urllib.parse.parse_qs(parts.query, errors="replace")
            text, fault = (query.get(name, [""])[0].strip()
                           for name in ("text", "fault"))
        except ValueError:
            return plain(http.HTTPStatus.BAD_REQUEST,
                         "This is no address of a page.")
        if path in (READ, BREAK, SENTENCE):
            return self.answers().asked(
                path, text, fault if path == BREAK else "")
        file = self.file(path)
        if file is None and self.progress and (
                path == "/" or path.endswith(".html")):
            return self.waiting()
        if file is None:
            return plain(http.HTTPStatus.NOT_FOUND, "There is no such page.")
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        if kind.startswith("text/") or kind.endswith("javascript"):
            kind += "; charset=utf-8"
        return (http.HTTPStatus.OK, {"Content-Type": kind},
                answering(file.read_bytes()))


def answering(page):
    """A page's bytes, marked as one behind which models answer."""
    return page.replace(b'<html lang="en">', b'<html lang="en" data-live>', 1)


def plain(status, sentence):
    """An answer of one sentence."""
    return (status, {"Content-Type": "text/plain; charset=utf-8"},
            f"{sentence}\n".encode())


def handler(reading):
    """The request handler of a Reading."""

    class Handler(http.server.BaseHTTPRequestHandler):
        server_version, sys_version = "parity", ""
        timeout = SECONDS
        default_request_version = "HTTP/1.0"  # an answer has its status

        def do_GET(self):
            """Answer, body and all."""
            self._answer(body=True)

        def do_HEAD(self):
            """Answer without the body."""
            self._answer(body=False)

        def _answer(self, body):
            if not is_ours(self.headers.get("Host")):
                reply = plain(http.HTTPStatus.FORBIDDEN,
                              "Only localhost and 127.0.0.1 are served.")
            else:
                reply = reading.answer(self.path)
            status, headers, data = reply
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data)

        def end_headers(self):
            """Every answer, of an error too, has HEADERS."""
            for name, value in HEADERS.items():
                self.send_header(name, value)
            super().end_headers()

        def log_message(self, *words):
            """Nothing: what is read here is the reader's alone."""

    return Handler


class Server(http.server.ThreadingHTTPServer):
    """Answers each connection by a thread of its own."""

    request_queue_size = 128  # a page's files are asked for together

    def handle_error(self, request, address):
        """Say what went wrong, unless the reader only left."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, address)


def refuse(tcp_port):
    """Raise InputError if a port is taken, before pages are made for it."""
    _listening(tcp_port, None).server_close()


def server(reading, tcp_port):
    """A server of a Reading, not yet running.

    Raises:
        InputError: the port is taken.
    """
    return _listening(tcp_port, handler(reading))


def _listening(tcp_port, answers):
    try:
        return Server((ADDRESS, tcp_port), answers)
    except OSError as error:
        raise InputError(
            f"port {tcp_port} of {ADDRESS} cannot be listened on "
            f"({error.strerror}); choose another with --tcp-port.") from None


def show(address):
    """Open the reader's browser, unless it would take this terminal."""
    with contextlib.suppress(webbrowser.Error):
        browser = webbrowser.get()
        if (not isinstance(browser, webbrowser.GenericBrowser)
                or isinstance(browser, webbrowser.BackgroundBrowser)):
            browser.open(address)


def serve(reading, tcp_port, browser=False):
    """Serve a Reading until Ctrl-C; open a browser if there is to be one."""
    with server(reading, tcp_port) as running:
        address = f"http://{ADDRESS}:{running.server_port}/"
        print(f"serving {address} to this machine alone; Ctrl-C stops it",
              flush=True)
        threading.Thread(target=reading.answers, daemon=True).start()
        if browser:
            threading.Thread(target=show, args=[address], daemon=True).start()
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
