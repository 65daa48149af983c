"""Layout and mirroring: four folders that can be read side by side.

Nothing here imports a framework; the files are read as text and as syntax.
"""

import ast
import re

import numpy as np
import pytest

from transformer_contract import components
from transformer_contract.config import PAPER, PRESETS, TransformerConfig
from transformer_contract.steps import AXES, assigned, read_steps
from parity import ports
from parity.check import cases
from parity_tests.support.places import (
    CORE, MIRRORED, PORTS, READ_SIDE_BY_SIDE, REFERENCE, ROOT, is_there,
    readable)

#: Names that one framework forces, by port and file.
FORCED = {
    # Keras' own attention projects, and gives its scores to be weighed
    ("keras", "attention.py"): {
        "MultiHeadAttention.make_projections", "MultiHeadAttention.softmax",
        "MultiHeadAttention.heads_first", "MultiHeadAttention.heads_last",
        "MultiHeadAttention.compute_output_spec"},
    ("keras", "dialects/attention.py"): {
        "DialectAttention.make_projections", "DialectAttention.projection",
        "DialectAttention.softmax", "RelativeAttention.attend"},
    # its lengths may be unknown, and are asked of the backend
    ("keras", "positional.py"): {"rows", "check_length"},
    ("keras", "dialects/positional.py"): {"DialectPositions.unpadded"},
    ("keras", "layer_norm.py"): {"average"},
    # torch's table itself knows a row that learns nothing
    ("keras", "dialects/embedding.py"): {"DialectEmbedding.rows"},
    ("jax", "dialects/embedding.py"): {"UnlearnedTable", "UnlearnedTable.call"},
    ("mlx", "dialects/embedding.py"): {"UnlearnedTable", "UnlearnedTable.call"},
    # what the loss of fast/ multiplies by the table itself
    ("torch", "dialects/output.py"): {"Output.projected"},
    ("mlx", "dialects/output.py"): {"Output.projected"},
    ("torch", "parameters.py"): {"home", "leaf_of"},
    ("jax", "parameters.py"): {"home"},
    # a module draws its first numbers even where shapes alone are asked for
    ("jax", "dropout.py"): {"FixedStream", "FixedStream.call", "unmoved"},
    ("mlx", "parameters.py"): {"home", "leaf_of"},
}

#: Names that a framework's users expect of a model, by file.
EXPECTED = {
    "transformer.py": {"Transformer.compute_output_spec"},
    "dialects/one_stack.py": {"EncoderModel.compute_output_spec"},
    "dropout.py": {"evaluating", "reseed"},
}

#: What a framework gives in the place of methods of the reference.
GIVEN = {
    ("keras", "attention.py"): {
        f"MultiHeadAttention.{name}" for name in ("merge", "score", "split")},
    ("keras", "dialects/attention.py"): {"RelativeAttention.score"},
    ("keras", "dialects/positional.py"): {
        "DialectPositions.rows", "DialectPositions.unpadded_rows"},
    ("keras", "dropout.py"): {"Dropout.__init__"},
    ("torch", "dialects/positional.py"): {"SinusoidalPositions.values"},
}

#: What a framework's call takes besides: Keras says whether it trains, and
#: its models make the projection before a first call.
OTHERWISE = {("keras", "dropout.py"): {"Dropout.call"},
             ("keras", "dialects/output.py"): {"Output.end"}}

#: Files that one framework forces: Keras asks its backend for gradients; MLX
#: differentiates functions of arrays, and has functions that are float32's.
FORCED_FILES = {"keras": {"gradients.py", "whole.py"},
                "torch": {"linear.py"}, "jax": {"linear.py"},
                "mlx": {"exact.py", "gradients.py", "linear.py"}}

#: Helpers of the hand-written backward pass, and what NumPy lacks.
NUMPY_ONLY = {"softmax", "sum_to", "normal_cdf", "sigmoid", "flatten", "held"}

#: What a call is called, and parameters that mean the same.
CALLS = {"forward": "call", "__call__": "call", "call": "call"}

#: Folder -> all that it may import beside Python and this project.
LIBRARIES = {
    "parity_io": {"ml_dtypes", "numpy", "safetensors"},
    "transformer_contract": {"ml_dtypes", "numpy", "tokenizers"},
    "reference_numpy": {"numpy"},
}


def original(name):
    """The file that a port's is held against.

    The reference hands on the contract's random numbers, which are NumPy's.
    """
    return (ROOT / "transformer_contract" if name == "random.py"
            else REFERENCE) / name


#: A test of the reference and of each port.
four = pytest.mark.parametrize("folder", [REFERENCE, *PORTS.values()],
                               ids=lambda folder: folder.name)


def files(*folders):
    return [path for folder in folders
            for path in sorted((ROOT / folder).rglob("*.py"))]


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def signature(function):
    """Parameter names, without self and what is keyword-only in NNX.

    Nor ``c``, to which the reference adds steps that ports tap.
    """
    names = [a.arg for a in function.args.args if a.arg not in ("self", "c")]
    if function.args.vararg:
        names.append("*" + function.args.vararg.arg)
    return names


def public(path):
    """{qualified name: parameters} of a file's classes and functions."""
    found = {}
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_":
            found[node.name] = signature(node)
        if isinstance(node, ast.ClassDef) and node.name[0] != "_":
            found[node.name] = None
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and not re.match(
                        "_[^_]", item.name):
                    name = CALLS.get(item.name, item.name)
                    found[f"{node.name}.{name}"] = signature(item)
    return found


@pytest.mark.parametrize("port", PORTS)
def test_same_files(port):
    there = set(readable(PORTS[port]))
    assert there == set(MIRRORED) | FORCED_FILES.get(port, set())


@pytest.mark.parametrize("port", PORTS)
def test_same_names_and_signatures(port):
    """Every public name of the reference, called alike, and no other.

    A framework's base class may need an __init__ where NumPy needs none, and
    the reference's backward passes have no counterpart.
    """
    for name in READ_SIDE_BY_SIDE:
        ours, theirs = public(original(name)), public(PORTS[port] / name)
        forced = FORCED.get((port, name), set()) | EXPECTED.get(name, set())
        given = NUMPY_ONLY | GIVEN.get((port, name), set())
        extra = {n for n in theirs.keys() - ours.keys() - forced
                 if not n.endswith(".__init__")}
        lacking = {n for n in ours.keys() - theirs.keys() - given
                   if not n.endswith((".backward", ".table", "_backward"))}
        assert not extra and not lacking, name
        for qualified in (ours.keys() & theirs.keys()
                          - OTHERWISE.get((port, name), set())):
            assert theirs[qualified] == ours[qualified], (name, qualified)


@pytest.mark.parametrize("port", PORTS)
def test_same_order(port):
    """What stands in both stands in the same order."""
    for name in READ_SIDE_BY_SIDE:
        ours, theirs = list(public(original(name))), public(PORTS[port] / name)
        theirs = [n for n in theirs if n in ours]
        assert theirs == [n for n in ours if n in theirs], name


def engine_functions(path):
    return {node.name for node in tree(path).body
            if isinstance(node, ast.FunctionDef) and node.name[0] != "_"}


#: What the harness calls.
INTERFACE = {"versions", "set_precision", "devices", "build", "export",
        "call", "run", "forward", "gradients", "predict", "generate",
        "initial_weights", "trainer",
        "train_step", "moments", "resume", "run_residual", "masks", "loss",
        "matmul", "to_native", "to_numpy"}


@four
def test_engines_have_one_interface(folder):
    assert INTERFACE <= engine_functions(folder / "engine.py")


def markers(path):
    return [(s.owner, s.number, s.name, s.dims, s.text)
            for s in read_steps(path) if not s.backward]


@pytest.mark.parametrize("port", PORTS)
def test_same_markers(port):
    """Forward markers are byte-identical and stand in the same order."""
    for name in READ_SIDE_BY_SIDE:
        assert markers(PORTS[port] / name) == markers(REFERENCE / name), name


@four
def test_markers_are_numbered_and_name_what_follows(folder):
    for path in files(folder):
        last = {}
        for step in read_steps(path):
            if step.backward:
                continue
            assert step.number == last.get(step.owner, 0) + 1, (path, step)
            last[step.owner] = step.number
            assert step.name in assigned(step), (path, step)
            assert set(step.dims) <= {*AXES, "1", "*"}, (path, step)


def test_there_are_markers():
    """The tests above are not passed by files without markers."""
    count = sum(len(markers(REFERENCE / name)) for name in READ_SIDE_BY_SIDE)
    assert count == 125


def dims_of_steps():
    """(owner, step name) -> dims."""
    return {(s.owner, s.name): s.dims for name in READ_SIDE_BY_SIDE
            for s in read_steps(REFERENCE / name) if not s.backward}


def owners(case, config):
    """The classes in which a component's own steps are marked."""
    make, arguments = components.component(
        "reference_numpy", case.component, config)
    return [kind.__name__ for kind in type(make(*arguments)).__mro__]


@pytest.mark.parametrize("preset", PRESETS)
def test_traced_shapes_are_what_the_markers_say(preset):
    """Within one case every letter stands for one size."""
    from transformer_contract.weights import probe_weights
    from parity.check.run import EngineRunner
    config = cases.test_size(preset)
    known = {"D": config.d_model, "H": config.n_heads, "K": config.d_k,
             "F": config.d_ff, "V": config.target_vocab, "1": 1}
    dims = dims_of_steps()
    runner = EngineRunner(ports.engine("numpy"), config, probe_weights(config),
                          "float64")
    seen = 0
    for case in cases.component_cases(config):
        if case.kind != "run":
            continue
        sizes = dict(known)
        for name, value in runner.steps(case, case.inputs).items():
            if "." in name:
                continue
            letters = next(dims[owner, name] for owner
                           in owners(case, config) if (owner, name) in dims)
            assert len(letters) == value.ndim, (case.name, name)
            for letter, size in zip(letters, value.shape):
                assert sizes.setdefault(letter, size) == size, (
                    case.name, name, letters, value.shape)
                seen += 1
    assert seen > 100


def imports(path):
    """The top-level modules that a file imports, anywhere in it."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module.split(".")[0]


@pytest.mark.parametrize("folder", LIBRARIES)
def test_contract_and_reference_need_no_framework(folder):
    import sys
    for path in files(folder):
        for module in imports(path):
            assert (module in LIBRARIES[folder] or module in LIBRARIES
                    or module in sys.stdlib_module_names), (
                f"{path.relative_to(ROOT)} imports {module}")


@four
def test_no_default_arguments_in_mirrored_files(folder):
    """Every number that touches the maths is a field of the config.

    A call may be left to find a mask, or whether it trains.
    """
    for node in (node for name in READ_SIDE_BY_SIDE
                 for node in ast.walk(tree(folder / name))):
        if not isinstance(node, ast.FunctionDef):
            continue
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        called = {*CALLS, "compute_output_spec"}
        if node.name in called:
            defaults = [each for each in defaults
                        if getattr(each, "value", 0) not in (None, False)]
        assert not defaults, f"{node.name} has a default"


#: What a core file may read of a dialect's field: how the loss smooths, of
#: which three forms are one formula with other numbers.
READ_IN_CORE = {"smoothing"}


@four
def test_the_core_is_the_paper(folder):
    """It knows neither dialects nor fields of a config that are theirs."""
    others = set(TransformerConfig().as_dict()) - set(PAPER) - READ_IN_CORE
    for node in (node for name in CORE
                 for node in ast.walk(tree(folder / f"{name}.py"))):
        if isinstance(node, ast.ImportFrom):
            assert "dialects" not in node.module
        if isinstance(node, ast.Attribute) and isinstance(
                node.value, ast.Name | ast.Attribute):
            of = getattr(node.value, "id", getattr(node.value, "attr", ""))
            assert of != "config" or node.attr not in others, node.attr


@four
def test_parts_names_what_is_there(folder):
    """Every class and function of its tables; and it imports none of them."""
    found = 0
    for node in ast.walk(tree(folder / "parts.py")):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            path = re.fullmatch(r"([a-z_.]+)\.(\w+)", node.value)
            if path:
                file = folder / f"{path[1].replace('.', '/')}.py"
                assert path[2] in {each.name for each in tree(file).body
                                   if hasattr(each, "name")}, node.value
                found += 1
        if isinstance(node, ast.ImportFrom):
            assert node.module.split(".")[0] == "transformer_contract"
    assert found > 40


#: What a file calls, or gives a call, for speed alone.
FOR_SPEED = {
    "jit", "function", "compile", "checkpoint", "remat", "vmap", "scan",
    "fori_loop", "while_loop", "foreach", "fused", "inplace", "donate_argnums",
    "out", "copyto", "empty", "ThreadPoolExecutor", "lru_cache"}

#: Threefry has a hundred operations, and a framework that calls each by itself
#: takes longer for them than for all others.
ONE_CALL = {("jax", "random.py"): {"jit"}, ("keras", "random.py"): {"function"}}

#: Frameworks differentiate functions; the reference and torch need none.
DIFFERENTIATED = {"loss_of", "of_values", "of_weights"}


@four
def test_nothing_is_there_for_speed(folder):
    """Nor a function inside another, which a reader has to keep in mind."""
    port = folder.name.removeprefix("impl_")
    for name in READ_SIDE_BY_SIDE:
        words, inside = set(), set()
        for node in ast.walk(tree(folder / name)):
            words |= {getattr(node, field, None)
                      for field in ("attr", "id", "arg")}
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                inside |= {getattr(each, "name", "lambda")
                           for each in ast.walk(node) if each is not node
                           and isinstance(each, (ast.FunctionDef, ast.Lambda))}
        assert words & FOR_SPEED <= ONE_CALL.get((port, name), set()), name
        assert inside <= DIFFERENTIATED, name


def rulings():
    text = (ROOT / "RULINGS.md").read_text(encoding="utf-8")
    parts = re.split(r"^## R(\d+)\. ", text, flags=re.M)[1:]
    return {int(n): body for n, body in zip(parts[::2], parts[1::2])}


def test_rulings_are_numbered_without_gaps():
    assert list(rulings()) == list(range(1, len(rulings()) + 1))


def test_every_ruling_that_is_cited_stands():
    known = rulings()
    for path in files("transformer_contract", "reference_numpy", "parity", *(
            folder.name for folder in PORTS.values())):
        for number in re.findall(r"\bR(\d+)\b", path.read_text()):
            assert int(number) in known, f"{path} cites R{number}"


def test_every_ruling_names_a_test_that_is_there():
    for number, text in rulings().items():
        tests = re.findall(r"`(test_\w+\.py(?:::\w+)?)`", text)
        assert tests, f"R{number} names no test"
        for test in tests:
            assert is_there(test), f"R{number} names {test}"


def test_sizes_at_test_size_differ():
    """A swapped or transposed axis cannot hide behind an equal size."""
    for preset in PRESETS:
        config = cases.test_size(preset)
        sizes = [cases.BATCH, cases.SOURCE, cases.TARGET, config.d_model,
                 config.n_heads, config.d_k, config.d_ff,
                 config.source_vocab, config.n_encoder_layers,
                 config.n_decoder_layers]
        if not config.embeddings_tied:
            sizes.append(config.target_vocab)
        assert len(set(sizes)) == len(sizes)
        for size in (config.d_model, config.d_k):
            assert not np.log2(size).is_integer() or np.log2(size) % 2
