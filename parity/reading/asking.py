"""The reader's own text, answered by a page."""

import functools
import http

from parity_io.errors import InputError, visible
from parity.reading import articles, live, sentence
from parity.reading.pages import Site
from parity.reading.serving import AGAIN, BREAK, SENTENCE, answering

#: How many seconds a reader's text is waited for before its place in line is
#: told.
PATIENCE = 1


class TextAnswers:
    """What the models make of a text, as pages.

    Args:
        values: the model's, as live.Loading or values.Values.
    """

    def __init__(self, values):
        self.values = values
        self.queue = live.RequestQueue(lambda asked: self.made(*asked))

    @functools.cached_property
    def site(self):
        """What renders pages; made by the thread that reads texts."""
        return Site(self.values)

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
