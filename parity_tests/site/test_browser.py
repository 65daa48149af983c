"""The pages in a headless Chromium: looks, touch, keyboard, and silence."""

import json
import re
import shutil
import threading

import pytest

from parity.causes import catalogue
from parity.check import golden
from parity.differences import registry
from parity.reading import (
    asking, breaking, curves, pages, serving, shipped_model, slides, sources,
    values)
from parity_tests.support import page_pictures
from parity_tests.support.browser import Opened, chromium
from parity_tests.support.lessons import alone

#: From a telephone, or a page enlarged four times, to a wide screen; 1024 is a
#: projector's.
WIDTHS = (320, 390, 900, 1024, 1400, 2200)

#: A page of each kind.
KINDS = ("index", "attention", "break", "flow", "attention-maps", "dialects",
         "rulings", "causes", "errata", "variants", "layouts", "lessons",
         "match", "training-curves", "slides",
         "lesson-01-tokens")

#: Each name of the code that stands on more than one line.
BROKEN = """() => {
  const broken = [];
  for (const line of document.querySelectorAll(".cell:not([hidden]) .l")) {
    const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      for (const match of walk.currentNode.data.matchAll(/[\\w.]+/g)) {
        const range = document.createRange();
        range.setStart(walk.currentNode, match.index);
        range.setEnd(walk.currentNode, match.index + match[0].length);
        const tops = new Set([...range.getClientRects()].map(
          (box) => Math.round(box.top)));
        if (tops.size > 1) broken.push(match[0]);
      }
    }
  }
  return broken;
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the pages, with one lesson, and the values on them."""
    folder = tmp_path_factory.mktemp("browser")
    found = values.Values(())
    made = pages.Site(found, call=alone(1))
    for name, html in made.pages():
        (folder / name).write_text(html, encoding="utf-8")
    for name, text in made.assets().items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder, found


@pytest.fixture(scope="module")
def broken(site):
    return breaking.Breaking(site[1])


@pytest.fixture(scope="module")
def browser():
    with chromium() as one:
        yield one


@pytest.fixture
def opened(site, browser):
    """A function that opens a page of the site."""
    made = []

    def go(name, **more):
        address = (site[0] / "x").as_uri()[:-1] + name
        made.append(Opened(browser, address, **more))
        return made[-1]

    yield go
    for one in made:
        one.context.close()


@pytest.mark.long(24)
def test_all_that_a_search_finds_is_there(site):
    folder, found = site
    made = pages.Site(found)
    there = {path.name: set(re.findall(r'\bid="([^"]+)"', path.read_text(
        encoding="utf-8"))) for path in folder.glob("*.html")}
    text = (folder / "index.js").read_text(encoding="utf-8")
    entries = json.loads(text.partition("=")[2].rstrip(";\n"))
    assert {kind for kind, *_ in entries} >= {
        "step", "term", "ruling", "fault", "page", "code"}
    for _, title, _, address in entries:
        page, _, anchor = address.partition("#")
        assert page in there, (title, address)
        assert not anchor or anchor in there[page], (title, address)
    steps = sum(row.kind == "step" for rows in made.rows.values()
                for row in rows)
    assert sum(kind == "step" for kind, *_ in entries) == steps > 40


@pytest.mark.long(8)
def test_faults_show_first_where_the_catalogue_says(site, broken):
    assert broken.answers == [
        site[1].pairs[text] for text in shipped_model.MAPS]
    for one in broken.faults:
        step = catalogue.by_name(one["name"]).step
        if not step.endswith("_mask"):  # which is no step of a model
            assert one["first"].endswith("." + step) or (
                one["topic"] in ("layers", "residual")), one["name"]
        assert one["wrong"] and "float64" not in one["hides"]


def sideways(page):
    """By how many pixels a page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.mark.long(24)
@pytest.mark.parametrize("name", KINDS)
def test_no_page_scrolls_sideways_complains_or_asks_elsewhere(opened, name):
    one = opened(f"{name}.html")
    for width in WIDTHS:
        one.page.set_viewport_size({"width": width, "height": 900})
        one.page.wait_for_timeout(60)
        assert sideways(one.page) <= 0, width
    assert one.errors == []
    assert all(url.startswith(("file:", "data:")) for url in one.requests)
    asked = [url for url in one.requests if url.startswith("file:")]
    assert len(asked) == 3 + (name == "index")  # its sentences


@pytest.mark.long
@pytest.mark.parametrize("path", sources.file_names())
def test_nor_does_any_file(opened, path):
    test_no_page_scrolls_sideways_complains_or_asks_elsewhere(opened, path)
    test_axe_finds_nothing(opened, path, "light")


@pytest.mark.parametrize("width, columns", [
    (390, 1), (900, 4), (1400, 4), (2200, 4)])
def test_code_is_large_and_no_name_is_broken(opened, width, columns):
    page = opened("attention.html", width=width).page
    assert page.evaluate(BROKEN) == []
    assert page.evaluate("""Math.min(...[...document.querySelectorAll(
        "code, pre")].map((one) => parseFloat(getComputedStyle(one).fontSize)
        ))""") >= 14
    shown = page.locator(".row.step").first.locator(".cell:visible").count()
    assert shown >= columns


#: Each formula, number or date that stands on more than one line.
CUT = """() => [...document.querySelectorAll("span.uncut, .eq > span")].filter(
  (one) => one.getClientRects().length > 1
    || one.offsetHeight > 2 * parseFloat(getComputedStyle(one).fontSize)
).map((one) => one.textContent)"""


@pytest.mark.long(4)
@pytest.mark.parametrize("name", ["attention", "loss", "causes", "break"])
@pytest.mark.parametrize("width", [320, 390, 1400])
def test_no_formula_number_or_date_is_cut(opened, name, width):
    page = opened(f"{name}.html", width=width).page
    assert page.evaluate(CUT) == []
    words = page.evaluate("""[...document.querySelectorAll(
        ".says, .prose p")].map((one) => one.textContent).join()""")
    assert not re.search(r"\b(eq\.|section) \d|\[[A-Z]( [A-Z])+\]", words)
    assert name != "break" or "曜日 as 2047" in page.inner_text("#all + p")
    if name == "break" and width > 390:
        names = page.locator(".whole-name")
        assert names.count() and all(  # a step's stands on one line
            one.bounding_box()["height"] < 40 for one in names.all())


@pytest.mark.parametrize("width", [390, 1024, 1400])
def test_no_name_in_a_ruling_is_broken_inside_a_word(opened, width):
    page = opened("rulings.html", width=width).page
    assert page.evaluate("""[...document.querySelectorAll(".ruling code")]
        .flatMap((one) => [...one.childNodes]).filter((text) => {
          const range = document.createRange();
          range.selectNode(text);
          const tops = [...range.getClientRects()].map((box) => box.top);
          return text.data && !text.data.includes(" ")
            && new Set(tops).size > 1;
        }).map((text) => text.data)""") == []


@pytest.mark.parametrize("name, inside", [
    ("causes", ".known .wide"), ("rulings", "main"), ("break", ".scroll")])
def test_what_scrolls_has_a_shadow_at_its_edge(opened, name, inside):
    page = opened(f"{name}.html", width=390).page
    assert page.evaluate("""inside => [...document.querySelectorAll(
        `${inside}, main .scroll`)].filter(
        (one) => one.scrollWidth > one.clientWidth + 1 && !getComputedStyle(
            one).backgroundAttachment.includes("local"))
        .map((one) => one.className)""", inside) == []


def pressed(page):
    """The columns that are shown, as their buttons say."""
    return page.eval_on_selector_all(
        ".pill[aria-pressed=true]", "all => all.map(one => one.dataset.col)")


def test_columns_are_chosen_by_keys_and_kept(opened):
    page = opened("attention.html").page
    before = pressed(page)
    assert before == ["numpy", "torch", "keras", "jax"]
    page.focus("#show-torch")
    page.keyboard.press("Space")
    chosen = [name for name in before if name != "torch"]
    assert pressed(page) == chosen
    assert page.evaluate("document.activeElement.id") == "show-torch"
    page.focus("#order")
    page.keyboard.press("Enter")
    page.focus("#left-jax")
    page.keyboard.press("Enter")
    moved = pressed(page)
    assert sorted(moved) == sorted(chosen) and moved != chosen
    page.reload()
    assert pressed(page) == moved
    page.goto(page.url.replace("attention", "masks"))
    assert pressed(page) == moved


def test_what_is_read_first_is_steps_and_the_rest_behind_switches(opened):
    one = opened("attention.html")
    page = one.page
    hidden = {"arguments": ".row.opening", "gradients": ".row.backward",
              "tests": ".held", "source": ".row.plain:not(:first-child)"}
    for name, rows in hidden.items():
        assert page.locator(f"{rows}:visible").count() == 0
        page.focus(f"[name={name}]")
        page.keyboard.press("Space")
        assert page.locator(f"{rows}:visible").count() > 0
    page.reload()
    assert page.is_checked("[name=gradients]")
    page.select_option("[name=form]", "native")
    assert page.is_visible("#native") and not page.is_visible(".owner")
    assert "nnx.MultiHeadAttention(" in page.inner_text("#native")
    page.select_option("[name=form]", "")
    differs = """[...CSS.highlights.get("differs")].filter(
        (range) => range.startContainer.parentElement.closest("#{}"))
        .map(String)"""
    page.goto(page.url.replace("attention", "layer_norm"))
    assert set(page.evaluate(differs.format("LayerNorm-1"))) >= {
        "np", "torch", "dim", "axis"}
    page.click("#show-numpy")
    page.click("#show-keras")
    assert set(page.evaluate(differs.format("LayerNorm-1"))) == {
        "torch", "jnp", "dim", "axis", "keepdim", "keepdims"}
    assert page.evaluate(differs.format("LayerNorm-2")) == []
    assert one.errors == []


@pytest.mark.parametrize("anchor", [
    "MultiHeadAttention-4-backward", "MultiHeadAttention.split"])
def test_what_an_address_names_is_shown(opened, anchor):
    page = opened(f"attention.html#{anchor}").page
    row = page.locator(f"[id='{anchor}']")
    assert row.is_visible() and row.evaluate(
        "one => one.getBoundingClientRect().top") < 300


def test_one_column_at_a_time_on_a_telephone(opened):
    page = opened("attention.html", width=390).page
    assert pressed(page) == ["numpy"]
    page.click("#show-keras")
    assert pressed(page) == ["keras"]
    assert page.locator(".cell:visible").first.get_attribute(
        "data-col") == "keras"


def test_the_menu_opens_by_keys_on_a_telephone(opened):
    page = opened("attention.html", width=390).page
    assert not page.is_visible("#menu")
    page.focus(".to-menu")
    page.keyboard.press("Enter")
    assert page.is_visible("#menu")
    assert page.get_attribute(".to-menu", "aria-expanded") == "true"
    page.keyboard.press("Escape")
    assert not page.is_visible("#menu")
    assert page.evaluate(
        "document.activeElement.classList.contains('to-menu')")


@pytest.mark.parametrize("words, kind, at", [
    ("attention scores", "step", "attention.html#"),
    ("fully masked", "ruling", "rulings.html#R2"),
    ("bfloat16 softmax", "fault", "causes.html#attention"),
    ("d_model", "term", "")])
def test_search_by_keys(opened, words, kind, at):
    one = opened("index.html")
    page = one.page
    page.keyboard.press("/")
    page.keyboard.type(words)
    page.wait_for_selector("[role=option]")
    option = page.locator("[role=option]", has=page.locator(
        "span", has_text=kind)).first
    number = int(option.get_attribute("id").removeprefix("answer-"))
    for _ in range(number):
        page.keyboard.press("ArrowDown")
    assert page.get_attribute(
        "#asked", "aria-activedescendant") == f"answer-{number}"
    page.keyboard.press("Enter")
    page.wait_for_url("**/*.html#*" if "#" in at else "**/*.html")
    assert at in page.url and page.url != ""
    assert one.errors == []


def found(page, words):
    """What a search finds, and what it says."""
    page.fill("#asked", "")
    page.wait_for_function(
        "document.querySelector('.finder p').textContent === ''")
    page.fill("#asked", words)
    page.wait_for_function(
        "document.querySelector('.finder p').textContent !== ''")
    return (page.locator("[role=option] b").all_inner_texts(),
            page.inner_text(".finder p"))


def test_search_knows_the_words_of_the_field(opened):
    page = opened("index.html").page
    page.keyboard.press("/")
    for words, first in {
            "self-attention": "self-attention", "Multi-head": "multi-head",
            "multihead": "MultiHead", "weight tying": "weight tying",
            "kv cache": "KV cache", "rope": "RoPE", "gqa": "grouped-query",
            "cross attention": "cross-attention",
            "why divide sqrt": "scaled dot-product",
            "layernorm eps flax": "layer norm"}.items():
        assert any(first in one for one in found(page, words)[0]), words
    assert "Did you mean attention?" in found(page, "atention")[1]
    page.click(".finder p button")
    assert page.input_value("#asked") == "attention"
    assert page.locator("[role=option]").count() > 3


def test_search_finds_nothing_and_closes(opened):
    page = opened("attention.html").page
    page.focus(".find")
    page.keyboard.press("Enter")
    page.keyboard.type("<b>qqq</b>")
    page.wait_for_function(
        "document.querySelector('.finder p').textContent.includes('Nothing')")
    assert page.locator("[role=option]").count() == 0
    page.keyboard.press("Escape")
    assert not page.is_visible(".finder")
    assert page.evaluate(
        "document.activeElement.classList.contains('find')")


def test_a_search_without_its_index_says_so(site, browser, tmp_path):
    for name in ("masks.html", "style.css", "script.js"):
        shutil.copy(site[0] / name, tmp_path)
    with Opened(browser, (tmp_path / "masks.html").as_uri()) as one:
        one.page.keyboard.press("/")
        one.page.wait_for_function("document.querySelector('.finder p')"
                                   ".textContent.includes('is missing')")


@pytest.mark.long(4)
@pytest.mark.parametrize("kept", [
    "null", "5", "[]", "{", '{"order": 5, "shown": "x", "tab": {}}',
    '{"shown": ["fortran"], "order": ["fortran", "jax", "jax"]}'])
def test_what_is_kept_may_be_anything(opened, kept):
    one = opened("masks.html", width=390)
    for width in (390, 1400):
        one.page.set_viewport_size({"width": width, "height": 900})
        one.page.evaluate(
            "text => localStorage.setItem('parity-read-columns', text)", kept)
        one.page.reload()
        assert len(pressed(one.page)) == (1 if width == 390 else 4)
    assert one.errors == []
    names = one.page.eval_on_selector_all(
        ".pill", "all => all.map(one => one.dataset.col).sort()")
    assert names == ["jax", "keras", "numpy", "torch"]


@pytest.mark.long(4)
@pytest.mark.parametrize("name", ["attention", "break", "index"])
@pytest.mark.parametrize("anchor", ["%E0%A4%A", "nothing", "<b>x</b>", "'"])
def test_an_address_may_name_anything(opened, name, anchor):
    one = opened(f"{name}.html#{anchor}")
    assert one.errors == []
    if name == "break":
        assert one.page.locator("circle.off").count() > 0


@pytest.mark.parametrize("by", ["pointer", "focus"])
def test_a_steps_partners_light_up(opened, by):
    page = opened("attention.html#MultiHeadAttention-4").page
    row = page.locator("#MultiHeadAttention-4")
    other = page.locator("#MultiHeadAttention-1")
    if by == "pointer":
        row.locator(".cell").first.hover()
    else:
        row.locator("a.anchor").focus()
    assert "lit" in row.get_attribute("class").split()
    assert "lit" not in other.get_attribute("class").split()
    assert row.locator(".symbol").count() == 1
    assert page.locator(".here-map .touched").count() == 3
    background = """one => getComputedStyle(one).backgroundColor"""
    assert row.locator(".l.own").first.evaluate(
        background) != other.locator(".l.own").first.evaluate(background)


def test_a_map_tells_its_values(opened, site):
    page = opened("attention.html#MultiHeadAttention-1").page
    shown = page.locator("#MultiHeadAttention-1 image[data-values]").first
    shown.focus()
    for key in ["ArrowRight"] * 3 + ["ArrowDown"] * 2:
        page.keyboard.press(key)
    name = "encoder.layers.0.self_attention.query"
    value = site[1].dates.steps["numpy"][name][0, 0, 2, 3]
    text = page.inner_text(".map-value").replace("−", "-")
    assert text.startswith("re → 3: ")
    texts = page.locator("#MultiHeadAttention-1 .worded text")
    assert texts.all_text_contents()[:3] == ["ven", "d", "re"]
    assert float(text.split()[-1]) == pytest.approx(value, abs=2e-4)
    page.keyboard.press("Escape")
    assert not page.is_visible(".map-value")


def test_attention_tells_tokens(opened):
    page = opened("attention-maps.html").page
    page.locator("figure image").first.hover(position={"x": 3, "y": 3})
    token, _, rest = page.inner_text(".map-value").partition(" → ")
    assert token and 0 <= float(rest.split(": ")[-1].removesuffix(" %")) <= 100


@pytest.mark.long(4)
def test_heads_and_layers_are_chosen_by_keys_and_kept(opened):
    one = opened("attention-maps.html")
    page = one.page
    maps = page.locator("figure[data-of]:visible")
    every = maps.count()
    assert every == 3 * 6 * 4  # strings, attentions and layers, heads
    for value in ("layer-1", "head-1", "head-2", "head-4"):
        page.focus(f"#heads [value={value}]")
        page.keyboard.press("Space")
    assert maps.count() == every / 2 / 4
    assert page.inner_text("#heads output") == f"{every // 8} of {every} maps"
    assert {maps.nth(i).get_attribute("data-of")
            for i in range(maps.count())} == {"head-3"}
    page.focus("#heads [value=head-3]")
    page.keyboard.press("Space")  # the last head stays
    assert page.is_checked("#heads [value=head-3]")
    page.reload()
    assert maps.count() == every / 8 and sideways(page) <= 0
    page.focus("#heads button")
    page.keyboard.press("Enter")
    assert maps.count() == every
    for kept in ("null", "5", "{", '["head-1", "head-2", "head-3", "head-4"]'):
        page.evaluate(
            "text => localStorage.setItem('parity-read-heads', text)", kept)
        page.reload()
        assert maps.count() == every
    page.uncheck("#heads [value=layer-2]")
    page.goto(page.url + "#s1-decoder-1-cross_attention")
    assert page.is_visible("#s1-decoder-1-cross_attention")
    assert one.errors == []


def test_the_lens_shows_where_float32_parts(opened):
    one = opened("training-curves.html")
    page = one.page
    losses, _ = curves.read(golden.FOLDER / "dates.curves.tsv")
    gaps = curves.gaps(losses)
    limit, steps = curves.apart(losses)[2]
    first = min(steps.values())
    page.focus(f"#lens button[value='{first}']")
    page.keyboard.press("Enter")
    assert page.input_value("#at-step") == str(first)
    away = page.locator("#lens-table td:last-child").all_inner_texts()
    assert [float(text.replace("−", "-")) for text in away[1:]] == [
        pytest.approx(gaps[column][first - 1], rel=0.06) for column in gaps]
    assert max(gaps[column][first - 1] for column in gaps) > limit
    assert all(max(gaps[column][:first - 1]) <= limit for column in gaps)
    assert page.locator("#lens-table b").nth(0).inner_text() == ""
    page.focus("#at-step")
    page.keyboard.press("Home")
    assert page.inner_text("#step-number") == "1"
    page.keyboard.press("End")
    assert "At step 4000 the runs" in page.inner_text("#lens-told")
    assert page.locator("#loss-chart .line").count() == 4
    assert page.locator("#gap-chart .line").count() == 3
    assert one.errors == []
    page = opened("training-curves.html", java_script_enabled=False).page
    assert str(first) in page.inner_text(".apart")
    assert not page.is_visible("#lens-charts")


def test_slides_are_turned_by_keys_and_buttons(opened):
    one = opened("slides.html", width=1024, height=768)
    page = one.page
    count = sum(len(deck.slides) for deck in slides.read())
    seen = page.locator(".slide:visible")
    assert seen.count() == count and page.locator(".slide img").count() == 2
    page.focus("#deck-1 .show button")
    page.keyboard.press("Enter")
    for key, number in (("ArrowLeft", 1), *(
            ("PageDown", i) for i in range(2, 9)), ("PageUp", 7),
            ("End", 8), ("Home", 1), ("PageDown", 2)):
        page.keyboard.press(key)
        assert seen.count() == 1
        assert seen.get_attribute("id") == f"slide-1-{number}"
        assert 1 <= seen.evaluate(
            "one => Number(one.style.getPropertyValue('--grown'))") <= 1.8
    assert not page.is_visible(".teacher") and not page.is_visible("#menu")
    page.keyboard.press("n")
    assert page.locator(".teacher:visible").count() == 1
    page.click(".turning .notes")
    assert not page.is_visible(".teacher")
    page.keyboard.press("Home")
    waits = page.locator(".shown .waits")
    later = waits.count()
    assert later > 1
    for left in range(later, 0, -1):
        assert waits.count() == left and not waits.last.is_visible()
        page.keyboard.press("Space" if left % 2 else "ArrowRight")
    assert waits.count() == 0
    page.click("[data-to='1']")
    assert page.inner_text(".turning .at") == "2 / 8"
    page.click("[data-to='-1']")
    assert page.inner_text(".turning .at") == "1 / 8" and waits.count() == 0
    page.keyboard.press("ArrowLeft")
    assert waits.count() == 1
    page.keyboard.press("Escape")
    assert seen.count() == count and not page.is_visible(".turning")
    assert page.evaluate("document.activeElement.textContent").startswith(
        "Show the slides of lesson 1")
    assert one.errors == []


@pytest.mark.long(8)
def test_each_slide_fits_a_projector(opened):
    page = opened("slides.html", width=1024, height=768).page
    for deck in slides.read():
        page.click(f"#deck-{deck.number} .show button")
        for each in deck.slides:
            assert page.locator(".slide:visible").get_attribute(
                "id") == each.address
            assert sideways(page) <= 0 and page.evaluate(
                "document.documentElement.scrollHeight <= innerHeight"
                ), each.address
            assert page.evaluate("""[...document.querySelectorAll(
                ".shown pre")].every((one) => one.scrollWidth
                <= one.clientWidth)"""), each.address
            page.keyboard.press("PageDown")
        page.keyboard.press("Escape")


@pytest.mark.long(4)
def test_a_fault_is_chosen_by_keys(opened, broken):
    faults = {one["name"]: one for one in broken.faults}
    one = opened("break.html")
    page = one.page
    assert page.input_value("#fault") == breaking.CHOSEN[0]
    assert page.locator("#fault optgroup").first.get_attribute(
        "label") == "masks"
    for name in ("softmax in bfloat16", "no causal mask"):
        page.focus("#fault")
        page.select_option("#fault", name)
        assert faults[name]["first"] in page.inner_text("#told")
        assert f"{faults[name]['wrong']} of" in page.inner_text("#told")
        assert "answer is still right" in page.inner_text("#told")
        assert page.locator("circle.off").count() == faults[name]["wrong"]
        assert faults[name]["first"] in page.get_attribute(
            "#chart", "aria-valuetext")
    assert page.locator(".broken .part.wrong[data-path^=encoder]").count() == 0
    page.select_option("#fault", "softmax in bfloat16")
    page.focus("#precision")
    page.keyboard.press("End")
    assert page.inner_text("#dtype") == "bfloat16"
    assert "would not see it" in page.inner_text("#told")
    assert page.locator("circle.off").count() == 0
    page.focus("#chart")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("#chart", "aria-valuenow") == "2"
    assert one.errors == []


@pytest.mark.long(4)
@pytest.mark.parametrize("name", page_pictures.PICTURES)
def test_a_picture_of_the_documents_can_be_taken(opened, name):
    page, act, (width, height) = page_pictures.PICTURES[name]
    one = opened(page, width=width, height=height)
    if act:
        act(one.page)
    assert one.errors == []
    shown = (sources.ROOT / "docs" / "pages.md").read_text(encoding="utf-8")
    assert f"]({name}.png)" in shown
    assert (sources.ROOT / "docs" / f"{name}.png").is_file()


def test_the_sentence_is_touched_and_broken(opened):
    one = opened("index.html", width=390)
    page = one.page
    page.wait_for_selector("#answer-chips button")
    assert page.locator("#answer-chips .wrong").count() == 0
    assert page.locator(".looked").count() == 1
    page.locator("#answer-chips button").nth(1).focus()
    assert "looks at" in page.inner_text(".looks")
    assert page.locator(".lines path").count() > 0
    page.select_option("[name=kind]", "decoder")
    page.locator("#answer-chips button").nth(4).focus()
    later = """() => [...document.querySelectorAll(
        "#answer-chips .chip")].slice(6).some(
        (one) => parseFloat(one.style.getPropertyValue("--weight")) > 0.02)"""
    assert not page.evaluate(later)
    for change in ("mask", "positions"):
        page.locator(f"[name=change][value={change}]").focus()
        page.keyboard.press("Space")
        assert page.locator("#answer-chips .wrong").count() > 2
        assert page.evaluate(later) == (change == "mask")
    page.select_option("[name=text]", "2")
    assert sideways(page) <= 0 and one.errors == []


def test_the_picture_leads_to_the_code(opened):
    page = opened("index.html").page
    page.focus(".whole a[aria-label^='Cross-attention']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/attention.html#MultiHeadAttention")
    assert page.locator(".here-map .lit").count() == 3


@pytest.mark.parametrize("name", [*(
    pytest.param(name, marks=pytest.mark.long(3)) for name in (
        "index", "break", "slides")), *(
    pytest.param(name, marks=pytest.mark.long) for name in (
        "attention", "rulings", "attention-maps", "dialects", "flow", "loss",
        "training-curves", "lesson-01-tokens"))])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened, name, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="not checked: axe-playwright-python is not installed")
    page = opened(f"{name}.html", color_scheme=scheme).page
    rules = {} if scheme == "light" else {"runOnly": ["color-contrast"]}
    found = axe.Axe().run(page, options=rules).response["violations"]
    assert [(one["id"], one["help"], [node["html"][:160] for node
                                     in one["nodes"][:3]])
            for one in found] == []


@pytest.mark.long(4)
def test_served_pages_are_touched_as_those_from_disk(site, browser):
    """Under the server's policy, which lets no script of a page run."""
    with serving.server(serving.Reading(
            site[0], lambda: asking.TextAnswers(site[1])), 0) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{running.server_port}/"
        with Opened(browser, f"{address}break.html") as one:
            assert one.page.locator("circle.off").count() > 0
            one.page.keyboard.press("/")
            one.page.keyboard.type("causal mask")
            one.page.wait_for_selector("[role=option]")
            one.page.goto(f"{address}break-it?fault=no+positions&text=x")
            for fault, words in (
                    ("no causal mask", "shows first at decoder.layers.0"),
                    ("rotary base 500000", "changes nothing")):
                one.page.focus("#any")  # what is written is left alone
                one.page.select_option("#any", fault)
                one.page.fill("[name=text]", "3. Mai 1999")
                one.page.keyboard.press("Enter")
                one.page.wait_for_function(
                    "words => document.getElementById('told')?"
                    ".textContent.includes(words)", arg=words)
            one.page.goto(address)
            one.page.fill("#own-text", "5. Juni 2001")
            one.page.keyboard.press("Enter")
            one.page.wait_for_function(
                "() => [...document.querySelectorAll('#answer-chips button')]"
                ".map((one) => one.textContent).join('') === '2001-06-05end'")
            one.page.goto(f"{address}attention-maps.html?x=<b>")
            assert one.page.locator("[data-values]").count() > 0
            assert one.errors == []
            assert all(url.startswith((address, "data:"))
                       for url in one.requests)
        running.shutdown()
        thread.join()


@pytest.mark.long(4)
def test_all_is_there_without_a_script(opened):
    page = opened("attention.html", java_script_enabled=False).page
    first = page.locator(".row.step").first
    assert first.locator(".cell:visible").count() == 4
    assert page.is_visible("#menu") and not page.is_visible(".find")
    page = opened("attention.html", width=390, java_script_enabled=False).page
    assert page.is_visible("#menu") and page.locator(
        ".row.step").first.locator(".cell:visible").count() == 4
    page = opened("break.html", java_script_enabled=False).page
    assert page.is_visible(".faults") and not page.is_visible("#breaker")


@pytest.mark.long(4)
def test_on_paper_all_columns_stand_and_no_menu(opened):
    page = opened("attention.html").page
    page.emulate_media(media="print")
    assert not page.is_visible("#menu") and not page.is_visible("#tools")
    assert page.locator(".row.step").first.locator(
        ".cell:visible").count() == 4


@pytest.mark.parametrize("name", ["index", "attention", "break"])
def test_the_first_paint_is_soon(opened, name):
    """From disk; the best of some, for other programs run as well."""
    page = opened(f"{name}.html").page
    times = []
    for _ in range(4):
        page.reload()
        page.wait_for_function(
            "performance.getEntriesByType('paint').length > 0")
        times.append(page.evaluate(
            "performance.getEntriesByType('paint').at(-1).startTime"))
    assert min(times) < 1000


@pytest.mark.long(4)
def test_differences_are_filtered_and_the_address_keeps_how(opened):
    """By two frameworks, topic and words, as the command does."""
    both = len(registry.between(registry.select(), ("torch", "jax")))
    one = opened("differences.html")

    def left():
        shown = one.page.locator(".difference:visible").count()
        assert one.page.inner_text("#left") == (
            f"{shown} of {len(registry.REGISTRY)}")
        return shown

    assert left() == len(registry.REGISTRY)
    one.page.select_option("#other", "torch")
    one.page.select_option("#one", "jax")
    assert left() == both
    one.page.select_option("#topic", "attention")
    one.page.fill("#words", "fully MASKED")
    assert 0 < left() < both
    headings = one.page.locator(".topic:visible h2").all_inner_texts()
    assert [text.rstrip(" #") for text in headings] == ["Attention"]
    again = opened("differences.html?" + one.page.url.partition("?")[2])
    assert again.page.inner_text("#left") == one.page.inner_text("#left")
    one.page.check("#hidden")
    for part in one.page.locator(".difference:visible").all():
        assert "hidden" in part.locator("td").all_inner_texts()
    odd = opened("differences.html?one=<b>&topic=%00&words=" + "x" * 999)
    assert odd.page.input_value("#one") == "" and odd.errors == []
