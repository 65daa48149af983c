"""All that is timed, in rows of one kind: what ``python -m benchmarks`` prints.

A row has "work", "implementation", "form", "peer", "time" in seconds, "ratio"
to the peer's, "limit", which is the share of the time that the machine's limit
is, "memory" in bytes, "memory_ratio" and "error". Times of one run
are compared with one another only; each was validated before it was timed.
"""

import importlib
import pathlib
import tempfile

import typer

from benchmarks import harness, workload
from benchmarks.limits import roofline
from benchmarks.passes import PASSES
from benchmarks.texts import (
    TINY, between, milliseconds, number, of_works, replace_between)
from parity_io.errors import not_installed, one_of
from parity_io.files import write_json
from parity.ports import split_words
from parity.render import tables_page

#: What can be timed; the first two by default.
WORKS = ("forward", "training", "padded", "generation", "attention",
         "loading")
DEFAULT = WORKS[:2]

#: The fields of a row.
FIELDS = ("work", "implementation", "form", "peer", "time", "ratio", "limit",
          "memory", "memory_ratio", "error")

COLUMNS = ("work", "implementation", "form", "ms", "ratio", "of limit", "MB",
           "MB ratio", "error")


def known_to(work):
    """Whom the implementations of a work can be held against."""
    if work == "loading":
        return importlib.import_module("benchmarks.loading").WAYS
    if work in PASSES:
        return PASSES[work].implementations
    return importlib.import_module(f"benchmarks.{work}").IMPLEMENTATIONS


def chosen(known, ports, against):
    """The names of the implementations of some ports and their peers."""
    names = [name for name, timed in known.items() if timed.port in ports]
    needed = {*names, *(known[name].peer for name in names), against,
              "numpy"}
    return [name for name in known if name in needed]


def compared(work, rows, against, limit=None):
    """The rows of one work from those of its own table.

    Args:
        limit: the seconds that the machine's limit allows; None if unknown.
        rows: {name: {"title", "form", "peer", "seconds", "peak", "error"}}.
        against: the name of the one that all are held against, or None for
            each one's own peer.
    """
    for row in rows.values():
        peer = against or row["peer"]
        other = rows.get(peer)
        yield dict(zip(FIELDS, (
            work, row["title"], row["form"], other and other["title"],
            row["seconds"], other and row["seconds"] / other["seconds"],
            limit and limit / row["seconds"], row["peak"],
            row["peak"] and other and other["peak"] and (
                row["peak"] / other["peak"]), row["error"])))


def passes(work, options, notes):
    """The rows and the roofline of forward passes or training steps."""
    benchmark = PASSES[work]
    known = benchmark.implementations
    names = chosen(known, options["ports"], options["against"])
    report = harness.measured(
        benchmark, names, options["settled"], options["rounds"],
        options["repeats"], options["loud"], notes, options["profile"])
    profiles = profiled(work, known, report["results"])
    rows = {row["name"]: {
        "title": row["title"], "form": known[row["name"]].form,
        "peer": known[row["name"]].peer, "seconds": row["median"],
        "peak": row["peak"], "error": row["error"]}
        for row in report["rows"]}
    flops, size = report["workload"]["flops"], 4 * workload.parameters()
    limit, words = roofline(report["results"].values(), flops, size)
    return list(compared(work, rows, options["against"], limit)), [
        f"The limit of {work}: {words}.", *harness.caption(report)], profiles


def generation(options, notes):
    """The rows of searches, a work each."""
    from benchmarks import generation as timing
    known = timing.IMPLEMENTATIONS
    names = [name for name, timed in known.items()
             if timed.port in (*options["ports"], "", "numpy")]
    report = timing.measured(
        names, options["settled"], options["rounds"], options["longest"],
        options["loud"], notes, options["profile"], options["searches"])
    rows, lines = [], []
    for search, table in report["rows"].items():
        for length in report["lengths"]:
            limit, words = roofline(
                report["results"].values(), *timing.needs(search, length))
            lines.append(f"The limit of {search}, N = {length}: {words}.")
            rows += compared(f"{search}, N = {length}", {
                name: {
                    "title": known[name].title, "peer": known[name].peer,
                    "form": known[name].form,
                    "seconds": seconds[length], "peak": None, "error": 0.0}
                for name, seconds in table.items() if length in seconds},
                options["against"], limit)
    return rows, [*lines, *timing.caption(report)], profiled(
        "generation", known, report["results"])


def attention(options, notes):
    """The rows of attention of many tokens, a work each."""
    from benchmarks import attention as timing
    report = timing.measured(
        chosen(timing.IMPLEMENTATIONS, options["ports"], options["against"]),
        options["settled"], options["rounds"], options["loud"], notes,
        options["profile"])
    rows, lines = [], []
    for case, table in report["rows"].items():
        limit, words = roofline(
            report["results"].values(), *timing.needs(case))
        lines.append(f"The limit of attention, {case}: {words}.")
        rows += compared(
            f"attention, {case}", table, options["against"], limit)
    return rows, [*lines, *harness.caption(report)], profiled(
        "attention", timing.IMPLEMENTATIONS, report["results"])


def profiled(work, known, results):
    """Where the time went, in rows: a part of an implementation each."""
    rows = []
    for name, result in results.items():
        parts = result.get("profile", ())
        if isinstance(parts, str):
            parts = [[parts, None, None]]
        total = sum(seconds or 0 for _, seconds, _ in parts)
        rows += [{"work": work, "implementation": known[name].title,
                  "part": part, "time": seconds, "share": seconds and (
                      seconds / total), "calls": calls}
                 for part, seconds, calls in parts]
    return rows


def not_measured(work, ports):
    """Who of a work is left out since a library is missing, as lines."""
    if work == "loading":
        return
    for timed in known_to(work).values():
        words = not_installed(timed.libraries)
        if words and timed.port in (*ports, ""):
            yield f"Not measured: {timed.title}, {words}."


def table_of_parts(rows):
    """Where the time went, for a terminal."""
    return of_works(("ms", "share", "calls"), [
        (f"{row['work']}: {row['implementation']}", row["part"],
         milliseconds(row["time"]), number(row["share"], ".0%"),
         number(row["calls"], "d")) for row in rows])


def loading(options, notes):
    """The rows of loading a file: of looking at it, and of reading all."""
    from benchmarks import loading as timing
    against = options["against"] or "safetensors.torch"
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        timing.made(folder, 2**27 if options["quick"] else 1.2 * 2**30)
        (folder / "model.safetensors").read_bytes()  # into the page cache
        for used in ("", "used"):
            measured = {}
            for way in timing.WAYS:
                seconds, mebibytes, total = timing.best(way, folder, used)
                if seconds == seconds:  # NaN where it cannot run
                    measured[way] = {
                        "title": way, "form": "", "peer": against,
                        "seconds": seconds, "peak": mebibytes * 2**20,
                        "error": total}
                notes.print(f"loading, {way}: {seconds:.2f} s")
            truth = measured[timing.WAYS[0]]["error"]
            for row in measured.values():
                row["error"] = abs(row["error"] - truth) / (abs(truth) or 1)
                if row["error"] > 1e-5:
                    raise SystemExit(
                        f"{row['title']} reads other numbers: their sum is "
                        f"off by {row['error']:.0e}.")
            rows += compared(
                f"loading{', summed' if used else ''}", measured, against)
    return rows, [], []


def table_of(rows):
    """The rows as a table for a terminal; an implementation tells its form."""
    return of_works(COLUMNS[3:], [
        (work, title, *texts) for work, title, _, *texts
        in map(texts_of, rows)])


def markdown(rows):
    """The rows of one work as a table of Markdown, as lines."""
    lengths = list(dict.fromkeys(
        row["work"].rpartition(", N = ")[2] for row in rows))
    cases = list(dict.fromkeys(row["work"] for row in rows))
    if cases[0] != lengths[0]:  # a search's rows have the lengths beside them
        columns = ["search", "implementation", *(
            words for length in lengths for words in (
                f"N = {length}, ms", "ratio", "of limit"))]
        lines = {}
        for row in rows:
            search, _, length = row["work"].rpartition(", N = ")
            cells = lines.setdefault((search, row["implementation"]), [
                search, row["implementation"], *[""] * (3 * len(lengths))])
            place = 2 + 3 * lengths.index(length)
            cells[place:place + 3] = (milliseconds(row["time"]),
                                      number(row["ratio"], ".2f"),
                                      number(row["limit"], ".0%"))
        texts = list(lines.values())
    else:
        columns = ["work", *COLUMNS[1:]] if len(cases) > 1 else COLUMNS[1:]
        texts = [texts_of(row)[len(COLUMNS) - len(columns):] for row in rows]
    return [f"| {' | '.join(line)} |" for line in (
        columns, ["---", "---", *["---:"] * (len(columns) - 2)], *texts)]


def texts_of(row):
    """A row of a table, as texts in the order of COLUMNS."""
    return (row["work"], row["implementation"], row["form"],
            milliseconds(row["time"]), number(row["ratio"], ".2f"),
            number(row["limit"], ".0%"), number(row["memory"], ".0f", 1e-6),
            number(row["memory_ratio"], ".2f"), number(row["error"], ".0e"))


def write_page(path, rows, lines, parts):
    """Write rows, notes and rows of parts as a page that stands alone."""
    works = list(dict.fromkeys(row["work"] for row in rows))
    sections = [tables_page.Section(
        f"work-{place}", work.capitalize(), "", (
            "implementation", "form", "ms", "× its peer’s time", "peer",
            "of the limit", "MB", "× its peer’s", "error"),
        [(row["implementation"], row["form"],
          milliseconds(row["time"]), tables_page.ratio(row["ratio"]),
          row["peer"] or "", number(row["limit"], ".0%"),
          number(row["memory"], ".0f", 1e-6),
          number(row["memory_ratio"], ".2f"), number(row["error"], ".0e"))
         for row in rows if row["work"] == work])
        for place, work in enumerate(works)]
    if parts:
        sections.append(tables_page.Section(
            "parts", "Where the time goes", "",
            ("implementation", "work", "part", "ms", "share", "calls"),
            [(row["implementation"], row["work"], row["part"],
              milliseconds(row["time"]), number(row["share"], ".0%"),
              number(row["calls"], "d")) for row in parts]))
    if lines:
        sections.append(tables_page.Section(
            "notes", "Notes", lines=list(dict.fromkeys(lines))))
    tables_page.write(
        path, "python -m benchmarks", "Times",
        "Times of one run, each implementation validated before it was timed. "
        "A ratio below 1 is quicker than the peer; a bar ends at "
        f"{tables_page.FARTHEST} times.", sections)


#: What times each work that is not a pass through a model.
TIMED = {"generation": generation, "attention": attention, "loading": loading}


def searches_of(names):
    """The searches of some short names, as greedy-8; an unknown is refused."""
    from benchmarks.generation_implementations import SEARCHES
    short = {f"{method}-{rows}": search
             for search, (method, rows, _) in SEARCHES.items()}
    return [short[name] for name in split_words(
        names or ["all"], tuple(short), "search")]


def run(works, ports, threads, against, rounds, repeats, longest, quick, loud,
        json_file, profile, html=None, markdown_file=None, search=None):
    """Time some works, print their table, and write JSON if asked to.

    Args:
        works: of WORKS.
        ports: of numpy, torch, keras, jax.
        threads: of each library; None for one a core.
        against: the name that all are held against; None for each one's peer.
        longest: the longest target that generation writes.
        profile: whether it is also told where the time goes.
        html: a file for a page, or None.
        markdown_file: a file in which each work's table is replaced, or None.
        search: short names of the searches of generation; None for all.

    Raises:
        InputError: the Markdown lacks the comments of a work.
        typer.Exit: status 1, after all else, if a work was not timed since an
            implementation computes something else.
    """
    for work in works if against else ():
        one_of(against, known_to(work), f"implementation of {work}")
    console, notes = harness.consoles()
    settled = harness.settle(threads, -1)
    options = {"ports": ports, "against": against, "quick": quick,
               "settled": settled, "rounds": rounds, "repeats": repeats,
               "longest": longest, "loud": loud, "profile": profile,
               "searches": searches_of(search)}
    for work in works if markdown_file else ():
        between(markdown_file, harness.mark(work, settled[0]))
    every, lines, parts, off = [], [], [], []
    for work in works:
        try:
            rows, caption, of_parts = (
                TIMED[work](options, notes) if work in TIMED
                else passes(work, options, notes))
        except SystemExit as failure:  # the other works are timed all the same
            off.append(f"Not timed: {work}; {failure}")
            continue
        every += rows
        lines += [*caption, *not_measured(work, ports)]
        parts += of_parts
        if markdown_file:
            replace_between(
                markdown_file, harness.mark(work, settled[0]), "\n".join(
                    [*markdown(rows), "", *caption]))
    lines = [*off, *lines]
    if quick:
        lines.insert(0, TINY)
    console.print(table_of(every))
    if parts:
        console.print(table_of_parts(parts))
    for line in dict.fromkeys(lines):
        console.print(line, highlight=False)
    if json_file:
        write_json(json_file, {"schema": 1, "rows": every, "notes": lines,
                               "profile": parts})
    if html:
        write_page(html, every, lines, parts)
    if off:
        raise typer.Exit(1)
