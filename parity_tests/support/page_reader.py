"""What stands on a page of HTML."""

import html.parser


class PageReader(html.parser.HTMLParser):
    """Collects ids, links, words, and what is fetched from elsewhere.

    Attributes:
        images: what each picture is described by, or None.
        texts: the words between tags.
    """

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.fetched, self.tags = [], [], [], []
        self.images, self.texts = [], []
        self.feed(text)

    @property
    def words(self):
        """All words."""
        return "".join(self.texts)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag == "img":
            self.images.append(given.get("alt"))
        self.fetched += [
            value for name, value in given.items()
            if name in ("src", "srcset", "data", "action") or (
                name == "href" and tag != "a")]

    def handle_data(self, data):
        self.texts.append(data)
