"""The tables of ``docs/dialects.md`` that the originals' answers fill."""

import itertools
import re

from transformer_contract.dialects.table import SYSTEMS
from parity_io.files import write_whole

#: What is said of a dialect's searches, before a column a port.
SEARCHED = ("dialect", "models", "inputs", "searches", "ended", "left out")


def worst(findings):
    """{(dialect, kind): {port: the largest error, or None}}, and models."""
    errors, models = {}, {}
    for one in findings:
        row = errors.setdefault((one.dialect, one.kind), {})
        if one.port not in row or row[one.port] is not None:
            row[one.port] = (None if one.error is None else max(
                one.error, row.get(one.port) or 0.0))
        models.setdefault(one.dialect, set()).add(one.seed)
    return errors, {name: len(seeds) for name, seeds in models.items()}


def _fewer(findings, dialect, port):
    """How many models a port was compared on, where others had more; or ""."""
    own, every = (len({one.seed for one in findings if one.dialect == dialect
                       and which in ("", one.port)}) for which in (port, ""))
    return f" ({own})" if own < every else ""


def proof_rows(findings):
    """{column: text} for each dialect and kind; no number is a divergence."""
    errors, models = worst(findings)
    return [{"dialect": dialect, "models": str(models[dialect]),
             "compared": kind} | {
        port: "divergence" if error is None
        else f"{error:.0e}" + _fewer(findings, dialect, port)
        for port, error in row.items()}
        for (dialect, kind), row in errors.items()]


def search_rows(searches):
    """{column: text} of a dialect each.

    Under a port it says how many of its rows have the original's tokens, all
    of a beam, and the largest error of a score.
    """
    ports = list(dict.fromkeys(one.port for one in searches))
    rows = []
    for dialect in dict.fromkeys(one.dialect for one in searches):
        by = {port: [one for one in searches
                     if (one.dialect, one.port) == (dialect, port)]
              for port in ports}
        first = by[ports[0]]
        asked = sum(one.rows for one in first)
        rows.append(dict(zip((*SEARCHED, *ports), (
            dialect, str(len({one.seed for one in first})),
            str(sum({one.seed: one.rows for one in first}.values())),
            str(asked), f"{sum(one.ended for one in first) / asked:.0%}",
            str(sum(one.left_out for one in first)),
            *map(_equal, by.values())))))
    return rows


def _equal(rows):
    """How many rows of one port are the original's, in words."""
    count = sum(one.rows - one.left_out for one in rows)
    different = sum(one.different for one in rows)
    if not rows:
        return ""
    if different:
        return f"{different} differ"
    return f"{count} equal, {max(one.error for one in rows):.0e}"


def fill(path, findings, searches):
    """Write the rows of these dialects into the page; the others' stay."""
    page = path.read_text(encoding="utf-8")
    for title, rows in (("Proved", proof_rows(findings)),
                        ("Searches", search_rows(searches))):
        page = re.sub(rf"(?<=\n)## {title}\n.*?(?=\n## )",
                      lambda found, rows=rows: _filled(found[0], rows), page,
                      count=1, flags=re.S)
    write_whole(path, page)


def _filled(section, rows):
    """A section of the page, its table with these rows instead of theirs."""
    words = section.partition("\n|")[0]
    table = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in section.splitlines() if line.startswith("|")]
    now = {row["dialect"] for row in rows}
    every = [*(dict(zip(table[0], cells)) for cells in table[2:]
               if cells[0] not in now), *rows]
    if not every:
        return section
    titles = list(dict.fromkeys(itertools.chain.from_iterable(every)))
    order = list(SYSTEMS)
    every.sort(key=lambda row: order.index(row["dialect"]))
    return "\n".join([
        words, f"| {' | '.join(titles)} |", "|---" * len(titles) + "|",
        *(f"| {' | '.join(row.get(name, '') for name in titles)} |"
          for row in every), ""])
