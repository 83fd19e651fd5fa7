# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of `transformers` for zoo.py: each configuration class with few layers and small widths, and random weights."""
import torch

from zoo_composed import COMPOSED

# What a configuration has of these becomes small; so do the configurations in it. A family's own sizes are in its row.
SMALL = {
    "vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
    "max_position_embeddings": 64, "type_vocab_size": 2, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "n_ctx": 64,
    "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
    "dim": 64, "hidden_dim": 96, "n_layers": 2, "n_heads": 4, "image_size": 32, "patch_size": 8, "ffn_dim": 96, "head_dim": 16,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32, "embedding_size": 32, "d_inner": 96, "emb_dim": 64, "max_source_positions": 64,
    "max_target_positions": 64, "word_embed_proj_dim": 64, "attention_head_size": 16, "projection_dim": 32, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "use_cache": False, "sliding_window": 4, "rotary_dim": 8,
    "q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16, "first_k_dense_replace": 1,
    "n_group": 2, "topk_group": 1, "state_size": 8, "time_step_rank": 4, "conv_dim": [32, 32], "conv_kernel": 3, "num_register_tokens": 2,
}
TEXT, MASKED, BOTH, PIXELS, IMAGES_AND_TEXT, WAVE = "text", "masked text", "two texts", "pixels", "pixels and text", "wave"
BATCH, LENGTH = 3, 11


def inputs(kind, config, more):
    """Arguments by name. Three rows over two ranks are uneven shards."""
    def ids(length=LENGTH):
        return torch.randint(3, 99, (BATCH, length))

    if kind == TEXT:
        return {"input_ids": ids()}
    if kind == MASKED:
        mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
        mask[1, 7:] = 0
        return {"input_ids": ids(), "attention_mask": mask}
    if kind == BOTH:
        return {"input_ids": ids(), "decoder_input_ids": ids(7)}
    if kind == WAVE:
        return {"input_values": torch.randn(BATCH, 2000)}
    part = getattr(config, "vision_config", config)
    pixels = torch.randn(BATCH, *more.get("frames", ()), getattr(part, "num_channels", 3), *more.get("pixels", (32, 32)))
    return {"pixel_values": pixels} if kind == PIXELS else {"input_ids": ids(), "pixel_values": pixels}


# Rows: the configuration's `model_type`, the auto class, the inputs, and the sizes that are the family's own.
CAUSAL = {
    **dict.fromkeys((
        "gpt2 llama mistral qwen2 qwen3 gemma gemma2 gemma3_text phi phi3 falcon bloom opt gpt_neox stablelm starcoder2 olmo olmo2 olmo3 "
        "cohere cohere2 granite glm glm4 nemotron smollm3 exaone4 ernie4_5 helium persimmon mpt gpt_bigcode biogpt xglm openai-gpt "
        "apertus arcee seed_oss hunyuan_v1_dense diffllama nanochat codegen vaultgemma cwm doge").split(), {}),
    "gpt_neo": {"num_layers": 2, "attention_types": [[["global", "local"], 1]], "window_size": 4},
    "gptj": {"rotary_dim": 8}, "ctrl": {"n_embd": 64, "dff": 96}, "lfm2": {"layer_types": ["conv", "full_attention"]},
    "mixtral": {}, "qwen2_moe": {}, "qwen3_moe": {}, "olmoe": {}, "gpt_oss": {"layer_types": ["sliding_attention", "full_attention"]},
    "deepseek_v2": {"head_dim": 8, "num_key_value_heads": 4}, "deepseek_v3": {"head_dim": 8, "num_key_value_heads": 4}, "granitemoe": {}, "phimoe": {}, "minimax": {}, "ernie4_5_moe": {"moe_num_experts": 4, "moe_k": 2},
    "mamba": {}, "falcon_mamba": {}, "mamba2": {"num_heads": 8, "head_dim": 16, "hidden_size": 64, "n_groups": 2, "state_size": 16, "chunk_size": 4},
    "recurrent_gemma": {"lru_width": 64, "attention_window_size": 4, "num_hidden_layers": 3}, "rwkv": {"attention_hidden_size": 64},
    "jamba": {"attn_layer_offset": 1, "attn_layer_period": 2, "expert_layer_period": 2, "expert_layer_offset": 1, "use_mamba_kernels": False,
              "mamba_d_state": 8, "mamba_dt_rank": 4},
}
ENCODERS = {
    **dict.fromkeys((
        "bert roberta distilbert albert electra deberta deberta-v2 mpnet xlm-roberta camembert convbert ernie "
        "rembert esm roformer megatron-bert splinter layoutlm nystromformer data2vec-text roberta-prelayernorm nomic_bert luke").split(), {}),
    "squeezebert": {"embedding_size": 64}, "ibert": {},
    "mobilebert": {"true_hidden_size": 32, "intra_bottleneck_size": 32}, "modernbert": {"local_attention": 4, "global_attn_every_n_layers": 2},
    "canine": {"num_hash_buckets": 64, "local_transformer_stride": 8, "downsampling_rate": 2}, "fnet": {}, "xlnet": {"d_head": 16}, "xlm": {}, "flaubert": {},
    "longformer": {"attention_window": [4, 4]}, "big_bird": {"attention_type": "original_full"}, "reformer": {
        "attn_layers": ["local", "lsh"], "axial_pos_shape": [4, 4], "axial_pos_embds_dim": [32, 32], "num_buckets": 2, "feed_forward_size": 64},
    "yoso": {}, "mra": {}, "tapas": {}, "eurobert": {},
}
SEQ2SEQ = {
    **dict.fromkeys("t5 mt5 umt5 bart mbart pegasus marian m2m_100 blenderbot plbart mvp fsmt prophetnet longt5 switch_transformers".split(), {}),
    "led": {"attention_window": 4}, "bigbird_pegasus": {"attention_type": "original_full"}, "blenderbot-small": {}, "nllb-moe": {"num_experts": 4, "expert_capacity": 16},
}
VISION = {
    **dict.fromkeys("vit deit dinov2 dinov2_with_registers dinov3_vit vit_msn ijepa yolos data2vec-vision mlcd_vision_model "
                    "clip_vision_model siglip_vision_model aimv2_vision_model".split(), {}),
    # Which patches are masked is drawn at random where it is not given.
    "vit_mae": {"call": lambda: {"pixel_values": torch.randn(BATCH, 3, 32, 32), "noise": torch.rand(BATCH, 16)}},
    "beit": {"use_relative_position_bias": True, "use_mean_pooling": True}, "vitdet": {"window_size": 2, "window_block_indices": [0]},
    "swin": {"embed_dim": 24, "depths": [2, 1], "num_heads": [2, 4], "window_size": 4, "patch_size": 2},
    "swinv2": {"embed_dim": 24, "depths": [2, 1], "num_heads": [2, 4], "window_size": 4, "patch_size": 2},
    "donut-swin": {"embed_dim": 24, "depths": [2, 1], "num_heads": [2, 4], "window_size": 4, "patch_size": 2},
    "convnext": {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2}, "convnextv2": {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
    "resnet": {"embedding_size": 16, "hidden_sizes": [32, 64], "depths": [1, 1]}, "regnet": {"embedding_size": 16, "hidden_sizes": [32, 64], "depths": [1, 1], "groups_width": 16},
    "mobilenet_v1": {"depth_multiplier": 0.25}, "mobilenet_v2": {"depth_multiplier": 0.35},
    "mobilevit": {"hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 24, 24, 32, 48], "pixels": (64, 64), "image_size": 64, "patch_size": 2},
    "mobilevitv2": {"width_multiplier": 0.25, "pixels": (64, 64), "image_size": 64, "patch_size": 2},
    "poolformer": {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1], "pixels": (64, 64)}, "efficientnet": {"width_coefficient": 0.2, "depth_coefficient": 0.2, "hidden_dim": 256},
    "segformer": {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4], "patch_sizes": [7, 3, 3, 3], "pixels": (64, 64)},
    "pvt": {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4], "patch_sizes": [4, 2, 2, 2]},
    "pvt_v2": {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4], "patch_sizes": [7, 3, 3, 3], "pixels": (64, 64)},
    "levit": {"hidden_sizes": [32, 48, 64], "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1], "key_dim": [8, 8, 8], "pixels": (64, 64), "image_size": 64, "patch_size": 16},
    "focalnet": {"embed_dim": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "focal_levels": [2, 2], "focal_windows": [3, 3], "patch_size": 4},
    "bit": {"embedding_size": 32, "hidden_sizes": [32, 64], "depths": [1, 1], "num_groups": 4}, "hiera": {"embed_dim": 16, "depths": [1, 1, 1], "num_heads": [1, 2, 4], "pixels": (64, 64), "image_size": [64, 64],
        "patch_size": [7, 7], "embed_dim_multiplier": 2.0, "masked_unit_size": [4, 4], "masked_unit_attention": [True, True, False], "num_query_pool": 2, "query_stride": [2, 2]},
    "swiftformer": {"embed_dims": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "pixels": (64, 64)}, "textnet": {"pixels": (64, 64)},
    "timesformer": {"num_frames": 2, "frames": (2,)}, "videomae": {"num_frames": 2, "tubelet_size": 2, "frames": (2,)}, "vivit": {"num_frames": 4, "frames": (4,), "tubelet_size": [2, 8, 8]},
    "imagegpt": {"kind": TEXT}, "vjepa2": {"crop_size": 32, "frames_per_clip": 2, "frames": (2,), "video": True, "pred_hidden_size": 32, "pred_num_attention_heads": 4, "pred_num_hidden_layers": 1},
}
TOGETHER = {"clip": {}, "siglip": {}, "blip": {}, "altclip": {}, "chinese_clip": {}, "metaclip_2": {}, "vilt": {"max_image_length": -1}, "owlvit": {}, "groupvit": {}}
SPEECH = {
    **dict.fromkeys("wav2vec2 hubert wavlm unispeech unispeech-sat data2vec-audio sew".split(), {
        "conv_dim": [32, 32], "conv_stride": [5, 4], "conv_kernel": [10, 3], "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 2}),
    "whisper": {"call": lambda: {"input_features": torch.randn(BATCH, 80, 40), "decoder_input_ids": torch.randint(3, 99, (BATCH, 7))}, "max_source_positions": 20},
    "speech_to_text": {"call": lambda: {"input_features": torch.randn(BATCH, 40, 80), "decoder_input_ids": torch.randint(3, 99, (BATCH, 7))}, "conv_channels": 32},
    "audio-spectrogram-transformer": {"call": lambda: {"input_values": torch.randn(BATCH, 40, 16)}, "max_length": 40, "num_mel_bins": 16, "patch_size": 8,
                                      "frequency_stride": 8, "time_stride": 8},
    "wav2vec2-bert": {"call": lambda: {"input_features": torch.randn(BATCH, 20, 160)}},
    "wav2vec2-conformer": {"conv_dim": [32, 32], "conv_stride": [5, 4], "conv_kernel": [10, 3], "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 2},
    "patchtst": {"call": lambda: {"past_values": torch.randn(BATCH, 32, 5)}, "context_length": 32, "patch_length": 4, "patch_stride": 4, "num_input_channels": 5, "d_model": 32, "ffn_dim": 48},
    "patchtsmixer": {"call": lambda: {"past_values": torch.randn(BATCH, 32, 5)}, "context_length": 32, "patch_length": 4, "patch_stride": 4, "num_input_channels": 5, "d_model": 32},
    "decision_transformer": {"call": lambda: {
        "states": torch.randn(BATCH, 5, 17), "actions": torch.randn(BATCH, 5, 4), "rewards": torch.randn(BATCH, 5, 1), "returns_to_go": torch.randn(BATCH, 5, 1),
        "timesteps": torch.randint(0, 20, (BATCH, 5)), "attention_mask": torch.ones(BATCH, 5)}},
}
GROUPS = ((CAUSAL, "AutoModelForCausalLM", TEXT), (ENCODERS, "AutoModel", MASKED), (SEQ2SEQ, "AutoModelForSeq2SeqLM", BOTH),
          (VISION, "AutoModel", PIXELS), (TOGETHER, "AutoModel", IMAGES_AND_TEXT), (SPEECH, "AutoModel", WAVE))
ROWS = {name: (auto, kind, own) for group, auto, kind in GROUPS for name, own in group.items()}
ROWS |= {name: (auto, TEXT, own) for name, (auto, own) in COMPOSED.items()}
ONLY_HERE = ("pixels", "frames", "kind", "call", "video")  # of a row: about its inputs


def small(config, own):
    """Arguments of the configuration class that make its default configuration small. `own` holds values of this family."""
    given = config.to_dict()
    made = {name: value for name, value in SMALL.items() if name in given and name not in own and isinstance(given[name], type(value) | None.__class__ | int)
            and not isinstance(given[name], (list, tuple)) | isinstance(value, list)}
    parts = {}
    for name in getattr(config, "sub_configs", {}):
        chosen, part = own.get(name, {}), getattr(config, name, None)
        if "model_type" in chosen:
            parts[name] = chosen
        elif part:
            parts[name] = small(part, chosen)
    made |= {name: value for name, value in own.items() if name not in ONLY_HERE} | parts
    return {name: value for name, value in made.items() if value is not None}  # None: as in the default configuration


def build(name):
    """The module of a row and its arguments by name."""
    import transformers
    auto, kind, own = ROWS[name]
    standard = transformers.AutoConfig.for_model(name)
    config = type(standard)(**small(standard, own))
    for part in (config, *(getattr(config, n, None) for n in getattr(config, "sub_configs", {}))):
        if part is not None:
            part._experts_implementation = getattr(part, "_experts_implementation", None) or "batched_mm"
    torch.manual_seed(0)
    made = getattr(transformers, auto)
    module = (made.from_config(config, attn_implementation=None) if auto.startswith("Auto") else made(config)).eval()
    takes = own["call"]() if "call" in own else inputs(own.get("kind", kind), config, own)
    if own.get("video"):
        takes = {"pixel_values_videos": takes["pixel_values"]}
    return module, takes


def plan(module):
    """What the model's own tensor-parallel plan says, by pattern."""
    found = {}
    for owner in (module, getattr(module, "base_model", None)):
        found |= getattr(owner, "_tp_plan", None) or {}
    return found | (getattr(module.config, "base_model_tp_plan", None) or {})
