# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of zoo_transformers.py for models that are made of others or take inputs of their own: detection, segmentation, depth, codecs, time series, several
modalities. A row is the auto class and the sizes that are the family's own; `call` makes the inputs."""
import torch

BATCH, LENGTH = 3, 11


def pixels(size=64, channels=3):
    return {"pixel_values": torch.randn(BATCH, channels, size, size)}


def ids(length=LENGTH, high=99):
    return torch.randint(3, high, (BATCH, length))


def boxes():
    corners = torch.randint(0, 30, (BATCH, LENGTH, 2))
    return torch.cat([corners, corners + 7], -1)


def series(length=24, future=4, features=1):
    return {"past_values": torch.randn(BATCH, length), "past_time_features": torch.randn(BATCH, length, features), "past_observed_mask": torch.ones(BATCH, length),
            "future_values": torch.randn(BATCH, future), "future_time_features": torch.randn(BATCH, future, features)}


SERIES = {"prediction_length": 4, "context_length": 17, "num_time_features": 1, "d_model": 16, "call": series}
RESNET = {"model_type": "resnet", "embedding_size": 16, "hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "layer_type": "basic", "out_features": ["stage4"]}
STAGES = {**RESNET, "out_features": ["stage1", "stage2", "stage3", "stage4"]}
SWIN = {"model_type": "swin", "embed_dim": 16, "depths": [1, 1, 1, 1], "num_heads": [2, 2, 4, 4], "window_size": 4, "patch_size": 4, "image_size": 64,
        "out_features": ["stage1", "stage2", "stage3", "stage4"]}
CLIP = {"image_size": 32, "patch_size": 8}
COMPOSED = {
    "detr": ("AutoModel", {"backbone_config": RESNET, "num_queries": 5, "call": pixels}), "conditional_detr": ("AutoModel", {"backbone_config": RESNET, "num_queries": 5,
        "call": pixels}),
    "deformable_detr": ("AutoModel", {"backbone_config": STAGES, "num_queries": 5, "num_feature_levels": 4, "call": pixels}),
    "table-transformer": ("AutoModel", {"backbone_config": RESNET, "num_queries": 5, "call": pixels}),
    "maskformer": ("AutoModel", {"backbone_config": SWIN, "fpn_feature_size": 32, "mask_feature_size": 32, "decoder_config": {"model_type": "detr", "num_queries": 5,
        "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4}, "call": pixels}),
    "mask2former": ("AutoModel", {"backbone_config": SWIN, "feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32, "encoder_feedforward_dim": 48,
        "dim_feedforward": 48, "num_queries": 5,
                                  "encoder_layers": 1, "decoder_layers": 2, "call": pixels}),
    "sam": ("AutoModel", {"vision_config": {"image_size": 32, "patch_size": 8, "output_channels": 32, "num_pos_feats": 16, "global_attn_indexes": [1], "window_size": 2},
        "prompt_encoder_config": {"hidden_size": 32, "image_size": 32, "patch_size": 8, "image_embedding_size": 4, "mask_input_channels": 4},
                          "mask_decoder_config": {"hidden_size": 32, "mlp_dim": 48, "iou_head_hidden_dim": 32}, "call": lambda: {"pixel_values": torch.randn(BATCH, 3,
        32, 32), "input_points": torch.rand(BATCH, 1, 2, 2) * 32}}),
    "dpt": ("AutoModelForDepthEstimation", {"image_size": 32, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "neck_hidden_sizes": [8, 16, 24, 32],
        "fusion_hidden_size": 16, "call": lambda: pixels(32)}),
    "depth_anything": ("AutoModelForDepthEstimation", {"patch_size": 8, "backbone_config": {"model_type": "dinov2", "hidden_size": 64, "num_hidden_layers": 4,
        "num_attention_heads": 4, "image_size": 32, "patch_size": 8, "out_features": ["stage1", "stage2", "stage3", "stage4"], "reshape_hidden_states": False},
                                                       "reassemble_hidden_size": 64, "neck_hidden_sizes": [8, 16, 24, 32], "fusion_hidden_size": 16,
        "call": lambda: pixels(32)}),
    "upernet": ("AutoModelForSemanticSegmentation", {"backbone_config": STAGES, "hidden_size": 32, "auxiliary_channels": 16, "call": pixels}),
    "glpn": ("AutoModelForDepthEstimation", {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4], "decoder_hidden_size": 16,
        "call": pixels}),
    "swin2sr": ("AutoModel", {"image_size": 32, "patch_size": 1, "embed_dim": 24, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4, "call": lambda: pixels(32)}),
    "clipseg": ("AutoModelForZeroShotImageClassification", {"call": lambda: {"input_ids": ids(), **pixels(32)}}),
    "vitpose": ("VitPoseForPoseEstimation", {"backbone_config": {"model_type": "vitpose_backbone", "image_size": [32, 32], "patch_size": [8, 8], "hidden_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 4}, "call": lambda: pixels(32)}),
    "superpoint": ("AutoModelForKeypointDetection", {"encoder_hidden_sizes": [8, 8, 16, 16], "decoder_hidden_size": 16, "descriptor_decoder_dim": 16,
        "call": lambda: pixels(32)}),
    "mgp-str": ("AutoModel", {"image_size": [32, 32], "call": lambda: pixels(32)}),
    "encodec": ("AutoModel", {"num_filters": 8, "hidden_size": 32, "codebook_dim": 32, "codebook_size": 16, "upsampling_ratios": [4, 2],
        "call": lambda: {"input_values": torch.randn(BATCH, 1, 320)}}),
    "dac": ("AutoModel", {"encoder_hidden_size": 8, "downsampling_ratios": [2, 4], "decoder_hidden_size": 32, "n_codebooks": 2, "codebook_size": 16,
        "upsampling_ratios": [4, 2], "hop_length": 8,
                          "call": lambda: {"input_values": torch.randn(BATCH, 1, 320)}}),
    "mimi": ("AutoModel", {"num_filters": 8, "hidden_size": 64, "codebook_dim": 32, "codebook_size": 16, "num_quantizers": 2, "upsampling_ratios": [4, 2],
        "upsample_groups": 64, "vector_quantization_hidden_dimension": 32,
                           "call": lambda: {"input_values": torch.randn(BATCH, 1, 320)}}),
    "speecht5": ("AutoModelForSpeechSeq2Seq", {"conv_dim": [32, 32], "conv_stride": [5, 4], "conv_kernel": [10, 3], "num_conv_pos_embeddings": 8,
        "num_conv_pos_embedding_groups": 4,
                                               "call": lambda: {"input_values": torch.randn(BATCH, 2000), "decoder_input_ids": ids(7, 80)}}),
    "time_series_transformer": ("AutoModel", SERIES), "autoformer": ("AutoModel", {**SERIES, "moving_average": 5, "label_length": 8}), "informer": ("AutoModel",
        {**SERIES, "sampling_factor": 2}),
    "timesfm": ("AutoModel", {"patch_length": 8, "context_length": 32, "horizon_length": 8, "call": lambda: {
        "past_values": torch.randn(BATCH, 32), "past_values_padding": torch.zeros(BATCH, 32, dtype=torch.int64), "freq": torch.zeros(BATCH, 1, dtype=torch.int64)}}),
    "git": ("AutoModelForCausalLM", {"vision_config": CLIP, "call": lambda: {"input_ids": ids(), **pixels(32)}}),
    "llava": ("AutoModelForImageTextToText", {"image_token_index": 98, "vision_config": CLIP, "call": lambda: {
        "input_ids": torch.cat([torch.full((BATCH, 16), 98), ids(5, 97)], 1), **pixels(32)}}),
    "flava": ("AutoModel", {"image_config": CLIP, "call": lambda: {"input_ids": ids(), **pixels(32)}}), "bridgetower": ("AutoModel", {"vision_config": CLIP,
        "call": lambda: {"input_ids": ids(), **pixels(32)}}),
    "lxmert": ("AutoModel", {"l_layers": 1, "x_layers": 1, "r_layers": 1, "visual_feat_dim": 32, "call": lambda: {"input_ids": ids(), "visual_feats": torch.randn(BATCH,
        6, 32), "visual_pos": torch.rand(BATCH, 6, 4)}}),
    "visual_bert": ("AutoModel", {"visual_embedding_dim": 32, "call": lambda: {"input_ids": ids(), "visual_embeds": torch.randn(BATCH, 6, 32),
        "visual_attention_mask": torch.ones(BATCH, 6),
                                                                               "visual_token_type_ids": torch.ones(BATCH, 6, dtype=torch.int64)}}),
    "layoutlmv3": ("AutoModel", {"coordinate_size": 8, "shape_size": 16, "max_2d_position_embeddings": 64, "input_size": 32, "call": lambda: {"input_ids": ids(),
        "bbox": boxes(), **pixels(32)}}),
    "lilt": ("AutoModel", {"hidden_size": 96, "num_attention_heads": 4, "channel_shrink_ratio": 4, "max_2d_position_embeddings": 64, "call": lambda: {"input_ids": ids(),
        "bbox": boxes()}}),
    "bros": ("AutoModel", {"call": lambda: {"input_ids": ids(), "bbox": torch.rand(BATCH, LENGTH, 4)}}),
    "funnel": ("FunnelModel", {"block_sizes": [1, 1], "block_repeats": [1, 1], "num_hidden_layers": None, "num_decoder_layers": 1, "d_head": 16,
        "call": lambda: {"input_ids": ids()}}),
    "perceiver": ("AutoModelForMaskedLM", {"num_latents": 8, "d_latents": 32, "d_model": 32, "num_self_attends_per_block": 1, "num_self_attention_heads": 4,
        "num_cross_attention_heads": 4, "qk_channels": 32, "v_channels": 32,
                                           "max_position_embeddings": 16, "call": lambda: {"inputs": ids(16)}}),
    "trocr": ("TrOCRForCausalLM", {"call": lambda: {"input_ids": ids()}}),
    "musicgen_decoder": ("MusicgenForCausalLM", {"num_codebooks": 2, "call": lambda: {"input_ids": torch.randint(3, 90, (BATCH * 2, 7))}}),
}
