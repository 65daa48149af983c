"""Hugging Face's own models, tiny, in float64, with drawn weights."""

import numpy as np

W, H, G, F, V, T = 24, 4, 2, 40, 29, 9

SIZES = {
    "bert": {"hidden_size": W, "num_hidden_layers": 2, "vocab_size": V,
             "num_attention_heads": H, "intermediate_size": F,
             "max_position_embeddings": 16, "pad_token_id": 0},
    "gpt2": {"n_embd": W, "n_layer": 2, "vocab_size": V, "n_head": H,
             "n_inner": F, "n_positions": 16},
    "llama": {"hidden_size": W, "num_hidden_layers": 2, "vocab_size": V,
              "num_attention_heads": H, "num_key_value_heads": G,
              "intermediate_size": F, "max_position_embeddings": 16},
    "t5": {"d_model": W, "num_layers": 2, "vocab_size": V, "num_heads": H,
           "d_kv": 8, "d_ff": F, "relative_attention_num_buckets": 8,
           "relative_attention_max_distance": 12, "pad_token_id": 0,
           "feed_forward_proj": "gated-gelu", "decoder_start_token_id": 0},
    **{name: {"d_model": W, "encoder_layers": 2, "decoder_layers": 1,
              "vocab_size": V, "encoder_attention_heads": H,
              "decoder_attention_heads": H, "encoder_ffn_dim": F,
              "decoder_ffn_dim": F, "max_position_embeddings": 16,
              "pad_token_id": 0, "decoder_start_token_id": 0,
              "forced_eos_token_id": None}
       for name in ("bart", "marian")},
    "whisper": {"d_model": W, "encoder_layers": 2, "decoder_layers": 1,
                "vocab_size": V, "encoder_attention_heads": H,
                "decoder_attention_heads": H, "encoder_ffn_dim": F,
                "decoder_ffn_dim": F, "num_mel_bins": 8,
                "max_source_positions": T, "max_target_positions": 16,
                "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
                "decoder_start_token_id": 1, "suppress_tokens": None,
                "begin_suppress_tokens": None},
    "vit": {"hidden_size": W, "num_hidden_layers": 2, "image_size": 12,
            "num_attention_heads": H, "intermediate_size": F,
            "patch_size": 4},
}
DECODER = SIZES["llama"]
EAGER = {"experts_implementation": "eager"}
SIZES |= {
    "mistral": {**DECODER, "sliding_window": 4},
    "gemma2": {**DECODER, "head_dim": W // H, "sliding_window": 4,
               "query_pre_attn_scalar": W // H, "attn_logit_softcapping": 2.0,
               "final_logit_softcapping": 3.0},
    "mixtral": {**DECODER, **EAGER, "num_local_experts": 6,
                "num_experts_per_tok": 2},
    **{f"qwen{n}_moe": {**DECODER, **EAGER, "num_experts": 6,
                        "num_experts_per_tok": n, "moe_intermediate_size": 20,
                        **more}
       for n, more in ((2, {"shared_expert_intermediate_size": 28}),
                       (3, {"head_dim": W // H, "norm_topk_prob": True}))},
}

CLASSES = {"bert": "BertForMaskedLM", "gpt2": "GPT2LMHeadModel",
           "llama": "LlamaForCausalLM", "marian": "MarianMTModel",
           "t5": "T5ForConditionalGeneration",
           "bart": "BartForConditionalGeneration",
           "whisper": "WhisperForConditionalGeneration", "vit": "ViTModel",
           "mistral": "MistralForCausalLM", "gemma2": "Gemma2ForCausalLM",
           "mixtral": "MixtralForCausalLM",
           "qwen2_moe": "Qwen2MoeForCausalLM",
           "qwen3_moe": "Qwen3MoeForCausalLM"}

CONFIGS = {"bert": "BertConfig", "gpt2": "GPT2Config", "t5": "T5Config",
           "llama": "LlamaConfig", "marian": "MarianConfig",
           "bart": "BartConfig", "whisper": "WhisperConfig",
           "vit": "ViTConfig", "mistral": "MistralConfig",
           "gemma2": "Gemma2Config", "mixtral": "MixtralConfig",
           "qwen2_moe": "Qwen2MoeConfig", "qwen3_moe": "Qwen3MoeConfig"}


def made(family, seed=0, **config):
    """A model in float64 with drawn weights, the same for equal shapes."""
    import torch
    import transformers
    torch.manual_seed(0)
    settings = SIZES[family] | config
    model = getattr(transformers, CLASSES[family])(getattr(
        transformers, CONFIGS[family])(
            **settings, attn_implementation="eager")).double().eval()
    with torch.no_grad():
        for name, array in model.named_parameters():
            draw = np.random.default_rng(
                sum(map(ord, name)) + 100_000 * seed)
            if "embed_positions" in name and family == "marian":
                continue
            array.copy_(torch.from_numpy(draw.normal(
                "norm" in name.lower() and "weight" in name,
                0.3, array.shape)))
    return model


def inputs(family, seed=0):
    """Token ids, of which two are padding, and their mask; Whisper's sound."""
    import torch
    draw = np.random.default_rng(1 + seed)
    if family == "vit":
        return {"pixel_values": torch.from_numpy(
            draw.normal(size=(2, 3, 12, 12)))}
    if family == "whisper":
        return {"input_features": torch.from_numpy(
            draw.normal(size=(2, 8, 2 * T))),
            "decoder_input_ids": torch.from_numpy(
                draw.integers(1, V, (2, T))), "use_cache": False}
    ids = torch.from_numpy(draw.integers(1, V, (2, T)))
    mask = torch.ones(2, T, dtype=torch.long)
    mask[0, -2:] = 0
    given = {"input_ids": ids, "attention_mask": mask}
    if family in ("t5", "bart", "marian"):
        given["decoder_input_ids"] = ids[:, 2:].clone()
    return given if family == "bert" else given | {"use_cache": False}


def copies(planted, seed=0):
    """Both models of a Planted, each with its inputs by name."""
    a = made(planted.family, seed, **planted.both)
    b = made(planted.family, **planted.both | planted.config)
    b.load_state_dict({name: array for name, array in a.state_dict().items()
                       if name in b.state_dict()}, strict=False)
    given = inputs(planted.family, seed)
    return (a, (), given), (b, (), given)
