#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Families of models of `transformers`, each with the tensor-parallel plan that comes with it, on two ranks: whether the outputs are
PyTorch's, and what a layer communicates.

  .venv/bin/python benchmarks/families.py [NAME ...]

Models are small and have random weights. `least` is an all-reduce of the hidden states behind each attention and each MLP of a layer, and one for
both where they are added at once: what a plan of column- and row-parallel layers needs at least. Plans that gather (`colwise_gather_output`)
ask for more. Some models with fused projections of queries, keys and values, which have no plan of their own, have one of ours.
"""
import importlib
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools/export"))

BATCH, LENGTH, HIDDEN, LAYERS, VOCABULARY = 2, 12, 32, 2, 96

COMMON = dict(vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=64, num_hidden_layers=LAYERS, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
HEADS = dict(COMMON, head_dim=8)
EXPERTS = dict(HEADS, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24)
LATENT = dict(COMMON, num_key_value_heads=4, moe_intermediate_size=24, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2,
              q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, first_k_dense_replace=1,
              n_group=2, topk_group=1)

# By name: the classes' prefix, and the configuration.
FAMILIES = {
    "llama": ("Llama", COMMON),
    "mistral": ("Mistral", HEADS),
    "qwen2": ("Qwen2", COMMON),
    "qwen3": ("Qwen3", HEADS),
    "gemma": ("Gemma", HEADS),
    "gemma2": ("Gemma2", dict(HEADS, query_pre_attn_scalar=8, sliding_window=8)),
    "gemma3": ("Gemma3", dict(HEADS, query_pre_attn_scalar=8, sliding_window=8)),
    "phi": ("Phi", dict(COMMON, num_key_value_heads=4)),
    "phi3": ("Phi3", COMMON),
    "gpt_neox": ("GPTNeoX", COMMON),
    "starcoder2": ("Starcoder2", COMMON),
    "cohere": ("Cohere", COMMON),
    "cohere2": ("Cohere2", dict(HEADS, sliding_window=8)),
    "olmo": ("Olmo", COMMON),
    "olmo2": ("Olmo2", COMMON),
    "granite": ("Granite", COMMON),
    "glm": ("Glm", HEADS),
    "glm4": ("Glm4", HEADS),
    "helium": ("Helium", HEADS),
    "smollm3": ("SmolLM3", COMMON),
    "exaone4": ("Exaone4", dict(HEADS, sliding_window=8)),
    "seed_oss": ("SeedOss", HEADS),
    "arcee": ("Arcee", HEADS),
    "ernie4_5": ("Ernie4_5", HEADS),
    "nanochat": ("NanoChat", COMMON),
    "mixtral": ("Mixtral", dict(HEADS, num_local_experts=4, num_experts_per_tok=2)),
    "qwen2_moe": ("Qwen2Moe", dict(EXPERTS, shared_expert_intermediate_size=32)),
    "qwen3_moe": ("Qwen3Moe", EXPERTS),
    "gpt_oss": ("GptOss", dict(HEADS, num_local_experts=4, num_experts_per_tok=2, sliding_window=8)),
    "deepseek_v2": ("DeepseekV2", dict(LATENT, topk_method="greedy")),
    "deepseek_v3": ("DeepseekV3", LATENT),
    "glm4_moe": ("Glm4Moe", dict(HEADS, moe_intermediate_size=24, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2,
                                 first_k_dense_replace=1, n_group=2, topk_group=1)),
}
FAMILIES["olmoe"] = ("Olmoe", EXPERTS)
# Experts in the other form that can be exported, and whole experts on each rank: the family's plan for experts.
BATCHED = {f"{name}_batched": name for name in ("mixtral", "qwen3_moe", "gpt_oss", "deepseek_v3", "olmoe")}
WHOLE = {f"{name}_whole": name for name in ("mixtral", "qwen3_moe", "gpt_oss", "deepseek_v3")}
FAMILIES |= {name: FAMILIES[of] for name, of in (BATCHED | WHOLE).items()}
# Of these a plan shards the experts only.
EXPERTS_ONLY = ("gpt_oss_whole",)
# Attention and MLP of a layer are added at once.
PARALLEL = ("gpt_neox", "phi", "cohere", "cohere2")

TOKENS = BATCH * LENGTH
MAMBA = dict(vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_heads=4, head_dim=16, state_size=8, chunk_size=4)
MAMBA_RULES = {"*.in_proj": "colwise", "*.out_proj": "rowwise"}

# Models without a plan of their own: classes, configuration, how many all-reduces of how many values a layer has at least, and a plan.
SIZES = dict(hidden_size=HIDDEN, intermediate_size=64, num_hidden_layers=LAYERS, num_attention_heads=4)
PIXELS = dict(SIZES, image_size=16, patch_size=4)
OURS = {
    "modernbert": ("ModernBert", dict(COMMON, local_attention=8, cls_token_id=1, sep_token_id=2), 2, TOKENS * HIDDEN, {
        "*.attn.Wqkv": "colwise", "*.attn.Wo": "rowwise", "*.mlp.Wi": "colwise", "*.mlp.Wo": "rowwise"}),
    # Attention over the 3 frames, over the 16 patches and one more value of each, then the MLP.
    "timesformer": ("Timesformer", dict(PIXELS, num_frames=3), 3, BATCH * 3 * 17 * HIDDEN, {
        "*attention.qkv": "colwise", "*attention.output.dense": "rowwise", "*.intermediate.dense": "colwise",
        "*.layer.*.output.dense": "rowwise"}),
    "sam": ("SamVision", dict(PIXELS, initializer_range=0.02, output_channels=16, mlp_dim=64, window_size=2, global_attn_indexes=[1]), 2, BATCH * 16 * HIDDEN, {
        "*.attn.qkv": "colwise", "*.attn.proj": "rowwise", "*.mlp.lin1": "colwise", "*.mlp.lin2": "rowwise"}),
    # Queries, and fewer keys and values, in one matrix. The experts stay whole. transformers 5.23 loops over those that are hit: not exported.
    "dbrx": ("Dbrx", dict(d_model=HIDDEN, n_heads=4, n_layers=LAYERS, vocab_size=VOCABULARY, max_seq_len=64,
                          attn_config=dict(kv_n_heads=2, clip_qkv=8.0, rope_theta=10000.0), ffn_config=dict(ffn_hidden_size=48, hidden_size=HIDDEN, moe_top_k=2)),
             1, TOKENS * HIDDEN, {"*.Wqkv": "colwise", "*.out_proj": "rowwise"}),
    "falcon": ("Falcon", dict(COMMON, num_kv_heads=2, new_decoder_architecture=True, ffn_hidden_size=64), 1, TOKENS * HIDDEN, {
        "*.query_key_value": "colwise", "*.self_attention.dense": "rowwise", "*.dense_h_to_4h": "colwise", "*.dense_4h_to_h": "rowwise"}),
    "bloom": ("Bloom", dict(vocab_size=VOCABULARY, hidden_size=HIDDEN, n_layer=LAYERS, n_head=4), 2, TOKENS * HIDDEN, {
        "*.query_key_value": "colwise", "*.self_attention.dense": "rowwise", "*.dense_h_to_4h": "colwise", "*.dense_4h_to_h": "rowwise"}),
    "mpt": ("Mpt", dict(vocab_size=VOCABULARY, d_model=HIDDEN, n_layers=LAYERS, n_heads=4, max_seq_len=64), 2, TOKENS * HIDDEN, {
        "*.Wqkv": "colwise", "*.out_proj": "rowwise", "*.up_proj": "colwise", "*.down_proj": "rowwise"}),
    # One head of keys and one of values for all queries. Every rank needs them whole, and each of their columns is on one: they are gathered,
    # which moves half of what the reduction of as many values does.
    "gpt_bigcode": ("GPTBigCode", dict(vocab_size=VOCABULARY, n_embd=HIDDEN, n_layer=LAYERS, n_head=4, n_positions=64, multi_query=True),
                    1, TOKENS * (2 * HIDDEN + HIDDEN // 4), {
        "*.attn.c_attn": "colwise", "*.attn.c_proj": "rowwise", "*.mlp.c_fc": "colwise", "*.mlp.c_proj": "rowwise"}),
    # Gate, x, B, C and dt in one matrix, cut in two steps. A rank has the B and C of its heads: only the last product is reduced.
    "mamba2": ("Mamba2", MAMBA | dict(n_groups=2), 1, TOKENS * HIDDEN, MAMBA_RULES),
    # All heads share one B and one C, whose columns are on one rank each: they are gathered, as above. The norm is over all features, of which
    # the ranks have parts: it reduces one value of each token.
    "mamba2_one_group": ("Mamba2", MAMBA | dict(n_groups=1), 1, TOKENS * (HIDDEN + MAMBA["state_size"] + 1), MAMBA_RULES),
}
TESTED = ("qwen3", "phi3", "gpt_neox", "cohere2", "timesformer", "modernbert", "falcon", "mamba2")


def section(name, rules):
    """A section of a plan."""
    return f"{name}:\n" + "".join(f"  {json.dumps(pattern)}: {style}\n" for pattern, style in rules.items())


def configured_plans():
    """Of every configuration class of `transformers` that has one: the name of its section and its rules. No model is made."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    import transformers
    plans = []
    for path in sorted((pathlib.Path(transformers.__file__).parent / "models").glob("*/configuration_*.py")):
        if "_plan" not in path.read_text():
            continue
        module = importlib.import_module(f"transformers.models.{path.parent.name}.{path.stem}")
        for value in vars(module).values():
            if inspect.isclass(value) and value.__module__ == module.__name__:
                plans += [(name, rules) for name in ("base_model_tp_plan", "base_model_ep_plan") if (rules := getattr(value, name, None))]
    return plans


def registered_styles():
    """The names of styles that `transformers` knows."""
    from transformers.integrations.tensor_parallel import ALL_PARALLEL_STYLES
    importlib.import_module("transformers.distributed.expert_parallel")
    return sorted(ALL_PARALLEL_STYLES.keys())


def build(name):
    """A model, its input's name and value, the rules of its plan, and the least that a layer has to reduce, in values."""
    import torch
    import transformers
    prefix, settings, *ours = (FAMILIES | OURS)[name]
    config = next(getattr(transformers, c) for c in (f"{prefix}TextConfig", f"{prefix}Config") if hasattr(transformers, c))(**settings)
    config.use_cache = False
    torch.manual_seed(5)
    form = {"experts_implementation": "batched_mm"} if name in BATCHED else {}
    model = getattr(transformers, f"{prefix}{'Model' if ours else 'ForCausalLM'}")._from_config(config, **form)
    with torch.no_grad():
        for parameter in model.parameters():  # also biases, which are zero at first
            parameter.normal_(0, 0.2) if parameter.ndim == 1 else parameter.mul_(4)
    generator = torch.Generator().manual_seed(3)
    if "image_size" in settings:
        frames = [settings["num_frames"]] if "num_frames" in settings else []
        given = {"pixel_values": torch.randn(BATCH, *frames, 3, 16, 16, generator=generator)}
    else:
        given = {"input_ids": torch.randint(3, VOCABULARY, (BATCH, LENGTH), generator=generator)}
    if ours:
        count, values, rules = ours
        return model.eval(), given, rules, count * values
    rules = dict(config.base_model_tp_plan or {}) | dict(type(model)._tp_plan or {})
    if name in WHOLE:
        rules = {pattern: style for pattern, style in rules.items() if "experts" not in pattern or "shared" in pattern} | config.base_model_ep_plan
    return model.eval(), given, rules, (1 if name in PARALLEL + EXPERTS_ONLY else 2) * BATCH * LENGTH * HIDDEN


def export(name, folder):
    import torch
    from safetensors.torch import save_file
    import shardc_export
    import shardc_meta

    shardc_export.hide_warnings()
    model, given, rules, least = build(name)
    (key, value), = given.items()

    class First(torch.nn.Module):
        """The first output, with no cache."""
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(**{key: x}, **({"use_cache": False} if key == "input_ids" and name not in OURS else {}))[0]

    with torch.no_grad():
        save_file({"expected": First()(value).contiguous()}, folder / "expected.safetensors")
    save_file({"x": value}, folder / "in.safetensors")
    shardc_meta.save(shardc_meta.export(shardc_export.export, First(), (value,), {}), folder / "model.pt2")
    (folder / "plan.yaml").write_text(section("base_model_tp_plan", rules))
    (folder / "least").write_text(str(4 * least))


def export_alone(name, folder):
    """In a process of its own, which it returns when that has ended."""
    return subprocess.run([sys.executable, __file__, "--export", name, folder], cwd=folder, capture_output=True, text=True)


def measure(name, folder, ranks=2, exporter=export_alone):
    """One row of the table."""
    from safetensors.torch import load_file

    def shardc(*options):
        return subprocess.run([str(o) for o in options], cwd=folder, capture_output=True, text=True)

    row = {"name": name}
    done = exporter(name, folder)
    if done.returncode:
        return row | {"result": "not exported", "reason": done.stderr.strip().splitlines()[-1]}
    row["least"] = int((folder / "least").read_text()) * 2 * (ranks - 1) // ranks
    tools = pathlib.Path(os.environ.get("SHARDC_BUILD", ROOT / "build")) / "bin"
    how = ("model.pt2", "--mesh", f"tp={ranks}", "--plan", "plan.yaml")
    done = shardc(tools / "shardc", "compile", *how, "-o", "model.so")
    if done.returncode:
        return row | {"result": "refused", "reason": next((l for l in done.stderr.splitlines() if "error" in l), done.stderr[:300])}
    report = json.loads(shardc(tools / "shardc", "explain", *how, "--format", "json").stdout)
    inside = [c for c in report["collectives"] if re.search(r"\b(layers?|h|blocks)\.\d", c.get("module") or "")]
    row |= {"bytes": sum(c["bytes_per_rank"] for c in inside) // LAYERS,
            "kinds": ", ".join(sorted({c["kind"] for c in inside}))}
    done = shardc(tools / "shard-run", "-n", ranks, "model.so", "--weights", "model.pt2", "--inputs", "in.safetensors",
                  "--outputs", "out.safetensors")
    if done.returncode:
        return row | {"result": "failed", "reason": done.stderr.strip()[:300]}
    (found,), expected = load_file(folder / "out.safetensors").values(), load_file(folder / "expected.safetensors")["expected"]
    error = ((found - expected).abs().max() / expected.abs().max()).item()
    return row | {"result": "right" if error < 1e-4 else "wrong", "reason": f"error {error:.1e}"}


def main(names):
    print(f"{'family':14} {'result':10} {'bytes/layer':>11} {'least':>7}  collectives; reason", flush=True)
    rows = []
    for name in names or FAMILIES | OURS:
        with tempfile.TemporaryDirectory() as folder:
            row = measure(name, pathlib.Path(folder))
        rows.append(row)
        print(f"{name:14} {row['result']:10} {row.get('bytes', '-'):>11} {row.get('least', '-'):>7}  {row.get('kinds', '')}; {row.get('reason', '')}", flush=True)
    print(f"{sum(row['result'] == 'right' for row in rows)} of {len(rows)} right")
    return any(row["result"] in ("wrong", "failed") for row in rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--export"]:
        export(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        sys.exit(main(sys.argv[1:]))
