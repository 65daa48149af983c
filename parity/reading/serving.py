"""The pages, served to this machine alone, and the reader's own text read.

It listens on 127.0.0.1 and answers only requests that name this machine as
their host: a page of another site, whose name was made to lead here, gets
nothing. Only the files of the site are handed out, by name.
"""

import contextlib
import http
import http.server
import mimetypes
import pathlib
import socket
import sys
import threading
import time
import urllib.parse

from transformer_contract.errors import InputError, visible
from parity.reading import articles, live
from parity.reading.pages import Site

ADDRESS = "127.0.0.1"

#: The hosts that a request may name.
HOSTS = ("localhost", ADDRESS)

#: Where the reader's own text is sent, to be read or with a fault.
READ, BREAK = "/read-attention", "/break-it"

#: How many connections are answered at once, how many more may wait until one
#: is free, and the seconds that one may last from its first byte to its last.
CONNECTIONS, BACKLOG, SECONDS = 128, 512, 10

#: How long a reader's text is waited for before its place in line is told, and
#: after how long the page then asks again, at least; in seconds. About so many
#: texts are read in a second: who is far behind asks less often.
PATIENCE, AGAIN, PACE = 1, 2, 10

HEADERS = {
    "Content-Security-Policy":
        "default-src 'none'; img-src 'self' data:; style-src 'self' "
        "'unsafe-inline'; script-src 'self'; form-action 'self'; "
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
        folder: of the site.
        values: the values.Values that it was made of.
    """

    def __init__(self, folder, values):
        folder = pathlib.Path(folder)
        self.files = {f"/{path.name}": path for path in folder.iterdir()
                      if path.is_file()}
        self.files["/"] = folder / "index.html"
        self.values, self.site = values, Site(values, live=True)
        self.line = live.Line(lambda asked: self.made(*asked))

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
        if path in (READ, BREAK):
            return self.asked(path, text, fault if path == BREAK else "")
        if path not in self.files:
            return plain(http.HTTPStatus.NOT_FOUND, "There is no such page.")
        file = self.files[path]
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        if kind.startswith("text/") or kind.endswith("javascript"):
            kind += "; charset=utf-8"
        return (http.HTTPStatus.OK, {"Content-Type": kind},
                file.read_bytes())

    def asked(self, path, text, fault):
        """What a reader asked for, or its place in line."""
        status, headers = http.HTTPStatus.OK, {
            "Content-Type": "text/html; charset=utf-8"}
        text, fault = (visible(one.encode("utf-8", "replace").decode())
                       for one in (text, fault))
        try:
            live.ids_of(self.values, text)
            if path == BREAK:
                live.known(fault)
            page, place = self.line.ask((path, text, fault), PATIENCE)
            if place:
                status = http.HTTPStatus.ACCEPTED
                headers["Refresh"] = str(max(AGAIN, place // PACE))
                page = self.page(path, text, fault, place=place)
        except InputError as error:
            status = http.HTTPStatus.BAD_REQUEST
            page = self.page(path, text, fault, problem=str(error))
        except live.FullError:
            status = http.HTTPStatus.SERVICE_UNAVAILABLE
            page = self.page(path, text, fault, problem=(
                "too many texts wait; ask again in a minute."))
        return status, headers, page

    def made(self, path, text, fault):
        """The page of a text that was read, or read with a fault."""
        if path == BREAK:
            return self.page(path, text, fault,
                             **live.broken(self.values, fault, text))
        return self.page(path, text, fault,
                         sentences=[live.attention(self.values, text)])

    def page(self, path, text, fault, problem="", place=0, **more):
        """A page of a text, as bytes."""
        if path == BREAK:
            html = self.site.render(
                "break.html", "break.html", "Break it",
                **{"faults": (), **more},
                **articles.shown_broken(self.site, fault, text, problem,
                                        place))
        else:
            html = self.site.render(
                "attention-maps.html", "attention-maps.html",
                "Attention maps", **{"sentences": (), **more}, asked=text,
                problem=problem, place=place)
        return html.encode("utf-8", "replace")


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
    """Answers CONNECTIONS at once, each for SECONDS; BACKLOG more wait."""

    request_queue_size = BACKLOG

    def __init__(self, *args):
        self.free = threading.Semaphore(CONNECTIONS)
        self.ends: dict[socket.socket, float] = {}
        super().__init__(*args)

    def get_request(self):
        """The next connection, once there is room for one more.

        Raises:
            TimeoutError: there is none; the connection still waits.
        """
        if not self.free.acquire(timeout=0.2):
            raise TimeoutError
        try:
            connection, address = super().get_request()
        except OSError:
            self.free.release()
            raise
        self.ends[connection] = time.monotonic() + SECONDS
        return connection, address

    def shutdown_request(self, request):
        """End a connection, and make room for another."""
        super().shutdown_request(request)
        if self.ends.pop(request, None) is not None:
            self.free.release()

    def service_actions(self):
        """End what has lasted too long; its thread then ends by itself."""
        now = time.monotonic()
        for connection, end in list(self.ends.items()):
            if now > end:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request, address):
        """Say what went wrong, unless the reader only left."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, address)


def refuse(tcp_port):
    """Raise InputError if a port is taken, before pages are made for it."""
    _listening(tcp_port, None).server_close()


def server(folder, values, tcp_port):
    """A server of a site, not yet running.

    Raises:
        InputError: the port is taken.
    """
    return _listening(tcp_port, handler(Reading(folder, values)))


def _listening(tcp_port, answers):
    try:
        return Server((ADDRESS, tcp_port), answers)
    except OSError as error:
        raise InputError(
            f"port {tcp_port} of {ADDRESS} cannot be listened on "
            f"({error.strerror}); choose another with --tcp-port.") from None


def serve(folder, values, tcp_port):
    """Serve a site until Ctrl-C."""
    with server(folder, values, tcp_port) as running:
        print(f"serving http://{ADDRESS}:{running.server_port}/ to this "
              "machine alone; Ctrl-C stops it", flush=True)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
