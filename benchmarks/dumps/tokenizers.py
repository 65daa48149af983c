"""Ids that the library tokenizers makes, and transformers' chat templates."""

import functools
import json

import numpy as np

from benchmarks.dumps.pair import fault, same, unknown
from parity.dumps.named import trace_of
from parity.inputs import raw

#: What the tokenizers learn from.
LEARNT = ["the quick brown fox jumps over the lazy dog. " * 3,
          "He said: don't touch 1234567 numbers! Café naïve élan.",
          "unbelievable unhappiness; models, tokenizers and templates."] * 4

ROWS = ["The quick brown fox", "Café 12345 don't touch", "unbelievable dog"]

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>"]


@functools.cache
def learnt(kind):
    """A tokenizer, as text: "BPE", "WordPiece" or "Unigram"."""
    import tokenizers as library
    from tokenizers import models, pre_tokenizers, trainers
    options = {"special_tokens": SPECIAL, "show_progress": False}
    if kind == "BPE":
        made = library.Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel
            .alphabet(), **options)
    elif kind == "WordPiece":
        made = library.Tokenizer(models.WordPiece(unk_token="<unk>"))
        made.normalizer = library.normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=200, **options)
    else:
        made = library.Tokenizer(models.Unigram())
        made.normalizer = library.normalizers.NFKC()
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=150, unk_token="<unk>", **options)
    made.train_from_iterator(LEARNT, trainer)
    return made.to_str()


def tokenizer(kind, change=None, ends=None, **settings):
    """A PreTrainedTokenizerFast.

    Args:
        kind: as of ``learnt``.
        change: a function that alters the tokenizer's own dict.
        ends: a template of special tokens, such as "<s> $A".
        settings: of transformers.
    """
    import tokenizers as library
    from transformers import PreTrainedTokenizerFast
    made = json.loads(learnt(kind))
    if change is not None:
        change(made)
    made = library.Tokenizer.from_str(json.dumps(made))
    if ends:
        made.post_processor = library.processors.TemplateProcessing(
            single=ends, special_tokens=[(each, SPECIAL.index(each))
                                         for each in SPECIAL if each in ends])
    return PreTrainedTokenizerFast(tokenizer_object=made, **{
        "pad_token": "<pad>", "bos_token": "<s>", **settings})


def side(kind="BPE", rows=tuple(ROWS), call=None, text=True, **settings):
    """A Trace that was given the ids of some rows."""
    made = tokenizer(kind, **settings)
    ids = np.asarray(made([*rows], **{
        "padding": True, "return_tensors": "np", **(call or {})})["input_ids"])
    return given(ids, made, [*rows] if text else None)


def given(ids, made, text=None):
    """A Trace that was given ids, and knows what they were made of."""
    trace = trace_of({"inputs/input_ids": ids,
                      "outputs/x": np.ones((1, 2), np.float32)}, "dump", "")
    before = {"tokenizer": made} | ({} if text is None else {"text": text})
    trace.raw |= raw.kept(raw.checked(before, "make"), {"input_ids": ids})
    return trace


def fault_of(name, says, two, one=None, unlike=False):
    """A fault by the settings of both sides, as ``side`` takes them."""
    put = unknown if unlike else fault(
        r"ids differ at row \d+, place \d+: .*: " + says, name=name)

    def make(_):
        return side(**(one or {})), side(**two)
    make.__name__ = name
    put(make)


def set_in(*path, value):
    """A function that sets an entry of a tokenizer's dict."""
    def change(made):
        for key in path[:-1]:
            made = made[key]
        made[path[-1]] = value
    return change


def without_a_merge(made):
    """Drop the merge that makes "he"."""
    made["model"]["merges"] = [
        each for each in made["model"]["merges"] if [*each] != ["h", "e"]]


def exchanged(made):
    """Exchange the ids of pieces, two by two."""
    names = sorted(made["model"]["vocab"], key=made["model"]["vocab"].get)
    for one, two in zip(names[-60::2], names[-59::2]):
        ids = made["model"]["vocab"]
        ids[one], ids[two] = ids[two], ids[one]


def shifted(made):
    """One id more before all that are no special tokens."""
    ids = made["model"]["vocab"]
    for name in ids:
        ids[name] += ids[name] >= len(SPECIAL)


def plain_marks(made):
    """The marks of a chat are no special tokens any more."""
    made["added_tokens"] = [each for each in made["added_tokens"]
                            if "im_" not in each["content"]]


def digits(made):
    """Digits are split one by one."""
    made["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": True}, made["pre_tokenizer"]]}


fault_of("a space before", "a space before the text in b", {
    "change": set_in("pre_tokenizer", "add_prefix_space", value=True)})
fault_of("digits", "'Ġ12' is 1 id in a and 3 in b", {"change": digits})
fault_of("left", "padding stands on the left in b", {"padding_side": "left"})
fault_of("padded with the end", "padding is 0 in a and 2 in b",
         {"pad_token": "</s>"})
fault_of("truncated", "b is cut off, without .*touch.*", {
    "call": {"truncation": True, "max_length": 6}})
fault_of("truncated on the left", "a is cut off at its end, the other at its "
         "beginning", {"truncation_side": "left", "rows": ROWS[1:2],
                       "call": {"truncation": True, "max_length": 6}},
         {"rows": ROWS[1:2], "call": {"truncation": True, "max_length": 6}})
fault_of("padded to the longest", r"rows are padded to \d+ places in a and to "
         "40 in b", {"call": {"padding": "max_length", "max_length": 40}})
fault_of("begin", "a begin token in b", {"ends": "<s> $A"})
fault_of("begin and end", "a begin and an end token in b",
         {"ends": "<s> $A </s>"})
fault_of("no special tokens", "a begin and an end token in a",
         {"ends": "<s> $A </s>", "call": {"add_special_tokens": False}},
         {"ends": "<s> $A </s>"})
fault_of("a merge is lost", "'he' is 1 id in a and 2 in b",
         {"change": without_a_merge})
fault_of("ids exchanged", "the same pieces have other ids",
         {"change": exchanged})
fault_of("ids moved", "the same pieces have other ids", {"change": shifted})
fault_of("cased", r"b does not know \d+ pieces?, and has '<unk>' there",
         {"kind": "WordPiece", "change": set_in(
             "normalizer", "lowercase", value=False)}, {"kind": "WordPiece"})
fault_of("no space before", "a space before the text in a",
         {"kind": "Unigram", "change": set_in(
             "pre_tokenizer", "prepend_scheme", value="never")},
         {"kind": "Unigram"})


#: A template as of ChatML; with a system's words if there are none.
CHAT = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + "
        "m['content'] + '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
        "{% endif %}")
SYSTEM = ("{% if messages[0]['role'] != 'system' %}"
          "{{ '<|im_start|>system\nBe kind.<|im_end|>\n' }}{% endif %}" + CHAT)
MESSAGES = [{"role": "user", "content": " Hello there "}]


def chat(template=CHAT, prompt=True, again=False, text=True, **settings):
    """A Trace that was given a chat.

    Args:
        prompt: whether the answer is begun.
        again: whether special tokens are added to what has them.
        text: whether the text is known, not the ids alone.
    """
    made = tokenizer("BPE", extra_special_tokens=SPECIAL[4:], **settings)
    words = made.apply_chat_template(
        MESSAGES, chat_template=template, tokenize=False,
        add_generation_prompt=prompt)
    ids = np.asarray(made(words, add_special_tokens=again,
                          return_tensors="np")["input_ids"])
    return given(ids, made, words if text else None)


def chat_fault(name, says, two, one=None):
    """A fault of a template, or of what is done with its text."""
    fault(says, name=name)(lambda _: (chat(**(one or {})), chat(**two)))


AT = r"ids differ at row 0, place \d+: .*: "
chat_fault("no answer begun", r"texts differ at letter \d+: .*: a has "
           r"'<\|im_start\|>assistant\\n' more at its end", {"prompt": False})
chat_fault("no answer begun, ids", AT + r"b is cut off, without "
           r"'<\|im_start\|>assistantĊ'", {"prompt": False, "text": False},
           {"text": False})
chat_fault("system", r"texts differ at letter 12: .*: b has 'system\\nBe kind."
           r".*' more there", {"template": SYSTEM})
chat_fault("system, ids", AT + r"a is cut off at its beginning, without "
           r"'<\|im_start\|>system.*'", {"template": SYSTEM, "text": False},
           {"text": False})
TRIMMED = CHAT.replace("m['content']", "m['content'] | trim")
chat_fault("trimmed", r"texts differ at letter 17: .*: they differ in spaces "
           "and line ends alone", {"template": TRIMMED})
chat_fault("trimmed, ids", AT + "they differ in spaces and line ends alone",
           {"template": TRIMMED, "text": False}, {"text": False})
chat_fault("two begin tokens", AT + "a begin token in b",
           {"template": "{{ bos_token }}" + CHAT, "again": True,
            "ends": "<s> $A"},
           {"template": "{{ bos_token }}" + CHAT, "ends": "<s> $A"})


@fault(AT + r"'<\|im_start\|>' is 1 id in a and \d+ in b")
def marks_in_pieces(_):
    """The marks of the chat are spelt."""
    made = tokenizer("BPE", change=plain_marks)
    text = MESSAGES[0]["content"].join(["<|im_start|>user\n", "<|im_end|>\n"])
    whole = tokenizer("BPE")
    return [given(np.asarray(each(text, return_tensors="np")["input_ids"]),
                  each, text) for each in (whole, made)]


def sound(name, one, two):
    """A sound pair by the settings of both sides."""
    same(lambda _: (side(**one), side(**two)), name)


sound("BPE twice", {}, {})
sound("WordPiece twice", {"kind": "WordPiece"}, {"kind": "WordPiece"})
sound("Unigram twice", {"kind": "Unigram"}, {"kind": "Unigram"})
sound("a merge that is not used", {}, {"change": lambda made: made["model"][
    "merges"].pop()})


@same
def template_in_one_step(_):
    """The ids of a template, by transformers' own call."""
    made = tokenizer("BPE", extra_special_tokens=SPECIAL[4:])
    ids = made.apply_chat_template(
        MESSAGES, chat_template=CHAT, add_generation_prompt=True,
        return_dict=True, return_tensors="np")["input_ids"]
    return chat(), given(np.asarray(ids), made)


fault_of("another tokenizer", "", {"kind": "WordPiece"}, {}, unlike=True)
