"""Texts and token ids: what a template, a tokenizer and a collator make."""

import numpy as np

from benchmarks.dumps.pair import fault, same, unknown
from parity.dumps.named import trace_of

#: Pieces of a vocabulary, by id.
WORDS = ("<pad> <s> </s> <unk> the quick brown fox jumps over lazy dog . The "
         "un believ able unbelievable <|im_end|> < | im _ end > caf café "
         "e\u0301 \u2581the é").split()
IDS = {word: i for i, word in enumerate(WORDS)}
TEXT = "the quick brown fox jumps over the lazy dog ."


def ids(text, other=None):
    """Ids of words, of a vocabulary by name -> id."""
    return [(other or IDS)[word] for word in text.split()]


def side(rows, pieces=True, text=None, vocabulary=IDS):
    """A Trace that was given these ids, and gave the same for all."""
    made = trace_of({"inputs/input_ids": np.array(rows),
                     "outputs/x": np.ones((1, 2), np.float32)}, "dump", "")
    if pieces:
        made.raw["pieces"] = {i: word for word, i in vocabulary.items()}
    if text is not None:
        made.raw["text"] = text
    return made


def fault_of(name, says, one, two, **keywords):
    """A fault by its two rows of ids, or two dicts of what ``side`` takes."""
    def make(_):
        return [side(**each) if isinstance(each, dict) else side(
            [each], **keywords) for each in (one, two)]
    fault(says, name=name)(make)


AT = r"ids differ at row 0, place \d+: "
GOOD = ids(TEXT)
OTHER = {word: len(WORDS) - i for word, i in IDS.items()}

fault_of("begin token", AT + r".*: a begin token in b", GOOD, [1, *GOOD])
fault_of("end token", AT + r".*: an end token in a", [*GOOD, 2], GOOD)
fault_of("padding left", AT + r".*: padding stands on the left in b",
         [*GOOD, 0, 0, 0], [0, 0, 0, *GOOD])
fault_of("padding id", AT + r".*: padding is 0 in a and 2 in b",
         [*GOOD, 0, 0, 0], [*GOOD, 2, 2, 2])
fault_of("cut off", AT + r".*: b is cut off, without '.*'", GOOD,
         GOOD[:6])
fault_of("cut at the beginning",
         AT + r".*: b is cut off at its beginning, without '.*'", GOOD,
         GOOD[3:])
fault_of("another vocabulary",
         AT + r"'the' is 4 in a, \d+ in b: the same pieces have other ids",
         {"rows": [GOOD]}, {"rows": [ids(TEXT, OTHER)], "vocabulary": OTHER})
fault_of("offset", AT + r"4 in a, 5 in b: every id of b is a's \+1", GOOD,
         [each + 1 for each in GOOD], pieces=False)
fault_of("unknown words",
         AT + r".*: b has 3 at all 3 places that differ, .*",
         GOOD, [each if each not in ids("quick lazy dog") else 3
                for each in GOOD], pieces=False)
fault_of("special token in pieces",
         AT + r".*: '<\|im_end\|>' is 1 id in a and 7 in b",
         ids("the dog <|im_end|> the"), ids("the dog < | im _ end | > the"))
fault_of("word in pieces", AT + r".*: 'unbelievable' is 1 id in a and 3 in b",
         ids("the unbelievable dog"), ids("the un believ able dog"))
fault_of("lower case", AT + r"13 'The' in a, 4 'the' in b: b's text is a's "
         r"lower-cased", ids("The dog"), ids("the dog"))
fault_of("accents", AT + r"\d+ 'café' in a, \d+ 'caf' in b: b's text is .*|"
         + AT + r".*: .* in Unicode's form NFD|" + AT + r".*Unicode.*",
         ids("the café dog"), ids("the caf e\u0301 dog"))
fault_of("two words more", AT + r".*: b has 2 ids more at place 1: "
         r"'quickbrown'", ids("the dog jumps"),
         ids("the quick brown dog jumps"))
fault_of("generation prompt", AT + r".*: b is cut off, without "
         r"'<\|im_end\|>the'",
         ids("the dog . <|im_end|> the"), ids("the dog ."))


def texts(name, says, one, two):
    """A fault of the texts themselves, told before the ids."""
    fault_of(name, says, {"rows": [GOOD], "text": one},
             {"rows": [GOOD[::-1]], "text": two})


CHAT = "<|im_start|>user\nHi<|im_end|>\n"
texts("template without a prompt", r"texts differ at letter \d+: its end in "
      r"a, '<\|im_start\|>' in b: b has '<\|im_start\|>assistant\\n' more at "
      r"its end", CHAT, CHAT + "<|im_start|>assistant\n")
texts("system prompt", r"texts differ at letter 12: .*: a has 'system\\nBe "
      r"kind.<\|im_end\|>\\n<\|im_start\|>' more there",
      "<|im_start|>system\nBe kind.<|im_end|>\n" + CHAT, CHAT)
texts("line ends", r"texts differ at letter 16: '\\nHi.* in a, '\\r\\nHi.* in "
      r"b: (a's text is b's with line ends of one sign|b has '\\r' more "
      "there)", CHAT, CHAT.replace("user\n", "user\r\n"))
texts("cleaned", r"texts differ at letter 0: .*: b's text is a's lower-cased",
      "The Dog", "the dog")
texts("stripped", r"texts differ at letter 0: .*: a has ' ' more at its "
      "beginning", " the dog", "the dog")
texts("composed", r"texts differ at letter 3: .*: .* in Unicode's form NF[CD]",
      "caf\u00e9 x", "cafe\u0301 x")


# Sound pairs, and what nobody can say

@same
def equal_ids(_):
    """The same ids, from other texts and with other names of pieces."""
    return side([GOOD]), side([GOOD], vocabulary=OTHER)


@same
def wide_ids(_):
    """Ids of 64 and 32 bits."""
    return side([GOOD]), trace_of({
        "inputs/tokens": np.array([GOOD], np.int32),
        "outputs/x": np.ones((1, 2), np.float32)}, "dump", "")


@same
def one_has_a_mask(_):
    """B was given a mask besides."""
    made = side([GOOD])
    other = side([GOOD])
    other.step("(model)").inputs["attention_mask"] = np.ones((1, 10), int)
    return made, other


@same
def texts_of_other_templates(_):
    """The texts differ by a space that no id shows."""
    return side([GOOD], text=TEXT), side([GOOD], text=TEXT + " ")


@unknown
def shuffled(_):
    """The words in another order, which no rule explains."""
    order = np.random.default_rng(3).permutation(len(GOOD))
    return (side([GOOD], pieces=False),
            side([[GOOD[i] for i in order]], pieces=False))


@unknown
def another_text(_):
    """Ids of another text."""
    return (side([GOOD], pieces=False),
            side([ids("brown dog jumps . over the fox the quick lazy")],
                 pieces=False))


@unknown
def another_text_with_pieces(_):
    """The same, with pieces on both sides."""
    return (side([GOOD]), side([ids(
        "brown dog jumps . over the fox the quick lazy")]))
