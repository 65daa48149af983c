"""The pages beside the mirrored files."""

from parity.reading import rulings

#: The pages beside the mirrored files: address, title.
PAGES = (("rulings.html", "Rulings"),)


def all_of(site):
    """Yield (address, title, template, what it shows) of each page."""
    yield "index.html", "Four columns, one Transformer", "index.html", {
        "example": site.example(),
        "counts": {name: sum(row.kind == "step" for row in rows)
                   for name, rows in site.rows.items()}}
    titles = dict(PAGES)
    for address, page in (("rulings.html", of_rulings),):
        yield address, titles[address], address, page(site)


def of_rulings(site):
    """The rulings, each with the steps that cite it."""
    found, before = rulings.all_of(site.root)
    cited = {number: [] for number, _, _ in found}
    for name, rows in site.rows.items():
        for row in rows:
            for number in row.step.rulings if row.step else ():
                if row.kind == "step" and number in cited:
                    cited[number].append((
                        f"{name}.html#{row.id}", f"{row.owner} {row.name}"))
    return {"rulings": found, "before": before, "cited": cited}
