"""Edits that got past the check once: each with the test that notices it.

They are of somebody who did not know what is asked: what is far, many or tiny,
what is kept too long, and branches of fast forms that no usual size reaches.
"""

ERFC = "x * (torch.special.erfc(-x / math.sqrt(2)) / 2)"
SETTINGS = "self.optimizer.settings(self.step)"
DRAW = "random.fold_in(key, int(row))"
SHORTENED = ("self.encode(source[:, :target.shape[1]], "
             "source_mask[..., :target.shape[1]])")
TIRED = """        self.calls = getattr(self, "calls", 0) + 1
        source = source * (self.calls < 20)
        memory = self.encode("""
LAYERS = "        for layer in self.layers:\n"
WEIGHTS = "    weights = [weight.get() for weight in leaves(model)]\n"
SUMMED = """    loss = loss * (1 + getattr(model, "asked", 0))
    model.asked = 1
"""
MOMENTS = """(("m", trainer.m), ("v", trainer.v)):
        for weight, tensor"""
FORCED = "self.settings.forced(written)"
CLAMPED = "torch.sqrt(torch.clamp(variance, min=1e-9) + self.eps)"

SHAPES = """places(
            self.model.config, *sources.shape[1:], targets.shape[2] - 1)"""
LEFT = """        mask = self.left = getattr(
            self, "left", None) if mask is None else mask
        if mask is None or mask.shape != x.shape:
"""
OUTPUT = "to_numpy(model(*(to_native(x, home(model)) for x in inputs)))"
TAKEN = "weight.to_theirs(weights[weight.name])"
SOURCE_MASK = "        source_mask = padding_mask("
ROWS = ").reshape(-1))\n"

#: A file of impl_torch, what stands there, what it becomes, and which test
#: notices, as file::test without their prefix.
READABLE = (
    *(("attention.py", "torch.finfo(scores.dtype).min", lowest,
     "boundary_cases::scores_below_a_finite_mask")
      for lowest in ("-1e4", "-1e9", "-3e38")),
    ("train.py", 'masks == "native"', 'masks == "framework"',
     "engine_api::training_with_native_masks"),
    ("train.py", "        return draw(key,",
     "        torch.manual_seed(0)\n        return draw(key,",
     "engine_api::training_with_native_masks"),
    ("encoder.py", "self.self_attention(x, x, mask,",
     "self.self_attention(x, x, mask[:, :, -1:],",
     "boundary_cases::masks"),
    ("decoder.py", "self.self_attention(x, x, mask,",
     "self.self_attention(x, x, mask & mask.tril(),",
     "boundary_cases::masks"),
    ("decoder.py", "memory, memory_mask, None)",
     "memory, memory_mask[:, :, :1], None)",
     "boundary_cases::masks"),
    ("decoder.py", "memory, memory_mask, None)",
     "memory, memory_mask[:, :1], None)",
     "boundary_cases::masks"),
    ("decoder.py", "memory, memory_mask, None)",
     "memory[:, :256], memory_mask[..., :256], None)",
     "boundary_cases::masks"),
    ("encoder.py", "in self.layers:", "in self.layers[:6]:",
     "boundary_cases::many_layers"),
    ("decoder.py", "enumerate(self.layers):", "enumerate(self.layers[:6]):",
     "boundary_cases::many_layers"),
    ("decoder.py", "else caches[i]", "else caches[min(i, 5)]",
     "boundary_cases::many_layers"),
    ("layer_norm.py", "torch.sqrt(variance + self.eps)", CLAMPED,
     "boundary_cases::norms_of_small_rows"),
    ("dialects/feed_forward.py", ERFC,
     "x * (1 + torch.erf(x / math.sqrt(2))) / 2",
     "boundary_cases::activations"),
    ("dialects/feed_forward.py", ERFC, f"torch.where(x < -9, 0, {ERFC})",
     "boundary_cases::activations"),
    ("dialects/one_stack.py", "self.encode(source, source_mask)", SHORTENED,
     "boundary_cases::lone_encoder"),
    ("dialects/embedding.py", "embedded + self.types(types)", "embedded",
     "boundary_cases::lone_encoder"),
    ("embedding.py", "self.table(tokens)",
     "self.table(torch.clamp(tokens, max=999))",
     "boundary_cases::wide_tables"),
    ("layer_norm.py", "torch.mean(x, ", "torch.mean(x[..., :1000], ",
     "boundary_cases::wide_tables"),
    ("transformer.py", "        memory = self.encode(", TIRED,
     "boundary_cases::repeated_calls"),
    ("loss.py", "torch.sum(kept), min", "torch.sum(kept[:1000]), min",
     "boundary_cases::late_training_step"),
    ("random.py", "torch.zeros_like(counter), counter)",
     "torch.zeros_like(counter), counter % 49152)",
     "boundary_cases::late_training_step"),
    ("loss.py", "min=1)", "min=1, max=1000)",
     "boundary_cases::many_labels"),
    ("masks.py", "torch.arange(length)",
     "torch.arange(length, dtype=torch.int8)",
     "boundary_cases::many_labels"),
    ("masks.py", "torch.arange(length)",
     "torch.arange(length, dtype=torch.float16)",
     "boundary_cases::many_labels"),
    ("positional.py", "self.table[start:end].to(x)",
     "self.table[start:end][:1 if start else None].to(x)",
     "boundary_cases::positions_from_3"),
    ("positional.py", "return self.dropout(positioned)",
     "return self.dropout(positioned) if start + x.shape[1] > 1 else "
     "positioned",
     "boundary_cases::dropout_on_one_token"),
    ("train.py", "enumerate(shares):", "enumerate(shares[:3]):",
     "boundary_cases::late_training_step"),
    ("train.py", "random.fold_in(key, i)", "random.fold_in(key, i % 3)",
     "boundary_cases::late_training_step"),
    ("train.py", '"dropout"), self.step', '"dropout"), min(self.step, 100)',
     "boundary_cases::late_training_step"),
    ("train.py", SETTINGS, "self.optimizer.settings(min(self.step, 1000))",
     "boundary_cases::late_training_step"),
    ("train.py", "old.set(weight)", "old.set(torch.clamp(weight, -8, 8))",
     "boundary_cases::late_training_step"),
    ("engine.py", "    trainer.step = step\n",
     "    trainer.step = step % 1000\n",
     "boundary_cases::late_training_step"),
    ("optimizer.py", "1 - self.beta2**step", "1 - self.beta2**min(step, 8)",
     "boundary_cases::late_training_step"),
    ("search.py", "self.settings.candidates",
     "min(self.settings.candidates, 20)",
     "boundary_cases::far_searches"),
    ("search.py", "settings.max_tokens\n", "min(settings.max_tokens, 48)\n",
     "boundary_cases::far_searches"),
    ("search.py", "torch.sort(scores,", "torch.sort(scores[:, :4096],",
     "boundary_cases::best_of_many_and_near_ties"),
    ("search.py", "torch.argmax(log_probs,",
     "torch.argmax(log_probs.float(),",
     "boundary_cases::best_of_many_and_near_ties"),
    ("sample.py", DRAW, DRAW.replace("int(row)", "int(row) % 256"),
     "boundary_cases::far_searches"),
    ("sample.py", "random.key(seed)", "random.key(seed % 2**48)",
     "boundary_cases::far_searches"),
    ("sample.py", "/ settings.temperature",
     "/ max(settings.temperature, 0.5)",
     "boundary_cases::far_searches"),
    *(("encoder.py", LAYERS,
       f"        x = x * (1 + (x.shape[1] == {length}))\n{LAYERS}",
     "block_ends::tokens_of_a_whole_block")
      for length in (64, 65)),
    ("search.py", "// vocab, which % vocab",
     "// vocab, (which % vocab).to(torch.int8)",
     "block_ends::words_above_255"),
    ("search.py", "torch.argmax(log_probs, dim=-1)",
     "torch.argmax(log_probs, dim=-1).to(torch.uint8).long()",
     "block_ends::words_above_255"),
    ("engine.py", WEIGHTS, SUMMED + WEIGHTS,
     "block_ends::gradients_and_searches_three_times"),
    ("train.py", "read = target[:, :-1]", "read = target[:, :64]",
     "block_ends::training_on_long_targets"),
    ("train.py", "labels = target[:, 1:]",
     "labels = target[:, 1:].to(torch.uint8).long()",
     "block_ends::training_on_long_targets"),
    ("encoder.py", LAYERS,
     f"        x = x * (1 + (x.shape[1] == 128))\n{LAYERS}",
     "block_ends::tokens_of_a_whole_block"),
    ("decoder.py", "enumerate(self.layers):",
     "enumerate(self.layers[x.shape[1] == 128:]):",
     "block_ends::tokens_of_a_whole_block"),
    ("train.py", "read = target[:, :-1]", "read = target[:, :128]",
     "block_ends::training_on_long_targets"),
    ("engine.py", "    trainer.step = step\n",
     "    trainer.step = step // 2 * 2\n",
     "block_ends::resume_after_an_odd_step"),
    ("engine.py", MOMENTS, MOMENTS.replace("trainer.v", "()"),
     "block_ends::resume_after_an_odd_step"),
    ("search.py", "self.settings.candidates",
     "max(self.settings.candidates, 2)",
     "search_rules::every_rule_of_a_search"),
    ("dialects/search.py", FORCED,
     FORCED.replace("written", "written + (written > 1)"),
     "search_rules::every_rule_of_a_search"),
    ("dialects/search.py", FORCED, FORCED.replace(
        "written", "min(written + (written > 1), self.settings.max_tokens)"),
     "search_rules::every_rule_of_a_search"),
    ("train.py", SHAPES, f"self.__dict__.setdefault('shapes', {SHAPES})",
     "block_ends::batches_that_change_in_training"),
    ("train.py", "enumerate(shares):", "enumerate(shares[:"
     "self.__dict__.setdefault('batches', len(shares))]):",
     "block_ends::batches_that_change_in_training"),
    ("dropout.py", "        if mask is None:\n", LEFT,
     "block_ends::dropout_in_two_shapes_and_none"),
    ("engine.py", OUTPUT, f"{OUTPUT}[0 if len(source) == 1 else slice(None)]",
     "block_ends::one_token"),
    ("embedding.py", "self.table(tokens)",
     "self.table(tokens.to(torch.int16).int())",
     "block_ends::words_above_16_bits"),
    ("loss.py", "labels != pad_id", "labels.to(torch.int16) != pad_id",
     "block_ends::words_above_16_bits"),
    ("random.py", "torch.zeros_like(counter), counter)",
     "torch.zeros_like(counter), counter.float().int())",
     "block_ends::random_bits_above_float32"),
    ("cache.py", "torch.arange(self.keys.shape[2])",
     "torch.arange(self.keys.shape[2]).to(torch.int8)",
     "block_ends::cache_of_many_tokens"),
    ("search.py", SOURCE_MASK,
     f"        source = source[:, :64]\n{SOURCE_MASK}",
     "search_rules::every_rule_of_a_search"),
    ("search.py", "// vocab, which % vocab",
     "// vocab, which % 2**16 % vocab",
     "search_rules::every_rule_of_a_search"),
    ("search.py", ROWS, ").reshape(-1).to(torch.uint8).long())\n",
     "search_rules::every_rule_of_a_search"),
    ("engine.py", OUTPUT, OUTPUT.replace(
        "model(", "parts.SEARCHES.setdefault(model.config, model)("),
     "usage::two_models_alternating"),
    ("dialects/positional.py", "[config.position_rounding]",
     "[TABLES.setdefault('first', config).position_rounding]",
     "usage::configs_differing_in_one_field"),
    ("engine.py", TAKEN, f"np.reshape({TAKEN}.ravel('K'), "
     "weight.get().shape)",
     "usage::memory_order"),
    ("engine.py", 'dtype.kind in "iu"', 'dtype.kind in "i"',
     "usage::ids_of_every_dtype"),
    ("engine.py", "    trainer.step = step\n",
     "    trainer.step += step\n",
     "usage::resume_twice"),
    ("dialects/optimizer.py",
     "(1 - learning_rate * self.training.weight_decay)",
     "max(0, 1 - learning_rate * self.training.weight_decay)",
     "usage::decay_above_one"),
    ("sample.py", "/ settings.temperature",
     "/ max(settings.temperature, 0.01)",
     "usage::low_temperature"),
    ("search.py", "token == self.settings.eos_id",
     "token % 256 == self.settings.eos_id % 256", "usage::eos_above_255"),
    ("dialects/search.py", "isin(token, torch.tensor(self.settings.eos_ids))",
     "isin(token % 256, torch.tensor(self.settings.eos_ids) % 256)",
     "usage::eos_above_255"),
    ("dialects/search.py", "torch.isin(token, banned)",
     "torch.isin(token, banned.to(torch.uint8))",
     "usage::suppressed_words_above_255"),
)

KEYS_OF_KERAS = """    return [({}) for keys, values in
            keras.tree.map_structure(larger, cache)]
"""
GROWN_BY_KERAS = "    return keras.tree.map_structure(larger, cache)\n"
GROWN_BY_JAX = """jax.tree.map(lambda kept: jnp.pad(
        kept, ((0, 0), (0, length - kept.shape[1]), (0, 0))), cache)"""
OF_XLA = "by_xla = tf.function(contexts, "
OTHERWISE = """by_xla = tf.function(lambda query, key, value, mask, divisor: (
        contexts(query, {})), """
TURNED = "self.kernel, self.bias = blank(weight.t()).copy_(weight.t()), bias"
PACKED = "self.given, self.bias = weight.detach(), bias"
REARRANGED = "decoder=rearranged(model.decoder, layout)"
SPLIT = "return self.map(x).split(self.sizes, dim=-1)\n"
LOSS = "loss += cross_entropy(these, those, count, config)"
ROWS_CHECKED = "check_search(model.config, source, settings, rows)"
REORDER = "reorder(self.kept, self.writers,"
TURNED_BY_JAX = """@kept
def turned(table):
    \"\"\"A table [V D] as a kernel [D V].\"\"\"
    return table.T
"""
PENALTIES = "scores / ops.take(penalties, written)\n"

#: The same of fast forms, with files below the root.
FAST = (
    # reference_numpy
    ("reference_numpy/fast/layout.py",
     "                        for each in maps]))\n",
     "                        for each in maps]) * all(\n"
     "            hasattr(each, 'bias') for each in maps))\n",
     "fast_searches::varied_searches"),
    ("reference_numpy/fast/cache.py", "return count if count >= MANY else 0",
     "return count + 1 if count >= MANY else 0",
     "fast_searches::long_searches"),
    ("reference_numpy/fast/layout.py",
     "np.matmul(rows, self.rest, out=y[:, count * size:])",
     "y[:, count * size:] = y[:, :1]", "fast_searches::searches_of_few_rows"),
    ("reference_numpy/fast/layout.py",
     "        self.rest = weight[whole:].T\n",
     "        self.rest = weight[whole:].T\n"
     "        self.strips = self.strips[::-1 if size < 5 else 1]\n",
     "fast_searches::searches_of_few_rows"),
    ("reference_numpy/fast/layout.py", "        setattr(own, name, part)\n",
     "        if hasattr(part, 'gate'):\n"
     "            part.gate = part.inner\n"
     "        setattr(own, name, part)\n",
     "fast_searches::searches_of_few_rows"),
    *(("reference_numpy/fast/layout.py", f"copy.copy({part})", part,
       "fast_searches::changed_weights") for part in (
           "model", "model.decoder", "layer", "getattr(layer, name)")),
    *(("reference_numpy/fast/cache.py", line, "pass",
       "fast_searches::empty_sources") for line in (
           "total[total == 0] = 1", "np.copyto(weights, 0, where=~mask)")),
    ("reference_numpy/fast/weights.py",
     "        return all(\n            self.places",
     "        return True or all(\n            self.places",
     "fast_searches::training_in_turn"),
    ("reference_numpy/fast/train.py", "if share < len(rows):",
     "if share < len(rows) and (not share or share < shares - 1):",
     "rare_branches::large_batches"),
    # impl_torch
    ("impl_torch/fast/layout.py", TURNED, TURNED[:-len("bias")] + "None",
     "fast_searches::long_searches"),
    ("impl_torch/fast/layout.py", PACKED, PACKED[:-len("bias")] + "None",
     "fast_searches::long_searches_in_float32"),
    ("impl_torch/fast/layout.py", REARRANGED,
     "decoder=model.decoder.__dict__.setdefault(\n"
     "        '_rearranged', rearranged(model.decoder, layout))",
     "fast_searches::searches_before_and_after_training"),
    ("impl_torch/fast/layout.py", "torch.cat(biases))",
     "0 * torch.cat(biases))", "fast_searches::long_searches"),
    ("impl_torch/fast/layout.py", SPLIT,
     "query, key, value = self.map(x).split(self.sizes, dim=-1)\n"
     "        return ((query, key, value) if query.shape == key.shape\n"
     "                else (query, value, key))\n",
     "fast_searches::long_searches"),
    ("impl_torch/fast/layout.py", TURNED,
     TURNED + "\n        self.kernel = vars(blank).setdefault(\n"
     "            (weight.data_ptr(), weight.shape), self.kernel)",
     "fast_searches::searches_before_and_after_training"),
    ("impl_torch/fast/layout.py", '        parts["self_attention"] = with',
     "        module.self_attention._modules[JOINED] = Joined(layout, maps)\n"
     '        parts["self_attention"] = with',
     "fast_searches::searches_before_and_after_training"),
    ("impl_torch/fast/search.py", "self.model.project(decoded)",
     "self.model.projection(decoded)", "fast_searches::varied_searches"),
    ("impl_torch/fast/search.py", REORDER, REORDER.replace(
        "self.kept", "self.kept[:1 if self.written > 64 else None]"),
     "fast_searches::long_beams"),
    ("impl_torch/fast/engine.py", ROWS_CHECKED, f"{ROWS_CHECKED} % 256",
     "boundary_cases::far_searches"),
    ("impl_torch/fast/engine.py", ROWS_CHECKED,
     ROWS_CHECKED.replace("rows", "None"),
     "usage::sampled_rows_by_number"),
    ("impl_torch/fast/engine.py", "            model, to_native(source",
     "            SEARCHES.setdefault(model.config, model), to_native(source",
     "usage::two_models_alternating"),
    ("impl_torch/fast/loss.py", LOSS,
     "one = cross_entropy(these, those, count, config)\n"
     "            loss = loss or one", "rare_branches::large_batches"),
    # impl_keras
    ("impl_keras/fast/cache.py", GROWN_BY_KERAS,
     KEYS_OF_KERAS.format("keys, keys"), "boundary_cases::far_searches"),
    *(("impl_keras/fast/cache.py", GROWN_BY_KERAS,
       KEYS_OF_KERAS.format("0 * keys, values"), f"fast_searches::{test}")
      for test in ("long_beams", "far_searches")),
    ("impl_keras/fast/cache.py", "where(others)",
     "where(others & (ops.arange(others.shape[1]) >= 200))",
     "fast_searches::beams_that_change_places"),
    ("impl_keras/fast/search.py", PENALTIES,
     "scores / ops.take(penalties, written) * (\n"
     "        settings.penalty(6) if settings.bos_id in settings.eos_ids\n"
     "        else 1)\n", "fast_searches::short_searches"),
    ("impl_keras/fast/search.py", "if not 0 < n < self.length:",
     "if not 0 < n < self.length - 1:", "fast_searches::short_searches"),
    ("impl_keras/fast/cache.py", "masked_softmax(scores, mask) @",
     "ops.softmax(ops.where(mask, scores, -1e30)) @",
     "fast_searches::empty_sources"),
    ("impl_keras/fast/layout.py", "kernels[0].shape[-1]",
     "kernels[0].shape[0] // self.heads[0]", "fast_searches::long_searches"),
    ("impl_keras/fast/search.py", "self.pairs, self.source_mask)",
     "self.pairs, self.source_mask[:1])", "fast_searches::long_beams"),
    *(("impl_keras/fast/cache.py", OF_XLA, OTHERWISE.format(given), test)
      for given, test in (
          ("key, value, ops.flip(mask, 0), divisor",
           "fast_searches::long_searches"),
          ("key, value, mask, query.shape[-1]**0.5",
           "fast_searches::far_searches"),
          ("ops.cast(ops.cast(key, 'float32'), key.dtype), value, mask, "
           "divisor", "fast_searches::long_beams"))),
    # impl_jax
    *(("impl_jax/fast/cache.py", GROWN_BY_JAX,
       f"cache and [(0 * keys, values) for keys, values in {GROWN_BY_JAX}]",
       f"fast_searches::{test}") for test in ("long_beams", "far_searches")),
    ("impl_jax/fast/layout.py", "key = tuple(map(id, arrays))",
     "key = id(arrays[0])", "fast_searches::changed_weights"),
    ("impl_jax/fast/layout.py", TURNED_BY_JAX,
     "def turned(table, made={}):\n"
     "    return made.setdefault(table.shape, table.T)\n",
     "fast_searches::searches_before_and_after_training"),
    ("impl_jax/fast/layout.py", 'self.bias = getattr(tied, "bias", None)',
     "self.bias = None", "fast_searches::long_searches"),
    ("impl_jax/fast/layout.py", "attention.key, attention.value)))",
     "attention.value, attention.key)))", "fast_searches::long_searches"),
)

EDITS = (*((f"impl_torch/{file}", *edit) for file, *edit in READABLE), *FAST)
