"""The pages, served to this machine alone, and the reader's own text read.

It listens on 127.0.0.1 and answers only requests that name this machine as
their host: a page of another site, whose name was made to lead here, gets
nothing. Only the files of the site are handed out, by name.
"""

import http
import http.server
import mimetypes
import pathlib
import threading
import urllib.parse
import warnings

from contract.batch import Batch
from contract.errors import InputError
from contract.generation import GenerationConfig
from parity.check.run import LONGEST
from parity.reading.pages import Site
from parity.reading.tree import tree_of
from parity.reading.values import ModelRun
from parity.render.maps import figures

ADDRESS = "127.0.0.1"

#: The hosts that a request may name.
HOSTS = ("localhost", ADDRESS)

#: Where the reader's own text is sent, and how long it may be.
READ, MOST = "/read-attention", 80

#: Sources are padded to one of these lengths, so that a framework that
#: prepares itself for each shape does so seldom.
LENGTHS = (16, 32, 64)

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
        self.lock = threading.Lock()  # the models' traces are one at a time

    def answer(self, target):
        """(status, content type, bytes) for the target of a GET."""
        parts = urllib.parse.urlsplit(target)
        if parts.path == READ:
            texts = urllib.parse.parse_qs(
                parts.query, errors="replace").get("text", [""])
            return self.attention(texts[0].strip())
        path = self.files.get(urllib.parse.unquote(parts.path))
        if path is None:
            return (http.HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8",
                    b"There is no such page.\n")
        kind = mimetypes.guess_type(path.name)[0] or "text/plain"
        if kind.startswith("text/") or kind.endswith("javascript"):
            kind += "; charset=utf-8"
        return http.HTTPStatus.OK, kind, path.read_bytes()

    def attention(self, text):
        """The page of the attention of a text."""
        status, sentences, problem = http.HTTPStatus.OK, [], ""
        try:
            with self.lock, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                sentences = [self.read(text)]
        except InputError as error:
            status, problem = http.HTTPStatus.BAD_REQUEST, str(error)
        html = self.site.render(
            "attention-maps.html", "attention-maps.html", "Attention maps",
            sentences=sentences, asked=text, problem=problem)
        return status, "text/html; charset=utf-8", html.encode(
            "utf-8", "replace")

    def read(self, text):
        """The figures of a text: what the model answers and looks at.

        Raises:
            InputError: there is no text, or too much of it.
        """
        values = self.values
        tokenizer, config = values.tokenizer, values.config
        if not text:
            raise InputError("there is no text; write a date.")
        if len(text) > MOST:
            raise InputError(
                f"the text has {len(text)} characters; give at most {MOST}.")
        text = text.encode("utf-8", "replace").decode()
        ids = tokenizer.encode(text)
        if len(ids) > config.max_length:
            raise InputError(
                f"the text has {len(ids)} tokens, but the model reads "
                f"{config.max_length}; give a shorter one.")
        length = next(n for n in (*LENGTHS, config.max_length)
                      if len(ids) <= n)
        source = tokenizer.pad([ids], length=length)
        engine = values.engines["numpy"]
        tokens = engine.generate(
            values.models["numpy"], source, GenerationConfig(
                bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
                max_tokens=LONGEST))["tokens"][0]
        read = tokens[:, :-1].copy()
        read[read == tokenizer.eos_id] = config.pad_id
        run = ModelRun(values.engines, config, values.weights,
                       Batch.of_ids(source, read, config.pad_id),
                       models=values.models)
        return figures(run, tokenizer, 0, text,
                       tokenizer.decode(tokens[0]), 0) | {
                           "tree": tree_of(values, text)}


def handler(reading):
    """The request handler of a Reading."""

    class Handler(http.server.BaseHTTPRequestHandler):
        server_version, sys_version = "parity", ""
        timeout = 30

        def do_GET(self):
            """Answer, body and all."""
            self._answer(body=True)

        def do_HEAD(self):
            """Answer without the body."""
            self._answer(body=False)

        def _answer(self, body):
            if not is_ours(self.headers.get("Host")):
                reply = (http.HTTPStatus.FORBIDDEN,
                         "text/plain; charset=utf-8",
                         b"Only localhost and 127.0.0.1 are served.\n")
            else:
                reply = reading.answer(self.path)
            status, kind, data = reply
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, *words):
            """Nothing: what is read here is the reader's alone."""

    return Handler


def server(folder, values, tcp_port):
    """A server of a site, not yet running.

    Raises:
        InputError: the port is taken.
    """
    try:
        return http.server.ThreadingHTTPServer(
            (ADDRESS, tcp_port), handler(Reading(folder, values)))
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
