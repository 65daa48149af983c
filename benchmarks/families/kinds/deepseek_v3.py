"""DeepSeek V3: latent attention, and a router with groups and a bias."""

from benchmarks.families.fault import ORDER, ROTARY, SCALE, either, number
from benchmarks.families.hugging import F, G, H, T, V, W, Original, unpadded

DEEPSEEK = Original("deepseek_v3", "deepseek_v3", "DeepseekV3ForCausalLM", (
    "DeepseekV3Config", {
        "hidden_size": W, "num_hidden_layers": 2, "vocab_size": V,
        "num_attention_heads": H, "num_key_value_heads": H,
        "intermediate_size": F, "moe_intermediate_size": 12,
        "max_position_embeddings": 4 * T, "q_lora_rank": 10,
        "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 6,
        "v_head_dim": 5, "n_routed_experts": 8, "num_local_experts": 8,
        "n_group": 4, "topk_group": G, "num_experts_per_tok": 3,
        "n_shared_experts": 1, "first_k_dense_replace": 1,
        "routed_scaling_factor": 2.5, "norm_topk_prob": True,
        "use_cache": False, "pad_token_id": 0,
        "experts_implementation": "eager", "rope_parameters": {
            "rope_type": "default", "rope_theta": 1e4}}), unpadded)


def pairs():
    """All of them."""
    of = DEEPSEEK.fault
    return [
        DEEPSEEK.sound(),
        DEEPSEEK.fault("sound: gate and up apart", (), (
            "gate, up = nn.functional.linear(current_state, "
            "self.gate_up_proj[expert_idx]).chunk(2, dim=-1)",
            "one, two = self.gate_up_proj[expert_idx].chunk(2)\n"
            "            gate, up = current_state @ one.T, "
            "current_state @ two.T")),
        of("weights by softmax", (r"softmax|sigmoid",), (
            "scores = router_logits.sigmoid()",
            "scores = router_logits.softmax(-1)")),
        of("the bias is in the weights", (
            r"@bias|e_score_correction§\+",), (
            "topk_weights = scores.gather(1, topk_indices)",
            "topk_weights = (scores + self.e_score_correction_bias)"
            ".gather(1, topk_indices)")),
        of("the bias is not in the choice", (
            r"@bias|e_score_correction|chosen|other experts§\+",), (
            "scores_for_choice = scores + self.e_score_correction_bias",
            "scores_for_choice = scores")),
        of("weights not renormalised", (
            r"sum to 1|renormali[sz]|normali[sz]|divided§/|sum",), (
            "topk_weights /= denominator", "pass")),
        of("routed scale forgotten", (either(SCALE, number(2.5)),), (
            "topk_weights = topk_weights * self.routed_scaling_factor",
            "topk_weights = topk_weights * 1.0")),
        of("groups by their best alone", (
            r"group|top|max|chosen|other experts|\b[12]\b",), (
            ".topk(2, dim=-1)[0]", ".topk(1, dim=-1)[0]")),
        of("experts of every group", (
            r"group|chosen|mask|other experts|inf",), (
            "scores_for_choice = scores_for_choice.masked_fill("
            "~score_mask.bool(), float(\"-inf\"))",
            "scores_for_choice = scores_for_choice")),
        of("shared expert forgotten", (r"shared|summand|added|unused§\+",), (
            "hidden_states = hidden_states + self.shared_experts(residuals)",
            "hidden_states = hidden_states")),
        of("shared expert given the routed sum", (
            r"@shared|input|order",), (
            "self.shared_experts(residuals)",
            "self.shared_experts(hidden_states)")),
        of("gate and up exchanged in experts", (
            r"exchang|swap|order|gate|halves",), (
            "gate, up = nn.functional.linear(current_state",
            "up, gate = nn.functional.linear(current_state")),
        of("rotary in halves", (
            ROTARY + "|pair", r"halves|interleav|order§::2"), (
            "    q1, q2 = q[..., 0::2], q[..., 1::2]\n"
            "    k1, k2 = k[..., 0::2], k[..., 1::2]",
            "    q1, q2 = q.chunk(2, -1)\n    k1, k2 = k.chunk(2, -1)")),
        of("rotary on the first numbers", (
            ORDER + "|first|last",), (
            "q_pass, q_rot = torch.split(q_states, [self.qk_nope_head_dim, "
            "self.qk_rope_head_dim], dim=-1)",
            "q_rot, q_pass = torch.split(q_states, [self.qk_rope_head_dim, "
            "self.qk_nope_head_dim], dim=-1)")),
        of("latents not normed", (r"norm|rms",), (
            "kv_nope = self.kv_a_layernorm(kv_nope)", "kv_nope = kv_nope")),
        of("scale by the part without rotary", (
            SCALE, number(6**-0.5, 6**0.5) + "|√6"), (
            "self.qk_head_dim ** (-0.5))",
            "self.qk_nope_head_dim ** (-0.5))")),
        of("value and key exchanged in the latent", (
            r"exchang|swap|order§\[|split|slice",), (
            "k_nope, value_states = torch.split(kv_nope, "
            "[self.qk_nope_head_dim, self.v_head_dim], dim=-1)",
            "value_states, k_nope = torch.split(kv_nope, "
            "[self.v_head_dim, self.qk_nope_head_dim], dim=-1)")),
    ]
