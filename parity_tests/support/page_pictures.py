"""The pictures of the site that the documents show, taken in Chromium.

``make pictures`` writes the site and runs this on it.
"""

import pathlib
import sys

from parity_tests.support.browser import Opened, chromium

#: So many colours are enough, and a picture is a third as large.
COLOURS = 128


def take(site, docs):
    """Take each picture of a site's folder into another folder."""
    site, docs = pathlib.Path(site).resolve(), pathlib.Path(docs)
    with chromium() as browser:
        def page(name, **more):
            return Opened(browser, (site / name).as_uri(), **more).page

        one = page("attention.html", width=2000, height=1200)
        save(one, docs / "attention.png", [
            "#tools", "#scaled_dot_product_attention-1",
            "#scaled_dot_product_attention-2"])

        one = page("index.html", height=860)
        one.screenshot(path=docs / "front.png")
        one = page("break.html", height=860)
        one.select_option("#fault", "no causal mask")
        one.screenshot(path=docs / "break.png")
    for name in ("attention", "front", "break"):
        reduce(docs / f"{name}.png")


def save(page, path, parts):
    """Take a picture of some parts of a page, and nothing between them."""
    page.evaluate("""parts => {
        const box = document.createElement("div");
        box.id = "picture";
        box.style.padding = "0 1rem 1rem";
        box.style.width = "1500px";
        for (const part of parts) box.append(document.querySelector(part));
        document.body.replaceChildren(box);
        document.body.style.display = "block";
    }""", parts)
    page.locator("#picture").screenshot(path=path)


def reduce(path):
    """Write a picture anew with few colours."""
    from PIL import Image
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(COLOURS)
    few.save(path, optimize=True)


if __name__ == "__main__":
    take(*sys.argv[1:])
