"""The pages beside the mirrored files, and what they show."""

import numpy as np

from transformer_contract.dialects.rows import names_of
from transformer_contract.dialects.table import DIALECTS, SYSTEMS
from parity.reading import (
    breaking, dialects, errata, lessons, rulings, sentence, slides, teaching,
    tree)
from parity.reading.curves import of_curves
from parity.reading.reference_pages import causes_page, differences_page
from parity.reading.match import of_match, worst_of
from parity.reading.shipped_model import MAPS
from parity.reading.variants import of_variants, softmax
from parity.render import pictures
from parity.render.maps import figures

#: The pages beside the mirrored files: address, title.
PAGES = (
    ("flow.html", "Data flow"), ("attention-maps.html", "Attention maps"),
    ("variants.html", "Variants"), ("dialects.html", "Other systems"),
    ("marian.html", "Marian and its port"),
    ("rulings.html", "Rulings"),
    ("layouts.html", "Weight layouts"), ("errata.html", "Errata"),
    ("differences.html", "Known differences"),
    ("causes.html", "What goes wrong"), ("break.html", "Break it"),
    ("training-curves.html", "Training curves"),
    ("match.html", "What match means"), ("lessons.html", "Lessons"),
    ("slides.html", "Slides"),
)

#: The way of the data, from text to text: step, what happens there.
WAY = (
    ("source_embedding.embedded", "Each id takes its row of the table, times "
     "the root of d_model."),
    ("source_positions.positions", "Sines and cosines of the position, the "
     "same for every sentence."),
    ("source_positions.positioned", "Both together: what stands where."),
    ("encoder.layers.0.self_attention.weights", "In the first layer every "
     "token looks at every token, each head in its own way."),
    ("encoder.layers.0.attended", "What it saw is added, and the sum is "
     "normed."),
    ("encoder.layers.0.feed_forward.activated", "Each position alone goes "
     "through a wider layer; what is negative becomes 0."),
    ("encoder.layers.0.output", "The first layer's answer."),
    ("memory", "The last layer's answer: what the decoder will read."),
    ("target_embedding.embedded", "The decoder reads the answer so far, from "
     "its begin token on."),
    ("decoder.layers.0.self_attention.weights", "It looks at what is written "
     "and never ahead: above the diagonal all is 0."),
    ("decoder.layers.0.cross_attention.weights", "Then it looks at the "
     "source, through the memory."),
    ("decoded", "The last layer's answer, a vector for each position."),
    ("output", "A score for each of the tokens, at each position."),
)


def all_of(site):
    """Yield (address, title, template, what it shows) of each page."""
    yield "index.html", "Four columns, one Transformer", "index.html", (
        of_index(site))
    makers = (of_flow, of_maps, of_variants, of_dialects,
              dialects.of_marian, of_rulings, of_layouts, of_errata,
              differences_page, causes_page, of_broken, of_curves, of_match,
              teaching.of_lessons)
    *pages, last = PAGES
    for (address, title), make in zip(pages, makers):
        yield address, title, address, make(site)
    yield from dialects.pages(site)
    yield from teaching.pages(site)
    yield *last, last[0], slides.of_slides(site)  # once the lessons have run


def addresses(root):
    """The addresses of ``all_of``, in its order."""
    *pages, last = [address for address, _ in PAGES]
    return ["index.html", *pages, *map(dialects.address, SYSTEMS),
            *map(teaching.address_of, lessons.paths(teaching.folder(root))),
            last]


#: A text of no year: a beam finds a better answer than greedy search.
VAGUE = "4 July"


def of_index(site):
    """The front page: what there is, and how far the ports are off."""
    return {
        "changes": sentence.CHANGES, "kinds": sentence.KINDS,
        "size": site.values.config,
        "models": len(site.values.runs), "picture": site.architecture.large(),
        "example": site.example(),
        "counts": {name: sum(row.kind == "step" for row in page_rows)
                   for name, page_rows in site.rows.items()},
        "worst": worst_of(site.values)}


def of_flow(site):
    """From text to text, on the worked example."""
    values = site.values
    steps = values.dates.steps["numpy"]
    stages = [{
        "step": name, "words": words,
        "row": row_of(site, name),
        "seen": site.views.shown(values.dates.seen(name), "")}
        for name, words in WAY]
    tokenizer, batch = values.tokenizer, values.dates.batch
    p = softmax(steps["output"][0])
    read = tokenizer.tokens(batch.target[0])
    answers = []
    for i, token in enumerate(read):
        best = np.argsort(-p[i], kind="stable")[:3]
        answers.append({
            "read": token, "best": [
                (piece, pictures.percent(float(p[i, j])))
                for piece, j in zip(tokenizer.tokens(best), best)]})
    ids = {column: one["tokens"][0, 0]
           for column, one in values.answers.items()}
    return {
        "example": site.example(), "stages": stages, "answers": answers,
        "ids": list(zip(tokenizer.tokens(batch.source[0]),
                        batch.source[0].tolist())),
        "vocab": values.config.source_vocab,
        "texts": {column: tokenizer.decode(tokens)
                  for column, tokens in ids.items()},
        "score": pictures.number(
            float(values.answers["numpy"]["scores"][0, 0]))}


def row_of(site, step):
    """The address of the row of a step, or ""."""
    name = step.rpartition(".")[2]
    path = step.rpartition(".")[0]
    owners = [owner for owner, paths in site.values.dates.paths.items()
              if path in paths]
    for file, page_rows in site.rows.items():
        for row in page_rows:
            if (row.kind == "step" and row.name == name
                    and row.owner in owners):
                return f"{file}.html#{row.id}"
    return ""


def of_maps(site):
    """Attention on real strings, in the four."""
    values = site.values
    sentences = [
        figures(values.maps, values.tokenizer, row, MAPS[row],
                values.pairs[MAPS[row]], row) | {
                    "tree": tree.tree_of(values, MAPS[row])}
        for row in range(len(MAPS))]
    vague = tree.tree_of(values, VAGUE)
    sentences.append({
        "source": VAGUE, "target": vague["best"]["text"], "groups": [],
        "id": "vague", "tree": vague})
    return {"sentences": sentences, "asked": "", "problem": "", "place": 0,
            "told": {}}


def of_dialects(site):
    """Every system that is read, drawn beside the paper's model."""
    return site.architecture.dialects()


def of_rulings(site):
    """The rulings, each with the steps that cite it."""
    entries, before = rulings.all_of()
    cited: dict = {number: [] for number, _, _ in entries}
    for name, lines in site.rows.items():
        for row in lines:
            for number in row.step.rulings if row.step else ():
                if row.kind == "step" and number in cited:
                    cited[number].append((
                        f"{name}.html#{row.id}", f"{row.owner} {row.name}"))
    return {"rulings": entries, "before": before, "cited": cited}


# Weight layouts

#: The arrays that the page follows into the four stores, and one entry each.
FOLLOWED = (
    ("encoder.layers.0.self_attention.query.kernel", (3, 40)),
    ("encoder.layers.0.self_attention.query.bias", (40,)),
    ("encoder.layers.0.self_attention.output.kernel", (40, 3)),
    ("encoder.layers.0.feed_forward.inner.kernel", (3, 40)),
    ("source_embedding.table", (3, 40)),
    ("encoder.layers.0.self_attention_residual.norm.scale", (3,)),
)


def of_layouts(site):
    """Some weights, as each of the four stores them."""
    values, stores = site.values, site.values.stores
    followed = []
    for name, entry in FOLLOWED:
        array = values.weights[name]
        value = array[entry]
        cells = {"numpy": (array.shape, entry)}
        for column, (arrays, _) in stores.items():
            native = arrays[name]
            at = np.argwhere(native == value)
            cells[column] = native.shape, (
                tuple(at[0].tolist()) if len(at) == 1 else None)
        followed.append({
            "name": name, "value": pictures.number(value, 8),
            "cells": cells})
    return {
        "followed": followed,
        "whole": {column: same for column, (_, same) in stores.items()},
        "weights": len(values.weights), "systems": list(systems())}


def systems():
    """Yield what other systems call one kernel and one norm's scale."""
    for name, dialect in DIALECTS.items():
        rows = list(dialect.rows_of(dialect.config(
            {"d_model": 768, "n_heads": 8})))  # of which 6, 8 or 12 are heads
        chosen = [next((row for row in rows if any(
            each.endswith(end) for each in names_of(row.ours))), None)
            for end in ("query.kernel", "scale")]
        yield name, dialect.source, [
            (", ".join(names_of(row.ours)), ", ".join(names_of(row.theirs)),
             row.how.name) for row in chosen if row]


# Errata, and what match means


def of_errata(site):
    """The errors of common lessons."""
    return {"errata": errata.all_of(site.values)}


def of_broken(site):
    """Faults put into the shipped model, and what becomes of it."""
    return site.call(breaking.shipped) | shown_broken(site)


def shown_broken(site, fault="", text="", problem="", place=0):
    """What else the page of faults shows, and what a reader asked for."""
    groups: dict = {}
    for name, cause in breaking.breakable().items():
        groups.setdefault(cause.topic, []).append(name)
    return {"picture": site.architecture.plain(), "breakable": groups,
            "asked": {"fault": fault, "text": text}, "problem": problem,
            "place": place}
