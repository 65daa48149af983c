"""Edits that change nothing, each with the reason and what proves it.

An entry stands for edits of one line, wherever in the file that line is. A
proof is a function that raises AssertionError where the reason does not hold;
``parity_tests/harness/mutation`` runs each, and tries some of the edits, which
quick questions must not notice.
"""

from parity.mutation import proofs
from parity.mutation.elsewhere import ELSEWHERE
from parity.mutation.entries import ALL, ANY, JAX, TORCH, entries
from parity.mutation.housekeeping import HOUSEKEEPING

ONE_PLACE = "The only place of an axis of 1 is the first and the last."

EQUIVALENT = (
    *ELSEWHERE,
    *HOUSEKEEPING,
    *entries(
        ALL, "single_head.py", "Queries and keys have one width, d_k.",
        proofs.one_width,
        ('scores = tap(self, "scores", raw_scores / '
         'math.sqrt(query.shape[-1]))', "query → key")),
    *entries(
        ALL, "cache.py", "A place is masked until it is written.",
        proofs.masked_values_do_not_count,
        *((f"self.{which} = {zeros}", "zeros → ones")
          for which in ("keys", "values") for zeros in (
              "torch.zeros(shape, dtype=dtype)", "ops.zeros(shape, dtype)",
              "jnp.zeros(shape, dtype)"))),
    *entries(
        ALL, "cache.py", "Keys and values have one shape.",
        proofs.one_width,
        *((f"here = {library}.arange(self.keys.shape[2])[:, None] == "
           "self.written", "keys → values")
          for library in ("torch", "ops", "jnp"))),
    *entries(
        ALL, "cache.py", "All arrays of a model have one dtype.",
        proofs.one_dtype,
        *((f"dtype = model.target_embedding.table.{weight}.dtype",
           "target_embedding → source_embedding")
          for weight in ("weight", "embeddings", "embedding"))),
    *entries(
        TORCH, "dropout.py", "In int32, which wraps, 2³¹ and -2³¹ are equal.",
        proofs.wraps,
        ("bits = random.bits(key, shape).view(torch.int32) ^ -2**31",
         "- → ", "2 → -2"),
        ("return bits >= int(rate * 2**32) - 2**31", "- → +",
         "2 → -2 at 35")),
    *entries(
        JAX, "dropout.py", "The same whole number, of more bits.",
        proofs.numbers_of_more_bits,
        ("return random.bits(key, shape) >= jnp.uint32(rate * 2**32)",
         "uint32 → uint64")),
    *entries(
        ALL, "dropout.py", "A draw is the rate itself once in 2²⁴, and "
        "native masks are not comparable.", proofs.native_masks_are_any,
        ("return torch.rand(shape, device=key.device) >= rate", ">= → >"),
        ("return keras.random.uniform((*key.shape[:-1], *shape)) >= rate",
         ">= → >")),
    *entries(
        TORCH, "engine.py", "The highest precision turns it off as well.",
        proofs.highest_is_exact,
        ("torch.backends.cuda.matmul.allow_tf32 = False",
         "torch.backends.cuda.matmul.allow_tf32 = False → pass")),
    *entries(
        TORCH, "engine.py", "First values are never read: all are loaded.",
        proofs.every_weight_is_loaded,
        ('with torch.device("meta"):  # no first values: all are loaded',
         'with torch.device("meta") → if True')),
    *entries(
        ALL, "layer_norm.py", "First values are never read: all are loaded.",
        proofs.every_weight_is_loaded,
        ("self.scale = nn.Parameter(torch.ones(d_model))", "ones → zeros"),
        ("self.bias = nn.Parameter(torch.zeros(d_model))", "zeros → ones")),
    *entries(
        ALL, "positional.py", "First values are never read: all are loaded.",
        proofs.every_weight_is_loaded,
        ("self.table = nn.Parameter(torch.zeros(", "zeros → ones")),
    *entries(
        ALL, "projection.py", "First values are never read: all are loaded.",
        proofs.every_weight_is_loaded,
        ("self.bias = nn.Parameter(torch.zeros("
         "embedding.table.num_embeddings))", "zeros → ones"),
        ('(embedding.table.input_dim,), "zeros", name="bias")',
         '"zeros" → "ones"')),
    *entries(
        TORCH, "engine.py", "Ids of 32 bits look up what those of 64 do, and a "
        "copy has the same values.", proofs.ids_of_any_bits,
        ('if value.dtype.kind in "iu" and value.dtype != np.int32:',
         'value.dtype.kind in "iu" and value.dtype != np.int32 → '
         'value.dtype.kind in "iu"', '"iu" → "iu_"', "int32 → int64"),
        ("value = value.astype(np.int64, copy=False)", ", copy=False → ",
         "False → True")),
    *entries(
        JAX, "engine.py", "Nothing is written into an array that was handed "
        "on, and the reference keeps it too.", proofs.arrays_are_kept,
        ("value = np.array(value)", "np.array(value) → value")),
    *entries(
        TORCH, "engine.py", "Only memory: nothing is differentiated.",
        proofs.costs_memory_alone,
        ("with (torch.no_grad(), evaluating(module), on(home(module)),",
         "torch.no_grad(), → "),
        ("with (torch.no_grad(), evaluating(residual),",
         "torch.no_grad(), → "),
        ("with torch.no_grad(), evaluating(model), on(home(model)):",
         "torch.no_grad(), → ")),
    *entries(
        TORCH, "train.py", "Only memory: nothing is differentiated.",
        proofs.costs_memory_alone,
        ("return loss.detach(), gradients", ".detach() → "),
        ("old.get().detach(), gradients[i], self.m[i], self.v[i],",
         ".detach() → ")),
    *entries(
        TORCH, "engine.py", "It is asked for where it already is.",
        proofs.asked_again,
        ("return value if value.requires_grad else value.requires_grad_()",
         "value if value.requires_grad else value.requires_grad_() → "
         "value.requires_grad_()")),
    *entries(
        ALL, "engine.py", "Both are done, in either order.",
        proofs.by_name,
        ('for kind, arrays in (("m", trainer.m), ("v", trainer.v))',
         '("m", trainer.m), ("v", trainer.v) → '
         '("v", trainer.v), ("m", trainer.m)'),
        ('for kind, arrays in (("m", trainer.m), ("v", trainer.v)):',
         '("m", trainer.m), ("v", trainer.v) → '
         '("v", trainer.v), ("m", trainer.m)')),
    *entries(
        ALL, "engine.py", "Whether two are equal does not depend on which is "
        "first.", proofs.equality_commutes,
        ('"source_mask": to_numpy(padding_mask(source, pad_id)),',
         "source, pad_id → pad_id, source")),
    *entries(
        ALL, "train.py", "Whether two are equal does not depend on which is "
        "first.", proofs.equality_commutes,
        ("source_mask = padding_mask(source, config.pad_id)",
         "source, config.pad_id → config.pad_id, source")),
    *entries(
        ALL, "search.py", "Whether two are equal does not depend on which is "
        "first.", proofs.equality_commutes,
        ("source_mask = padding_mask(source, self.pad_id)",
         "source, self.pad_id → self.pad_id, source")),
    *entries(
        ALL, "loss.py", ONE_PLACE, proofs.one_place,
        ("at_label = torch.gather(log_probs, -1, labels[..., None])[..., 0]",
         "0 → -1"),
        ("log_probs, labels[..., None], axis=-1)[..., 0]", "0 → -1")),
    *entries(
        ALL, "sample.py", ONE_PLACE, proofs.one_place,
        ("return torch.gather(which, -1, rank[:, None])[:, 0]", "0 → -1"),
        *((f"return {library}.take_along_axis(which, rank[:, None], axis=-1)"
           "[:, 0]", "0 → -1") for library in ("ops", "jnp"))),
    *entries(
        ALL, "search.py", ONE_PLACE, proofs.one_place,
        ("log_probs = log_softmax(output[:, 0]).to(torch.float64)", "0 → -1"),
        ("log_probs = log_softmax(output[:, 0]).astype(jnp.float64)",
         "0 → -1"),
        ('log_probs = ops.cast(log_softmax(output[:, 0]), "float64")',
         "0 → -1"),
        ("scores = scores + torch.where(finished, 0, log_p[:, 0])",
         "0 → -1 at 52"),
        *((f"scores = scores + {library}.where(finished, 0, log_p[:, 0])",
           "0 → -1 at 50") for library in ("ops", "jnp"))),
    *entries(
        ALL, "sample.py", "The last token is padding, whose p is 0.",
        proofs.padding_is_last,
        ('draw = tap(self, "draw", self.draws[:, written]) * reached[:, -1]',
         "-1 → -2")),
    *entries(
        ALL, "sample.py", "A row's number is the same number of any kind.",
        proofs.numbers_of_any_kind,
        ("random.uniform(random.fold_in(key, int(row)), (length,), 0.0, 1.0)",
         "int(row) → row")),
    *entries(
        TORCH, "search.py", "Ids are looked for among whole numbers of any "
        "size, and nothing among none.", proofs.found_in_any_dtype,
        ("banned = torch.tensor(self.settings.banned(written), "
         "dtype=torch.int64)", ", dtype=torch.int64 → ", "int64 → int32")),
    *entries(
        ALL, "search.py", "An axis of 1 is put before another of 1.",
        proofs.one_beside_one,
        *((f"tokens = {library}.where(none[:, :, None], tokens, "
           "finished_tokens)", ":, None → None, :")
          for library in ("torch", "ops", "jnp"))),
    *entries(
        ALL, "search.py", "One place of an axis has no order with a new axis.",
        proofs.one_beside_one,
        ("same[:, None] & (token == tokens[:, end, None]))",
         "end, None → None, end")),
    *entries(
        TORCH, "search.py", "0 and -∞ are exact, and become float64 with what "
        "is joined to them in the first step.", proofs.the_wider_dtype,
        ("scores = torch.zeros(len(tokens), dtype=torch.float64)",
         ", dtype=torch.float64 → ", "float64 → float32"),
        ("finished = torch.full((b, w), -math.inf, dtype=torch.float64)",
         ", dtype=torch.float64 → ", "float64 → float32")),
    *entries(
        ALL, "train.py", "A sum over two axes has no order.",
        proofs.axes_in_any_order,
        ("counts = torch.sum(targets[:, :, 1:] != pad_id, dim=(1, 2))",
         "1, 2 → 2, 1"),
        *((f"counts = {library}.sum(targets[:, :, 1:] != pad_id, "
           "axis=(1, 2))", "1, 2 → 2, 1") for library in ("ops", "jnp"))),
    *entries(
        ALL, "loss.py", "PyTorch and JAX divide by whole numbers in the dtype "
        "of what they divide.", proofs.the_wider_dtype,
        ("count = torch.clamp(torch.sum(kept), min=1).to(logits.dtype)",
         ".to(logits.dtype) → "),
        ("count = jnp.maximum(jnp.sum(kept), 1).astype(logits.dtype)",
         ".astype(logits.dtype) → ")),
    *entries(
        ALL, "train.py", "PyTorch and JAX divide by a number and by an array "
        "of no dimension alike.", proofs.the_wider_dtype,
        ("shares = counts.to(self.m[0].dtype) / "
         "max(int(torch.sum(counts)), 1)",
         "int(torch.sum(counts)) → torch.sum(counts)"),
        ("shares = counts.astype(self.m[0].dtype) / "
         "max(int(jnp.sum(counts)), 1)",
         "int(jnp.sum(counts)) → jnp.sum(counts)")),
    *entries(
        ALL, "optimizer.py", "At the limit, limit / norm is 1.",
        proofs.one_at_the_limit, ("if limit and norm > limit:", "> → >=")),
    *entries(
        ALL, "attention.py", "The wider of two dtypes is the same either way "
        "round.", proofs.the_wider_dtype,
        ("wide = torch.promote_types(x.dtype, torch.float32)",
         "x.dtype, torch.float32 → torch.float32, x.dtype"),
        ("wide = jnp.promote_types(x.dtype, jnp.float32)",
         "x.dtype, jnp.float32 → jnp.float32, x.dtype")),
    *entries(
        TORCH, "attention.py", "A softmax of 16 bits is computed in float32 "
        "by PyTorch itself, and may be in float64 (R46).",
        proofs.softmax_in_float32,
        ("wide = torch.promote_types(x.dtype, torch.float32)",
         "torch.promote_types(x.dtype, torch.float32) → x.dtype",
         "float32 → float64")),
    *entries(
        JAX, "attention.py", "A softmax of 16 bits may be computed in float64 "
        "(R46).", proofs.softmax_in_float32,
        ("wide = jnp.promote_types(x.dtype, jnp.float32)",
         "float32 → float64")),
    *entries(
        ALL, "attention.py", "The last axis is the one that is meant unless "
        "another is named.", proofs.last_axis,
        ("return ops.softmax(x, axis=-1)", ", axis=-1 → ")),
    *entries(
        JAX, "search.py", "The last axis is the one that is meant unless "
        "another is named.", proofs.last_axis,
        ("return jnp.take_along_axis(scores, places, axis=-1), places",
         ", axis=-1 → ")),
    *entries(
        JAX, "loss.py", "JAX reads the last place where a place is beyond it.",
        proofs.the_last_place_of_jax,
        ("log_probs, labels[..., None], axis=-1)[..., 0]", "0 → 1")),
    *entries(
        JAX, "sample.py", "JAX reads the last place where a place is beyond "
        "it.", proofs.the_last_place_of_jax,
        ("return jnp.take_along_axis(which, rank[:, None], axis=-1)[:, 0]",
         "0 → 1")),
    *entries(
        JAX, "search.py", "JAX reads the last place where a place is beyond "
        "it.", proofs.the_last_place_of_jax,
        ("scores = scores + jnp.where(finished, 0, log_p[:, 0])",
         "0 → 1 at 50")),
    *entries(
        JAX, "random.py", "JAX makes the same whole number of it.",
        proofs.whole_numbers_of_jax,
        ("x1 = x1 + k[(block + 2) % 3] + jnp.uint32(block + 1)",
         "jnp.uint32(block + 1) → (block + 1)")),
    *entries(
        ALL, "random.py", "Exclusive or is the same either way round.",
        proofs.exclusive_or_commutes,
        ("x0, x1 = _words(key, shape)", "x0, x1 → x1, x0 at 0:0")),
    *entries(
        ALL, "random.py", "The end of the interval is drawn once in 2⁵², and "
        "normals are compared to rounding.", proofs.ends_of_the_interval,
        ("unit = uniform(key, shape, math.nextafter(-1.0, 0.0), 1.0)",
         "math.nextafter(-1.0, 0.0) → (-1.0)", "0.0 → 1.0")),
    *entries(
        ALL, "train.py", "Both are zeros at first.", proofs.by_name,
        *((f"self.m, self.v = ([{zeros}", "self.m, self.v → self.v, self.m")
          for zeros in ("torch.zeros_like(weight.get().detach())",
                        "ops.zeros_like(weight.get())",
                        "jnp.zeros_like(weight.get())"))),
    *entries(
        ALL, "train.py", "There are as many of both moments, of one dtype.",
        proofs.one_dtype,
        ("loss, gradients = 0, [0] * len(self.m)", "m → v"),
        ("shares = counts.to(self.m[0].dtype) / "
         "max(int(torch.sum(counts)), 1)", "m → v", "0 → -1", "0 → 1"),
        ("shares = counts.astype(self.m[0].dtype) / "
         "max(int(jnp.sum(counts)), 1)", "m → v", "0 → -1", "0 → 1"),
        ("shares = (ops.cast(counts, self.m[0].dtype)",
         "m → v", "0 → -1", "0 → 1")),
    *entries(
        ALL, "transformer.py", "Every layer has written as many tokens.",
        proofs.caches_grow_together,
        ("start = 0 if caches is None else caches[0].written",
         "0 → -1 at 40")),
    *entries(
        ALL, "one_stack.py", "Every layer has written as many tokens.",
        proofs.caches_grow_together,
        ("start = 0 if caches is None else caches[0].written",
         "0 → -1 at 40"),
        ("if caches[0].written:", "0 → -1")),
)


def entry_of(port, mutant):
    """The Equivalent of a mutant, or None; its file may be a dialect's."""
    name = mutant.file.rpartition("/")[2]
    return next((entry for entry in EQUIVALENT if port in entry.ports
                 and entry.file == name and entry.text == mutant.text
                 and not set(entry.edits).isdisjoint((ANY, *mutant.edits))),
                None)
