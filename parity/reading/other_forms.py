"""The same file in other forms: of a framework's own layers, and for speed."""

from parity.reading import listing, sources

#: The mirrored files -> the units of native/model.py in which a framework's own
#: layers do what they do; those of torch are methods of one class.
NATIVE = {
    "embedding": ("embedded", "embed"), "positional": ("AddPositions",),
    "layer_norm": ("norm",), "attention": ("attention", "stack"),
    "feed_forward": ("feed_forward", "stack"), "residual": ("residual",),
    "encoder": ("EncoderLayer", "encode", "stack"),
    "decoder": ("DecoderLayer", "decode", "stack"),
    "projection": ("project",), "transformer": ("Transformer",)}


def shown(name, root=sources.ROOT):
    """[(id, title, words, {column: code})] of the other forms of a file."""
    forms = []
    native = {column: of_native(name, column, root)
              for column in sources.columns()[1:]}
    if any(native.values()):
        forms.append((
            "native", "Native", "The same by the framework's own layers, from "
            "native/model.py: one call decides what is written out by hand.",
            native))
    fast = {column: of_fast(name, column, root)
            for column in sources.columns()}
    if any(fast.values()):
        forms.append((
            "fast", "Fast", f"The same made for speed, from fast/{name}.py. "
            "Only what differs stands there.", fast))
    return forms


def of_native(name, column, root):
    """The code of a framework's own layers that belongs to a file, or ""."""
    path = root / sources.folder(column) / "native" / "model.py"
    if name not in NATIVE or not path.is_file():
        return ""
    file = sources.Source(path)
    ranges = []
    for unit in file.units.values():
        if unit.name in NATIVE[name]:
            last = max([unit.last, *(method.opening[1] for method
                                     in unit.methods.values())])
            ranges.append((unit.first, last, False))
            continue
        ranges += [(*method.opening, False) for each, method
                   in unit.methods.items() if each in NATIVE[name]
                   and unit.kind == "class"]
    return code(file, ranges)


def of_fast(name, column, root):
    """The code of a file's fast form, or "" if there is none."""
    path = root / sources.folder(column) / "fast" / f"{name}.py"
    if not path.is_file():
        return ""
    file, ranges = sources.Source(path), []
    readable = sources.source(column, name, root).units
    for unit in file.units.values():
        if unit.kind == "function" or (
                unit.kind == "class" and unit.name in readable):
            last = max([unit.last, *(
                line for method in unit.methods.values()
                for line in (method.opening[1], *(
                    behind[1] for _, _, behind in method.steps.values())))])
            ranges.append((unit.first, last, False))
    return code(file, ranges)


def code(file, ranges):
    """Some lines of a file as HTML, a gap between what stands apart."""
    parted = [entry for one in ranges for entry in ((0, 0, False), one)][1:]
    return listing.listing(file, parted)[0] if ranges else ""
