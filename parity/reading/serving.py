"""The pages, served to this machine alone, and the reader's own text read.

Pages that are there are served at once; others are made behind, by another
process. It listens on 127.0.0.1 and answers only requests that name this
machine as their host: a page of another site, whose name was made to lead here,
gets nothing. Only the files of the site are handed out, by name.
"""

import contextlib
import functools
import http
import http.server
import mimetypes
import pathlib
import sys
import threading
import urllib.parse
import webbrowser

from parity_io.errors import InputError, visible
from parity.reading import articles, live, sentence
from parity.reading.pages import Site
from parity.render import markup

ADDRESS = "127.0.0.1"

#: The hosts that a request may name.
HOSTS = ("localhost", ADDRESS)

#: Where the reader's own text is sent, to be read or with a fault.
READ, BREAK, SENTENCE = "/read-attention", "/break-it", "/sentence.json"

#: The seconds in which a connection may be silent.
SECONDS = 10

#: How long a reader's text is waited for before its place in line is told, and
#: after how long the page then asks again; in seconds.
PATIENCE, AGAIN = 1, 2

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
        values: the model's, as live.Loading or values.Values.

    Attributes:
        progress: while the site is made, how far it is.
    """

    progress = ""

    def __init__(self, folder, values):
        self.folder, self.values = pathlib.Path(folder), values
        self.queue = live.RequestQueue(lambda asked: self.made(*asked))

    @functools.cached_property
    def site(self):
        """What renders pages; made by the thread that reads texts."""
        return Site(self.values)

    def file(self, path):
        """The file of the site that a path names, or None."""
        name = path[1:] or "index.html"
        there = self.folder.iterdir() if self.folder.is_dir() else ()
        return next((one for one in there
                     if one.name == name and one.is_file()), None)

    def waiting(self):
        """The page that stands for those that are still made."""
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
            return self.asked(path, text, fault if path == BREAK else "")
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

    def asked(self, path, text, fault):
        """What a reader asked for, as far as it is there."""
        status, headers = http.HTTPStatus.OK, {
            "Content-Type": ("application/json" if path == SENTENCE
                             else "text/html; charset=utf-8")}
        text, fault = (visible(one.encode("utf-8", "replace").decode())
                       for one in (text, fault))
        try:
            live.ids_of(self.values, text)
            if path == BREAK:
                live.known(fault)
            page, place = self.queue.ask((path, text, fault), PATIENCE)
            if place:
                status = http.HTTPStatus.ACCEPTED
                headers["Retry-After"] = str(AGAIN)
                page = page or self.page(path, text, fault, place=place)
        except InputError as error:
            status = http.HTTPStatus.BAD_REQUEST
            page = self.page(path, text, fault, problem=str(error))
        return status, headers, page

    def made(self, path, text, fault):
        """Yield the page of a text that is read, or read with a fault."""
        if path == SENTENCE:
            yield sentence.as_json(sentence.read(self.values, text)).encode()
            return
        if path == BREAK:
            yield self.page(path, text, fault,
                            **live.broken(self.values, fault, text))
            return
        for figures, told in live.attention(self.values, text):
            yield self.page(path, text, fault, sentences=[figures], told=told)

    def page(self, path, text, fault, problem="", place=0, **more):
        """A page of a text, as bytes; for the front page as JSON."""
        if path == SENTENCE:
            return sentence.as_json({"problem": problem}).encode()
        self.site.environment.globals.update(versions=self.values.versions())
        if path == BREAK:
            html = self.site.render(
                "break.html", "break.html", "Break it",
                **{"faults": (), **more},
                **articles.shown_broken(self.site, fault, text, problem,
                                        place))
        else:
            html = self.site.render(
                "attention-maps.html", "attention-maps.html",
                "Attention maps", **{"sentences": (), "told": {}, **more},
                asked=text, problem=problem, place=place)
        return answering(html.encode("utf-8", "replace"))


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
        if browser:
            threading.Thread(target=show, args=[address], daemon=True).start()
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
