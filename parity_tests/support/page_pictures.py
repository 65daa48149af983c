"""The pictures of the site that the documents show, taken in Chromium.

``make pictures`` writes the site and runs this on it.
"""

import pathlib
import sys

from parity_tests.support.browser import Opened, chromium

#: So many colours are enough, and a picture is a third as large.
COLOURS = 256


def attention(page):
    """Two steps of attention, in four columns."""
    together(page, ["#tools", "#MultiHeadAttention-4",
                    "#MultiHeadAttention-5"])
    return page.locator("#picture")


def break_it(page):
    """A fault, and where it shows."""
    page.select_option("#fault", "no causal mask")


def heads(page):
    """One layer of one attention, large."""
    for value in ("encoder-self_attention", "decoder-self_attention",
                  "layer-1", "head-3", "head-4"):
        page.uncheck(f"#heads [value={value}]")
    page.locator("#s0-decoder-1-cross_attention").scroll_into_view_if_needed()


def search(page):
    """What a search finds."""
    page.keyboard.press("/")
    page.keyboard.type("causal mask")
    page.wait_for_selector("[role=option]")


def slides(page):
    """A slide, as a class sees it."""
    page.focus("#deck-6 .show button")
    page.keyboard.press("Enter")


#: A picture's name -> the page it shows, what is done there, the window.
PICTURES = {
    "attention": ("attention.html", attention, (2000, 1200)),
    "front": ("index.html", None, (1400, 1080)),
    "break": ("break.html", break_it, (1400, 860)),
    "heads": ("attention-maps.html", heads, (1400, 860)),
    "lens": ("training-curves.html", None, (1400, 860)),
    "search": ("rulings.html", search, (1400, 700)),
    "dialect": ("dialect-llama.html", None, (1400, 1290)),
    "slide": ("slides.html#slide-6-4", slides, (1024, 640)),
}


def take(site, docs):
    """Take each picture of a site's folder into another folder."""
    site, docs = pathlib.Path(site).resolve(), pathlib.Path(docs)
    with chromium() as browser:
        for name, (page, act, (width, height)) in PICTURES.items():
            address = (site / "x").as_uri()[:-1] + page
            with Opened(browser, address, width, height) as one:
                part = act(one.page) if act else None
                (part or one.page).screenshot(path=docs / f"{name}.png")
            reduce(docs / f"{name}.png")


def together(page, parts):
    """Leave some parts of a page, and nothing between them."""
    page.evaluate("""parts => {
        const box = document.createElement("div");
        box.id = "picture";
        box.style.padding = "0 1rem 1rem";
        box.style.width = "1500px";
        for (const part of parts) box.append(document.querySelector(part));
        const main = document.getElementById("main");
        main.replaceChildren(box);  // its width says how many columns fit
        document.body.replaceChildren(main);
        document.body.style.display = "block";
    }""", parts)


def reduce(path):
    """Write a picture anew with few colours."""
    from PIL import Image
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(COLOURS)
    few.save(path, optimize=True)


if __name__ == "__main__":
    take(*sys.argv[1:])
