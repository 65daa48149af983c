"""The pages on which the four stand side by side."""

import base64
import html
import io
import re
import shutil

import numpy as np
import pytest
from PIL import Image

from parity_io.errors import InputError
from transformer_contract.steps import read_steps
from parity import ports
from parity.differences import registry
from parity.ports import NotChecked
from parity.reading import (
    asking, breaking, formulas, lessons, listing, navigation, page_rows, pages,
    plain_code, row_views, sources, values)
from parity.render import markup, pictures
from parity_tests.support.commands import invoke
from parity_tests.support.lessons import alone
from parity_tests.support.page_reader import PageReader
from parity_tests.support.places import is_there

#: No page is larger, so that it opens at once on a slow line.
MOST = 1_500_000


@pytest.fixture(scope="module")
def found():
    """A run of the reference and, where it is installed, of PyTorch."""
    if isinstance(ports.engine("torch"), NotChecked):
        pytest.skip("not checked: torch is not installed")
    return values.Values(("torch",))


@pytest.fixture(scope="module")
def site(found, tmp_path_factory):
    """The folder of the pages, with one lesson, and how large each is."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    told = []
    sizes = pages.Site(found, call=alone(3)).write(folder, told.append)
    assert told == [f"{number} of {len(sizes)} pages: {name}"
                    for number, name in enumerate(pages.addresses(), 1)]
    return folder, sizes


def read(folder):
    """{name: Reader} of every page."""
    return {path.name: PageReader(path.read_text(encoding="utf-8"))
            for path in sorted(folder.glob("*.html"))}


def test_every_page_is_small(site):
    folder, sizes = site
    assert set(sizes) == {path.name for path in folder.glob("*.html")}
    for name, size in sizes.items():
        assert size < MOST, name


def test_every_mirrored_file_has_a_page(site):
    _, sizes = site
    names = sources.file_names()
    assert len(names) >= 15
    assert {f"{name}.html" for name in names} <= sizes.keys()


def test_every_step_has_a_row_with_a_value_and_an_error(site, found):
    folder, _ = site
    count = 0
    for name in sources.file_names():
        text = (folder / f"{name}.html").read_text(encoding="utf-8")
        for row in page_rows.rows(name):
            if row.kind != "step":
                continue
            assert f'id="{row.id}"' in text
            seen = found.step(row.step)
            assert seen is not None, row.id
            assert seen.differences["torch"].verdict == "match", row.id
            count += 1
    steps = [step for name in sources.file_names()
             for step in sources.source("numpy", name).steps]
    assert count == sum(not step.backward for step in steps) > 40


@pytest.mark.parametrize("name", [
    "padding_mask", "causal_mask", "decoder_mask"])
def test_a_mask_has_a_value_and_an_error(found, name):
    seen, = found.functions["masks", name]
    assert seen.differences["torch"].verdict == "match"


def test_a_lesson_is_run_for_its_page(site):
    folder, sizes = site
    text = (folder / "lesson-03-one-head.html").read_text(encoding="utf-8")
    assert "frameworks: numpy, torch<" in text
    assert "cat 68%, drank 6%" in text and "This lesson failed" not in text
    listed = (folder / "lessons.html").read_text(encoding="utf-8")
    there = [name for name in sizes if name.startswith("lesson-")]
    assert len(there) == len(lessons.paths()) and all(
        name in listed for name in there)
    assert "not checked: jax, it was not asked for" in text
    assert "<h1>3. One head of attention, by hand</h1>" in text
    assert text.count("lesson-04-masks.html") == 2  # the menu's, the next
    assert text.count("4. Masks, and a leak") == 2


def test_the_lessons_page_has_the_syllabus(site):
    """Of each lesson what the course's README says, and what a teacher asks.
    """
    text = (site[0] / "lessons.html").read_text(encoding="utf-8")
    said = re.findall(r"(\d+) minutes\. Before it: (.+)\.\nExercises: .+\.<",
                      text)
    assert len(said) == len(lessons.paths())
    assert said[0] == ("50", "Python, NumPy")
    assert said[3:5] == [("50", "lesson 3"), ("45", "lessons 3, 4")]
    assert "For teachers" in text and 'href="slides.html">' in text
    assert "slides.md)" not in text and ".md\"" not in text


@pytest.mark.long
def test_every_lesson_is_run_for_its_page(found, tmp_path):
    pages.Site(found).write(tmp_path / "pages")
    files = list((tmp_path / "pages").glob("lesson-*.html"))
    assert len(files) == len(lessons.paths())
    for path in files:
        page = path.read_text(encoding="utf-8")
        assert "This lesson failed" not in page
        assert "not checked: jax, it was not asked for" in page


def test_every_step_has_a_formula():
    there = set()
    for name in sources.file_names():
        for step in sources.source("numpy", name).steps:
            assert formulas.formula(step).startswith("<math")
            there.add(formulas.key(step))
    listed = {(owner, name) for owner, names in formulas.table().items()
              for name in names}
    assert listed == there


def test_every_line_of_code_is_shown():
    """But docstrings, markers and blank lines, nothing is left out."""
    for name in sources.file_names():
        shown = {column: set() for column in sources.columns()}
        for row in page_rows.rows(name):
            for column, piece in row.pieces.items():
                shown[column] |= {number for number, _ in sources.visible(
                    sources.source(column, name), piece.ranges)}
        for column, numbers in shown.items():
            file = sources.source(column, name)
            for number, line in enumerate(file.lines, start=1):
                if (number in numbers or number in file.docstrings
                        or not line.strip()
                        or line.lstrip().startswith("#")):
                    continue
                inside = any(s.line == number for s in file.steps)
                assert inside or _module_docstring(file, number), (
                    f"{file.path}:{number}: {line}")


def _module_docstring(file, number):
    text = "\n".join(file.lines[:number])
    return not re.search(r"^(import|from|def|class|@)\b", text, flags=re.M)


def test_nothing_is_fetched_from_elsewhere(site):
    folder, _ = site
    for name, reader in read(folder).items():
        for at in reader.fetched:
            assert at.startswith(("data:", "/read-", "/break-")) or (
                folder / at).is_file(), (name, at)
    for path in folder.iterdir():
        if path.suffix in (".css", ".js"):
            text = path.read_text(encoding="utf-8")
            assert "//" not in re.sub(r"^\s*//.*$", "", text, flags=re.M)
            assert "@import" not in text and "url(" not in text


def test_links_lead_somewhere_and_ids_are_given_once(site):
    folder, _ = site
    found = read(folder)
    for name, reader in found.items():
        assert len(set(reader.ids)) == len(reader.ids), name
        for link in reader.links:
            page, _, anchor = link.partition("#")
            assert (page or name) in found, (name, link)
            if anchor:
                assert anchor in found[page or name].ids, (name, link)


def test_no_sentence_ends_twice(site):
    """Outside of code; a quotation has its own marks, which are none here."""
    folder, _ = site
    for path in folder.glob("*.html"):
        text = re.sub(r"<(script|style|pre|code|svg)\b.*?</\1>", "_",
                      path.read_text("utf-8"), flags=re.S)
        text = html.unescape(re.sub("<[^>]+>", "", text))
        assert not re.search(r"[.][”’]?[.](?!\w|[.])", text), path.name


def test_pictures_have_words(site):
    folder, _ = site
    for name, reader in read(folder).items():
        assert all(reader.images), name


def test_rows_name_tests_that_there_are(site):
    folder, _ = site
    named = {*row_views.TEST_OF.values(), *row_views.OWN.values()}
    for path in folder.glob("*.html"):
        named |= set(re.findall(r"test_\w+\.py::test_\w+", path.read_text(
            encoding="utf-8").replace("<wbr>", "")))
    assert len(named) > 20
    for test in named:
        assert is_there(test), test


def copied(tmp_path):
    """The mirrored folders, to be changed."""
    for folder in ("transformer_contract",
                   *map(sources.folder, sources.columns())):
        shutil.copytree(sources.ROOT / folder, tmp_path / folder,
                        ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("folder", ["reference_numpy", "impl_jax"])
def test_a_missing_step_is_named_in_both(tmp_path, folder):
    root = copied(tmp_path)
    path = root / folder / "feed_forward.py"
    marker = next(s for s in read_steps(path)
                  if s.name == "activated" and not s.backward)
    lines = path.read_text(encoding="utf-8").splitlines()
    del lines[marker.line - 1]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        page_rows.rows("feed_forward", root)
    words = str(error.value)
    assert f"{folder}/feed_forward.py does not" in words
    assert "'activated'" in words and words.count("feed_forward.py") == 2


def test_a_marker_that_reads_otherwise_is_refused(tmp_path):
    root = copied(tmp_path)
    path = root / "impl_torch" / "feed_forward.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("x W₁ + b₁", "x W₂ + b₁"), encoding="utf-8")
    with pytest.raises(InputError, match="otherwise"):
        page_rows.rows("feed_forward", root)


@pytest.mark.parametrize("lacking", ["numpy", "torch"])
def test_a_step_that_is_not_tapped_is_named_in_both(found, lacking):
    name = "encoder.layers.0.feed_forward.inner"

    class Lacking:
        """An engine that records one step less."""

        def __init__(self, engine, column):
            self.engine, self.column = engine, column

        def __getattr__(self, attribute):
            return getattr(self.engine, attribute)

        def forward(self, *inputs):
            steps = self.engine.forward(*inputs)
            return {key: value for key, value in steps.items()
                    if self.column != lacking or key != name}

    run = found.dates
    with pytest.raises(InputError) as error:
        values.ModelRun({column: Lacking(engine, column)
                         for column, engine in found.engines.items()},
                        run.config, run.weights, run.batch)
    words = str(error.value)
    assert repr(name) in words and words.index(
        sources.folder(lacking)) > words.index("records")


def test_forced_lines_have_their_reason():
    file = sources.source("keras", "attention")
    number = next(i for i, line in enumerate(file.lines, start=1)
                  if "its own is a Python float" in line)
    code, forced = listing.listing(file, ((number, number + 1, False),))
    assert code.count('class="l forced"') == 2
    assert forced == [("Keras", "its own is a Python float, which reaches "
                       "float64 by float32.")]


def test_code_is_escaped():
    file = sources.source("numpy", "attention")
    file = type(file).__new__(type(file))
    file.lines, file.docstrings, file.steps = ["x = '<script>' & y"], set(), []
    code, _ = listing.listing(file, ((1, 1, False),))
    assert "<script>" not in code and "&lt;script&gt;" in code


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="something else"):
        pages.refuse(tmp_path)


def test_numbers_are_written_plainly():
    assert pictures.number(-0.00123456) == "−0.001235"
    assert pictures.number(float("-inf")) == "−∞"
    assert pictures.number(0.0) == "0"


def test_what_is_not_finite_is_counted_apart():
    words = pictures.Summary.of(np.array([-np.inf, 1.0, 3.0, -np.inf]))
    assert (words.mean, words.low, words.high) == ("2", "1", "3")
    assert words.apart == "of 4 2 are −∞"
    assert pictures.Summary.of(np.array([np.nan])).apart == "of 1 1 is NaN"
    assert pictures.Summary.of(np.arange(3)).apart == ""


def test_an_outlier_leaves_the_rest_of_a_map_to_be_seen():
    row = np.linspace(-9, -7, 500)[None]
    row[0, :2] = -np.inf, -400.0
    picture = base64.b64decode(re.search(
        r"base64,([^\"]+)", pictures.heat_map(row, "x"))[1])
    with Image.open(io.BytesIO(picture)) as image:
        assert len(image.convert("RGB").getcolors(10_000)) > 100


def test_log_probabilities_have_a_mean(site):
    text = (site[0] / "search.html").read_text(encoding="utf-8")
    assert "are −∞" in text and "spread <b>NaN" not in text


def test_what_was_recorded_stands_where_a_port_is_missing(site):
    text = (site[0] / "differences.html").read_text(encoding="utf-8")
    assert text.count("<h3") == len(registry.select()) > 40
    assert text.count("(recorded, not run again)") > 40
    assert "Not run again for this site: Keras (it was not asked" in text
    torch = re.findall(r"<td>PyTorch[^<]*</td>\s*<td>([^<]*)", text)
    assert torch and not any("recorded" in answer for answer in torch)


@pytest.mark.parametrize("html, expected", [
    ("<td>is 5.7e-03 off</td>",
     '<td>is <span class="uncut">5.7e-03</span> off</td>'),
    ("<q>2047-04-19</q>", '<q><span class="uncut">2047-04-19</span></q>'),
    ("<code>check --allow-raise a--b</code>",
     '<code>check <span class="uncut">--allow-raise</span> a--b</code>'),
    *[(html, html) for html in (
        '<a title="1e-12">x-1</a>', "<pre>1e-12</pre>", "<p>one-2</p>",
        "<script>if (a < 1e-12) b</script>", "<header>e-12</header>")]])
def test_a_number_a_date_and_an_option_are_kept_whole(html, expected):
    assert markup.unbroken(html) == expected


@pytest.mark.parametrize("host", [
    "localhost", "127.0.0.1", "localhost:8750", "127.0.0.1:1", "LOCALHOST"])
def test_this_machine_is_served(host):
    from parity.reading.serving import is_ours
    assert is_ours(host)


@pytest.mark.parametrize("host", [
    None, "", "evil.example", "evil.example:8750", "localhost.evil.example",
    "127.0.0.1.evil.example", "x@localhost", "localhost:evil", "0.0.0.0",
    "[::1]", "localhost:", "localhost:80:80"])
def test_no_other_host_is_served(host):
    from parity.reading.serving import is_ours
    assert not is_ours(host)


@pytest.fixture(scope="module")
def running(site, found):
    """A server of the pages, on a port that is free."""
    import threading

    from parity.reading import serving
    with serving.server(serving.Reading(
            site[0], lambda: asking.TextAnswers(found)), 0) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def asked(running, path, method="GET", **headers):
    """(status, headers, text) of a request, once it is no place in line."""
    import http.client
    with_host = {"Host": f"127.0.0.1:{running.server_port}", **headers}
    link = http.client.HTTPConnection(
        "127.0.0.1", running.server_port, timeout=60)
    link.request(method, path, headers=with_host)
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    if answer.status == 202:
        return asked(running, path, method, **headers)
    return answer.status, answer.headers, text


def test_it_listens_on_this_machine_alone(running):
    assert running.server_address[0] == "127.0.0.1"


def test_pages_are_served(running):
    status, headers, text = asked(running, "/")
    assert status == 200 and "Four columns" in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert asked(running, "/style.css")[0] == 200
    assert asked(running, "/", "HEAD")[2] == ""


@pytest.mark.parametrize("path", [
    "/../README.md", "/%2e%2e/README.md", "//etc/passwd", "/nothing",
    "/static/../style.css"])
def test_nothing_else_is_served(running, path):
    assert asked(running, path)[0] == 404


def test_a_foreign_host_gets_nothing(running):
    status, _, text = asked(running, "/", Host="evil.example")
    assert status == 403 and "Four columns" not in text
    assert asked(running, "/", "POST")[0] == 501


def test_the_readers_own_date_is_read(running):
    status, _, text = asked(
        running, "/read-attention?text=12+December+2031")
    assert status == 200 and "2031-12-12" in text
    assert "<html lang=\"en\" data-live>" in text
    assert text.count("read in ") == 2  # by NumPy and PyTorch
    assert text.count("</b> not checked: it was not asked for") == 2
    assert text.count('class="worded"') == 6 * 4
    assert text.count("class=\"tree\"") == 1
    assert 'value="12 December 2031"' in text


@pytest.mark.parametrize("text", [
    '"><script>alert(1)</script>', "<img src=x onerror=alert(1)>",
    "'{{ 7*7 }}'", "a&b</title>"])
def test_the_readers_text_is_escaped(running, text):
    from urllib.parse import quote
    status, _, page = asked(
        running, f"/read-attention?text={quote(text)}")
    assert status == 200
    assert text not in page and "<script>" not in page
    assert "<img src=x" not in page and "49" not in PageReader(page).ids


@pytest.mark.parametrize("text, words", [
    ("", "there is no text"), ("+", "there is no text"),
    ("1" * 81, "81 characters"), ("%F0%9F%A6%86" * 30, "tokens")])
def test_a_text_that_cannot_be_read_is_refused(running, text, words):
    status, _, page = asked(running, f"/read-attention?text={text}")
    assert status == 400 and words.lower() in page.lower()


@pytest.mark.parametrize("fault, first", [
    ("no causal mask", "decoder.layers.0.self_attention.scores"),
    ("another epsilon", "there is no fault"),
    ("AdamW's decay is L2 in the gradient", "there is no fault"),
    ('"><script>alert(1)</script>', "there is no fault")])
def test_a_fault_of_ones_choice_is_put_in(running, found, fault, first):
    from urllib.parse import quote
    status, _, page = asked(running, "/break-it?text=12+December+2031&fault="
                            + quote(fault))
    assert status == (400 if "there is" in first else 200)
    assert first in page.lower() or first in page
    assert "<script>alert" not in page
    if status == 200:
        assert "<q>12 December 2031</q>" in page and "2031-12-12" in page
        assert page.count("<tr data-fault=") == 1
    steps = found.dates.steps["numpy"]
    again = found.engines["numpy"].forward(
        found.models["numpy"], *found.dates.batch)
    assert all(np.array_equal(again[name], steps[name]) for name in steps)


@pytest.mark.long
@pytest.mark.parametrize("fault", {
    cause.topic: name for name, cause in breaking.breakable().items()}.values())
def test_a_fault_of_each_topic_can_be_asked_for(found, fault):
    from parity.reading import live
    try:
        page = live.broken(found, fault, "3. Mai 1999")
    except InputError as error:
        assert "cannot be put into this model" in str(error)
    else:
        assert len(page["faults"]) == 1 and page["answers"] == ["1999-05-03"]


def test_an_answer_without_an_end_says_so(found):
    """Without positions the model repeats itself, until it is cut."""
    from parity.reading import live
    page = live.broken(found, "no positions", "3. Mai 1999")
    assert page["faults"][0]["answers"][0].endswith("9… and so on")


def test_a_file_says_what_it_is_where_its_name_does_not(site):
    """A page of searches stands beside a button that searches the site."""
    assert "greedy and beam" in navigation.HINTS["search"]
    for page in "search.html", "index.html":
        text = (site[0] / page).read_text(encoding="utf-8")
        assert '<code>search</code> <span class="quiet">greedy and' in text
    text = (site[0] / "search.html").read_text(encoding="utf-8")
    assert '<span class="hint">greedy and beam</span></h1>' in text


def test_help_and_command(tmp_path):
    """Without the libraries of the frameworks, and without a port."""
    answer = invoke("read", "--help")
    assert answer.exit_code == 0 and "--serve" in answer.output
    (tmp_path / "thesis.txt").write_text("x")
    for option in (["--out", tmp_path], ["--port", "fortran"]):
        assert invoke("read", *option).exit_code == 2


def test_a_port_that_is_not_there_is_not_checked(site):
    folder, _ = site
    text = (folder / "attention.html").read_text(encoding="utf-8")
    assert "not checked" in text
    assert "super()._masked_softmax" in re.sub(r"<[^>]+>", "", text)


CODE = """class A:
    def score(self, query, key):
        \"\"\"How well they match.\"\"\"
        return query @ key.mT / self.divisor

    def forward(self, x):
        scores = tap(self, "scores", self.score(query, key))
        doubled = tap(
            self, "doubled", 2 * self.score(query, key))
        other = tap(self, "other", self.score(key, query))
        a, c["b"] = self.b(x)
        noted = c["noted"] = f(
            x)  # why
        wide = tap(self, "wide", torch.mean(
            centered * centered, dim=-1, keepdim=True, some_more=True, x=1))
        kept = tap(self, "kept", kept)
"""


@pytest.mark.parametrize("first, last, expected", [
    (7, 7, ["        scores = query @ key.mT / self.divisor"]),
    (8, 9, ["        doubled = 2 * (query @ key.mT / self.divisor)"]),
    (10, 10, ["        other = self.score(key, query)"]),
    (11, 11, ['        a, c["b"] = self.b(x)']),
    (12, 13, ["        noted = f(", "            x)  # why"]),
    (14, 15, ["        wide = torch.mean(", "            centered * centered, "
              "dim=-1, keepdim=True, some_more=True, x=1)"]),
    (16, 16, [])])
def test_what_only_records_a_step_is_not_shown(
        tmp_path, first, last, expected):
    (tmp_path / "a.py").write_text(CODE)
    assert plain_code.plain(
        sources.Source(tmp_path / "a.py"), first, last) == expected


def test_every_step_of_the_paper_says_why():
    """In at most two sentences of twenty words, and only of steps."""
    steps = {formulas.key(row.step): row.step
             for name in sources.file_names() for row in page_rows.rows(name)
             if row.kind == "step"}
    reasons = formulas.table(formulas.REASONS)
    told = {(owner, name): text for owner, names in reasons.items()
            for name, text in names.items()}
    assert told.keys() <= steps.keys()
    assert {key for name in sources.ORDER for key in (
        formulas.key(row.step) for row in page_rows.rows(name)
        if row.kind == "step")} <= told.keys()
    for text in told.values():
        sentences = re.split(r"(?<=[.]) ", text)
        assert len(sentences) <= 2 and text.endswith(".")
        assert all(len(one.split()) <= 20 for one in sentences), text


def test_errata_are_seen(found):
    from parity.reading import errata
    for one in errata.all_of(found):
        assert any(right != wrong for _, right, wrong in one.rows), one.id
        assert is_there(one.test), one.test
