"""The site: every page, written into a folder."""

import functools
import json
import pathlib
import re

from markupsafe import Markup, escape

from parity_io.files import new_folder, as_input_error
from transformer_contract.steps import AXES
from parity.reading import (
    architecture, articles, index, lessons, navigation, other_forms, page_rows,
    prebuild, row_views, rulings, sentence, sources, teaching)
from parity.reading.ready import MARK, made_of, refuse
from parity.render import maps, markup, pictures
from parity.runs.date_formats import LOCALES

#: As many characters of code fit on a telephone.
WIDEST = 30

def address(name):
    """The page of a mirrored file."""
    return f"{name}.html"


def addresses(root=sources.ROOT):
    """The address of every page, in the order in which they are made."""
    return [*map(address, sources.file_names(root)), *articles.addresses(root)]


def by_owner(rows):
    """owner -> its steps, in order."""
    steps: dict = {}
    for row in rows:
        if row.kind == "step":
            steps.setdefault(row.owner, []).append(row)
    return steps


def is_helper(views):
    """Whether no reader needs an owner's rows: tables, imports, the like."""
    return all(view["row"].kind == "plain" and (
        not view["row"].prose or view["row"].name.startswith("_")
        or view["row"].name.endswith("_backward")) for view in views)


def has_steps(views):
    """Whether an owner's rows have a numbered step."""
    return any(view["row"].step for view in views)


def contents(groups):
    """The owners of a page and their steps, as entries of its contents."""
    entries = []
    for group in groups:
        for place, view in enumerate(group["rows"]):
            row = view["row"]
            if place == 0:
                entries.append(navigation.Signpost(
                    f"#{row.id}", row.name, code=True))
            if row.kind == "step":
                entries.append(navigation.Signpost(
                    f"#{row.id}", f"{row.step.number} {row.name}", code=True,
                    depth=2))
    return entries


def prose(text):
    """A docstring as HTML: paragraphs, displayed formulas, code."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines):
            parts.append(Markup('<pre class="display uncut">{}</pre>').format(
                Markup("\n").join(equation(line[4:]) for line in lines)))
            continue
        heading = re.match(r"(Args|Returns|Attributes|Raises):$", lines[0])
        if heading:
            rest = "\n".join(line[4:] for line in lines[1:])
            parts.append(Markup(
                '<p class="part">{}</p><pre class="display">{}</pre>').format(
                    heading[1], whole_shapes(rest)))
            continue
        parts.append(Markup("<p>{}</p>").format(linked(" ".join(
            line.strip() for line in lines).replace("::", ":"))))
    return Markup("\n").join(parts)


def broken_code(html):
    """HTML whose long names may be broken so, and nowhere else."""
    return Markup(re.sub(r"(?<=<code>)[^<]*(?=</code>)",
                         lambda name: breakable(name[0]), str(html)))


def equation(line):
    """A line of a formula; its number goes below it where there is no room."""
    formula, number = re.fullmatch(
        r"(.*?)(?: {2,}(\(eq\. .*\)))?", line).groups()
    if not number:
        return escape(line)
    return Markup('<span class="eq"><span>{}</span> <span>{}</span></span>'
                  ).format(formula, number)


def broken(name):
    """A long name, which may be broken between its parts."""
    return Markup(breakable(str(escape(name))))


def breakable(name):
    """HTML of a name that may be broken behind dots, colons and slashes.

    A part that is wider than a telephone may be broken at underscores too.
    """
    parts = re.split(r"(?<=[.:/])(?=\w)", name)
    return "<wbr>".join(part if len(part) <= WIDEST else re.sub(
        r"_(?=\w)", "_<wbr>", part) for part in parts)


def whole_shapes(text):
    """Text in which a shape such as [B H T S] is not broken."""
    return re.sub(r"\[[A-Z][A-Z0-9 ]*\]",
                  lambda shape: shape[0].replace(" ", "\xa0"), text)


def linked(text):
    """Text with its code as code and its rulings as links."""
    html = re.sub(r"``([^`]+)``", r"<code>\1</code>",
                  str(escape(whole_shapes(text))))
    html = re.sub(r"\b(eq\.|section|sections) (?=\d)", r"\1&nbsp;", html)
    return rulings.linked(html, "rulings.html")


class Site:
    """The pages of one run.

    Args:
        values: a values.Values.
        root: the folder of the four.
        call: what makes the lessons and the known differences, as
            prebuild.call does.
    """

    def __init__(self, values, root=sources.ROOT, call=prebuild.call):
        self.values, self.root = values, root
        self.call = call
        self.files = sources.file_names(root)
        self.rows = {name: list(page_rows.rows(name, root))
                     for name in self.files}
        self.outlines = {}
        self.views = row_views.RowViews(values, root)
        self.architecture = architecture.Architecture(values, self.rows)
        self.environment = markup.environment(
            number=pictures.number, linked=linked, prose=prose,
            error=pictures.error, title=sources.title, broken=broken,
            broken_code=broken_code, outline=self.outline, pairs=teaching.pairs)
        self.environment.globals.update(
            columns=sources.columns(), files=self.files,
            parts=navigation.parts(self.files, dict(articles.PAGES), [
                (teaching.address_of(path), teaching.heading(path))
                for path in teaching.paths(self)]),
            where=self.architecture.small, address=address, axes=AXES,
            choices=maps.choices(values.config), languages=len(LOCALES),
            versions=values.versions(), not_checked=values.not_checked)

    @functools.cache
    def lesson(self, path):
        """The Cells of a lesson that was run, and where it failed or ""."""
        return self.call(lessons.shown, path, self.values.ports)

    def outline(self, body):
        """The Outline of a page's body, which the index keeps."""
        self.last = navigation.Outline.of(body)
        return self.last

    def render(self, template, here, title, **more):
        """One page."""
        html = markup.unbroken(self.environment.get_template(template).render(
            here=here, page_title=title, **more))
        if template != "file.html":
            self.outlines[here] = title, more.get(
                "contents", self.last.entries)
        return html

    def addresses(self):
        """The address of every page, in the order of ``pages``."""
        return addresses(self.root)

    def pages(self):
        """Yield (address, HTML) of every page."""
        for name in self.files:
            yield address(name), self.file(name)
        for here, title, template, more in articles.all_of(self):
            yield here, self.render(template, here, title, **more)

    def write(self, folder, on_page=lambda text: None):
        """Write the site into a folder, whole or not at all: {name: bytes}.

        Args:
            on_page: called with a text after each page.

        Raises:
            InputError: the folder holds something that is no such site.
        """
        folder = pathlib.Path(folder).resolve()
        refuse(folder)
        sizes = {}
        with as_input_error(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
        with as_input_error(folder), new_folder(folder, replace=True) as fresh:
            count = len(self.addresses())
            for number, (name, html) in enumerate(self.pages(), start=1):
                on_page(f"{number} of {count} pages: {name}")
                data = html.encode()
                (fresh / name).write_bytes(data)
                sizes[name] = len(data)
            for name, text in self.assets().items():
                (fresh / name).write_text(text, encoding="utf-8")
            (fresh / MARK).write_text(
                json.dumps({"pages": sizes, "with": self.values.versions(),
                            "of": made_of(self.root)}, indent=1) + "\n")
        return sizes

    def assets(self):
        """{name: text} of what pages ask for; the index of those rendered."""
        return {"style.css": markup.style(), "script.js": markup.script(),
                "index.js": index.script(index.entries(
                    self.rows, self.outlines)),
                "sentences.js": self.call(sentence.shipped)}

    # A mirrored file

    def file(self, name):
        """The page of a mirrored file."""
        groups: list = []
        for row in self.rows[name]:
            if not groups or groups[-1]["owner"] != row.owner:
                groups.append({"owner": row.owner, "rows": []})
            groups[-1]["rows"].append(self.views.row(name, row))
        helpers = [group for group in groups if is_helper(group["rows"])]
        groups = [group for group in groups if group not in helpers]
        groups.sort(key=lambda group: not has_steps(group["rows"]))
        around = self.files.index(name)
        return self.render(
            "file.html", address(name), f"{name}.py", name=name,
            hint=navigation.HINTS.get(name, ""),
            groups=groups, helpers=helpers, contents=contents(groups),
            steps=by_owner(self.rows[name]),
            prose_text=sources.source("numpy", name, self.root).prose,
            before=self.files[around - 1] if around else None,
            after=(self.files[around + 1]
                   if around + 1 < len(self.files) else None),
            example=self.example(),
            others=other_forms.shown(name, self.root))

    def example(self):
        """The worked example, in words."""
        values = self.values
        batch, labels = values.dates.batch, values.dates.labels
        piece = values.tokenizer.tokens
        return {
            "source": values.tokenizer.decode(batch.source[0]),
            "target": values.tokenizer.decode(labels[0]),
            "source_tokens": piece(batch.source[0]),
            "target_tokens": piece(batch.target[0]),
            "label_tokens": piece(labels[0])}
