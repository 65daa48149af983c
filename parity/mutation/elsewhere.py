"""Edits that change nothing here, and would on a device or with a backend."""

from parity.mutation import proofs
from parity.mutation.entries import (
    ALL, ANY, JAX, KERAS, NO_BACKEND, NO_DEVICE, TORCH, entries)

ELSEWHERE = (
    *entries(
        TORCH, "dropout.py", NO_DEVICE,
        proofs.one_device("torch"),
        ("return torch.rand(shape, device=key.device) >= rate",
         ", device=key.device → ")),
    *entries(
        ALL, "engine.py", NO_DEVICE,
        proofs.one_device(*ALL),
        ("return to_numpy(to_native(a, device) @ to_native(b, device))",
         "to_native(b, device) → b")),
    *entries(
        JAX, "engine.py", NO_DEVICE,
        proofs.one_device("jax"),
        ('for name in ("cpu", "cuda", "tpu"):',
         '"cpu", "cuda" → "cuda", "cpu"', '"cuda" → "cuda_"',
         '"cuda", "tpu" → "tpu", "cuda"', '"tpu" → "tpu_"'),
        ("x = jnp.ones((2, 2), device=jax.devices(name)[0])", "0 → -1"),
        ("if (x @ x).sum().item() == 8:",
         "(x @ x).sum().item() == 8 → True"),
        ("return jax.device_put(value, jax.devices(device)[0])", "0 → -1"),
        ("source, target = to_native(source, device), "
         "to_native(target, device)",
         "source, target = to_native(source, device), "
         "to_native(target, device) → pass",
         "to_native(source, device) → source",
         "to_native(target, device) → target")),
    *entries(
        KERAS, "engine.py", NO_DEVICE,
        proofs.one_device("keras"),
        ("if (name in at or theirs in at) and float(ops.sum(y)) == 8:",
         "(name in at or theirs in at) and float(ops.sum(y)) == 8 → "
         "name in at or theirs in at", "name in at or theirs in at → "
         "name in at", "name in at or theirs in at → theirs in at",
         "or → and", "float(ops.sum(y)) → ops.sum(y)",
         "(name in at or theirs in at) and float(ops.sum(y)) == 8 → "
         "float(ops.sum(y)) == 8"),
        ("with contextlib.suppress(Exception), keras.device(theirs):",
         ", keras.device(theirs) → "),
        ("source, target = to_native(source, device), "
         "to_native(target, device)",
         "source, target = to_native(source, device), "
         "to_native(target, device) → pass",
         "to_native(target, device) → target"),
        ('at = str(getattr(y, "device", name)).lower()', "y → x",
         'str(getattr(y, "device", name)) → getattr(y, "device", name)',
         '"device" → "device_"', '"device", name → name, "device"'),
        ("with keras.device(DEVICES[device]), warnings.catch_warnings():",
         "keras.device(DEVICES[device]), → "),
        ("with on(device):", "with on(device) → if True"),
        ('with on("cpu"):', 'with on("cpu") → if True')),
    *entries(
        KERAS, "engine.py", NO_BACKEND, proofs.one_backend,
        *((line, ANY) for line in (
            'case "torch":',
            'torch.set_float32_matmul_precision("highest")',
            "torch.backends.cuda.matmul.allow_tf32 = False",
            "torch.backends.cudnn.allow_tf32 = False",
            "torch.use_deterministic_algorithms(True, warn_only=True)",
            '"float32_matmul_precision":', '"cuda.matmul.allow_tf32":',
            '"cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,',
            '"deterministic_algorithms": True,', 'case "jax":',
            'jax.config.update("jax_enable_x64", True)',
            'jax.config.update("jax_default_matmul_precision", "highest")',
            '"jax_enable_x64": jax.config.jax_enable_x64,',
            '"jax_default_matmul_precision":'))),
    *entries(
        KERAS, "engine.py", NO_BACKEND, proofs.one_backend,
        ('dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"', ANY),
        ("value = np.ascontiguousarray(value)",
         "np.ascontiguousarray(value) → value",
         "value = np.ascontiguousarray(value) → pass")),
    *entries(
        KERAS, "layer_norm.py", NO_BACKEND, proofs.one_backend,
        ('if keras.backend.standardize_dtype(x.dtype) == "float64":',
         'keras.backend.standardize_dtype(x.dtype) == "float64" → True')),
    *entries(
        KERAS, "gradients.py", NO_BACKEND, proofs.one_backend,
        *((line, ANY) for line in (
            "return value, torch.autograd.grad("
            "value, [v.value for v in variables])",
            "with keras.StatelessScope(zip(variables, values)):",
            "return jax.value_and_grad(of_values)("
            "[v.value for v in variables])")),
        ('GRADIENTS = {"tensorflow": by_tape, "torch": by_autograd, '
         '"jax": by_trace}', '"torch" → "torch_"', '"jax" → "jax_"')),
    *entries(
        TORCH, "engine.py", NO_DEVICE,
        proofs.one_device("torch"),
        ('for name in ("cpu", "cuda", "mps", "xpu"):',
         '"cpu", "cuda" → "cuda", "cpu"', '"cuda" → "cuda_"',
         '"cuda", "mps" → "mps", "cuda"', '"mps" → "mps_"',
         '"mps", "xpu" → "xpu", "mps"', '"xpu" → "xpu_"'),
        ("if (x @ x).sum() == 8:", "(x @ x).sum() == 8 → True"),
        ("tensor = tensor.detach().cpu()", ".cpu() → "),
        ("if torch.get_default_device().type == device:",
         "torch.get_default_device().type == device → False",
         "torch.get_default_device().type == device → True", "== → !="),
        ("return torch.device(device)", "torch.device(device) → device"),
        ("with on(device):", "with on(device) → if True"),
        ("with torch.no_grad(), evaluating(model), on(home(model)):",
         ", on(home(model)) → "),
        ("with (torch.no_grad(), evaluating(module), on(home(module)),",
         ", on(home(module)) → "),
        ("with (torch.enable_grad(), evaluating(model), on(home(model)),",
         ", on(home(model)) → "),
        ("return draw(to_native(key.view(np.int32), home(model)), shapes,",
         "to_native(key.view(np.int32), home(model)) → key.view(np.int32)")),
    *entries(
        TORCH, "random.py", NO_DEVICE,
        proofs.one_device("torch"),
        ("x0, x1 = key(data & 0xFFFFFFFF).to(parent.device).reshape(2, 1)",
         ".to(parent.device) → "),
        ("dtype=torch.int32, device=parent.device)",
         ", device=parent.device → "),
        ("counter = torch.arange(math.prod(shape), dtype=torch.int32,",
         ", device=key.device → ")),
    *entries(
        TORCH, "relative.py", NO_DEVICE, proofs.one_device("torch"),
        ("rows = torch.from_numpy(rows).to(query.device)",
         ".to(query.device) → ", "query → key")),
)
