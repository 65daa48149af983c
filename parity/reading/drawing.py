"""The Transformer as SVG, from the bottom up: boxes, and the way between."""

import dataclasses

from markupsafe import Markup

from parity.reading import diagram

#: A box's width, the height of a box, of a norm and of a sum, and the room
#: between them, in pixels.
WIDE, TALL, SLIM, ROUND, GAP = 190, 36, 24, 20, 17

#: Where each stack's boxes begin, and how much a frame is wider than they are.
LEFT, FRAME, WIDTH = {"encoder": 34, "decoder": 316}, 26, 540

#: How tall each kind of Box is.
HEIGHTS = {"box": TALL, "norm": SLIM, "sum": ROUND, "text": 16}


def height_of(box):
    """How tall a Box is drawn."""
    return HEIGHTS[box.kind]


@dataclasses.dataclass
class Drawing:
    """A model as SVG.

    Args:
        model: its Stacks.
        address: owner -> where its rows are, or "".
        shapes: path -> the size of what leaves it, in words.
        values: path -> words on what leaves it.
        here: the owners that are lit, where one is.
        others: what another model has at each path, so that what differs is
            marked; None to mark nothing.
    """

    model: list
    address: dict = dataclasses.field(default_factory=dict)
    shapes: dict = dataclasses.field(default_factory=dict)
    values: dict = dataclasses.field(default_factory=dict)
    here: tuple = ()
    others: dict | None = None

    def __post_init__(self):
        self.parts = []
        self.tops = {}

    def svg(self, words, small=False):
        """The SVG; ``words`` say what it shows, and a small one has no text."""
        self.small = small
        height = max(self.height(stack) for stack in self.model) + 8
        lefts = LEFT if len(self.model) > 1 else {
            stack.name: LEFT["encoder"] for stack in self.model}
        for stack in self.model:
            self.stack(stack, lefts[stack.name], height)
        if len(self.model) > 1:
            self.memory()
        width = WIDTH if len(self.model) > 1 else WIDE + 2 * FRAME + 16
        return Markup(
            '<svg class="model{}" viewBox="0 0 {w} {h}" {}role="{}" '
            'aria-label="{}">{}</svg>').format(
                " small" if small else "",
                "" if small else Markup(
                    'width="{}" height="{}" ').format(width, height),
                "img" if small or not self.address else "group",
                words, Markup("").join(self.parts), w=width, h=height)

    @staticmethod
    def height(stack):
        """How tall a stack is."""
        boxes = [*stack.before, *sum(stack.layer, []), *stack.after]
        return sum(height_of(box) + GAP for box in boxes) + 3 * GAP

    def stack(self, stack, left, height):
        """Draw a stack from the bottom up, its way behind all else."""
        y, behind = height - 4, len(self.parts)
        for box in stack.before:
            y = self.box(box, left, y)
            self.size(box, left, y)
        bottom = y - 2
        y -= GAP
        for group in stack.layer:
            start = y + GAP / 2
            for box in group:
                y = self.box(box, left, y)
                if box.kind == "sum":
                    self.skip(left, start, y + GAP + height_of(box) / 2)
        top = y + GAP / 2
        y -= GAP
        for box in stack.after:
            y = self.box(box, left, y)
            self.size(box, left, y)
        ends = bool(stack.after) and stack.after[-1].kind == "text"
        self.tops[stack.name] = left + WIDE / 2, y + GAP
        self.parts[behind:behind] = [
            self.frame(stack, left, top, bottom),
            self.flow(left + WIDE / 2, height - 22,
                      y + GAP + (18 if ends else 0), ends)]

    def box(self, box, left, bottom):
        """Draw a Box whose lower edge is at ``bottom``: where the next's is."""
        top, middle = bottom - height_of(box), left + WIDE / 2
        if box.kind != "text":
            self.linked(box, self.shape(box, left, top, middle))
        elif not self.small:
            self.parts.append(Markup(
                '<text class="end" x="{}" y="{}">{}</text>').format(
                    middle, bottom - 4, box.words))
        self.tops[box.path] = left, top + height_of(box) / 2
        return top - GAP

    def size(self, box, left, bottom):
        """Write the size of what leaves a Box beside its way on."""
        size = self.shapes.get(box.path, "")
        if size and not self.small:
            self.parts.append(Markup(
                '<text class="size" x="{}" y="{}">{}</text>').format(
                    left + WIDE / 2 + 8, bottom + GAP - 5, size))

    @staticmethod
    def flow(x, bottom, top, ends):
        """The way of the data through a stack, with a head where it ends."""
        head = Markup('<path class="flow" d="M{} {}l4 -7 4 7"/>').format(
            x - 4, top + 7) if ends else ""
        return Markup('<path class="flow" d="M{} {}V{}"/>').format(
            x, bottom, top) + head

    def shape(self, box, left, top, middle):
        """The shape of a Box and its words."""
        if box.kind == "sum":
            return Markup(
                '<circle cx="{0}" cy="{1}" r="{2}"/><path d="M{3} {1}h10m-5 '
                '-5v10"/>').format(middle, top + ROUND / 2, ROUND / 2,
                                   middle - 5)
        shape = Markup(
            '<rect x="{}" y="{}" width="{}" height="{}" rx="{}"/>').format(
                left, top, WIDE, height_of(box), 6 if box.kind == "box" else 12)
        if self.small:
            return shape
        lines = [(top + height_of(box) / 2 + (-1 if box.more else 5), "words",
                  box.words)]
        if box.more:
            lines.append((top + height_of(box) - 6, "more", box.more))
        return shape + Markup("").join(
            Markup('<text class="{}" x="{}" y="{}">{}</text>').format(
                kind, middle, y, words) for y, kind, words in lines)

    def linked(self, box, shape):
        """Add a shape, with a link to its rows and what leaves it."""
        owners = (box.owner, *box.helpers)
        lit = any(owner in self.here for owner in owners)
        other = self.others is not None and (
            self.others.get(box.path) != diagram.signature(box))
        classes = " ".join(["part", box.kind, *(["lit"] if lit else []),
                            *(["other"] if other else [])])
        where = self.address.get(box.owner)
        words = box.words if box.kind != "sum" else "Sum of the residual"
        told = self.values.get(box.path, "")
        inner = shape
        if where and not self.small:
            inner = Markup('<a href="{}" aria-label="{}">{}{}</a>').format(
                where, f"{words}, {box.path}", Markup(
                    "<title>{}</title>").format(
                        f"{box.path}: {box.owner}. {told}"), shape)
        self.parts.append(Markup(
            '<g class="{}" data-owners="{}" data-path="{}">{}</g>').format(
                classes, " ".join(owners), box.path, inner))

    def skip(self, left, start, end):
        """Draw a residual's way around its sub-layer."""
        self.parts.append(Markup(
            '<path class="flow skip" d="M{} {}H{}q-6 0 -6 -6V{}q0 -6 6 -6H{}"'
            '/>').format(left + WIDE / 2, start, left - 7, end + 6,
                         left + WIDE / 2 - ROUND / 2))

    def frame(self, stack, left, top, bottom):
        """What a layer is, behind its boxes, and how many there are."""
        lit = ("EncoderLayer" if stack.name == "encoder" else
               "DecoderLayer") in self.here
        total = next(box.path for box in stack.layer[-1] if box.kind == "sum")
        words = "" if self.small else Markup(
            '<text class="count" x="{}" y="{}">× {}</text>').format(
                left + WIDE + FRAME - 8, self.tops[total][1] + 4, stack.count)
        return Markup(
            '<rect class="frame{}" x="{}" y="{}" width="{}" height="{}" '
            'rx="10"/>').format(" lit" if lit else "", left - FRAME, top,
                                WIDE + 2 * FRAME, bottom - top) + words

    def memory(self):
        """Draw the way from the encoder's output to what reads it."""
        x, y = self.tops["encoder"]
        left, at = next(place for path, place in self.tops.items()
                        if path.endswith("cross_attention"))
        between = (LEFT["encoder"] + WIDE + left) / 2
        self.parts.append(Markup(
            '<path class="flow memory" d="M{} {}V{}q0 -8 8 -8H{}q8 0 8 8V{}q0 '
            '8 8 8H{}"/><path class="flow memory" d="M{} {}l7 4 -7 4"/>'
        ).format(x, y, y - 6, between - 8, at - 8, left, left - 7, at - 4))
        if not self.small:
            self.parts.append(Markup(
                '<text class="size" x="{}" y="{}">memory {}</text>').format(
                    x + 8, y - 20, self.shapes.get("memory", "")))
