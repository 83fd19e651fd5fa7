# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Greedy decoding with a cache beside transformers' `generate`: tiny models of random weights, on 1, 2 and 4 ranks.

    SHARDRT=build/lib/libshardrt.so python benchmarks/decoding.py [FAMILY...]

The cache is an argument and a result (DynamicCache) or a state of the program (StaticCache), sharded by heads (tp) and by batch (dp). Prints a
line for each family, form and mesh, and fails if a token differs."""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools/export"))
PROMPT = np.array([[5, 17, 3, 60], [5, 17, 4, 2]])
MESHES = ("tp=1", "tp=2", "dp=2,tp=2")
COLUMNS, ROWS = "model.layers.*.self_attn.{q,k,v}_proj", "model.layers.*.self_attn.o_proj"
STYLES = {"gpt2": {"transformer.h.*.attn.c_attn": "packed_colwise", "transformer.h.*.attn.c_proj": "rowwise"}}


def model(family):
    """A tiny model of the family, with weights large enough that the tokens differ."""
    import transformers as t
    torch.manual_seed(0)
    sizes = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
                 max_position_embeddings=128, initializer_range=0.2, bos_token_id=None, eos_token_id=None, pad_token_id=0)
    built = {
        "gpt2": lambda: t.GPT2LMHeadModel(t.GPT2Config(vocab_size=96, n_positions=128, n_embd=32, n_layer=2, n_head=4, initializer_range=0.2,
                                                       bos_token_id=None, eos_token_id=None, pad_token_id=0)),
        "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**sizes)),
        "qwen3": lambda: t.Qwen3ForCausalLM(t.Qwen3Config(head_dim=8, **sizes)),
        "mistral": lambda: t.MistralForCausalLM(t.MistralConfig(sliding_window=None, **sizes)),
        "llama-gqa": lambda: t.LlamaForCausalLM(t.LlamaConfig(**{**sizes, "num_key_value_heads": 2})),
        "mixtral": lambda: t.MixtralForCausalLM(t.MixtralConfig(num_local_experts=4, num_experts_per_tok=2, experts_implementation="batched_mm",
                                                                **sizes)),
    }[family]()
    return built.eval()


def export_dynamic(family, path):
    """Exports a step: of any number of tokens, behind any number, for any number of sequences."""
    import shardc_export
    from transformers import DynamicCache
    built = model(family)
    cache, config = DynamicCache(config=built.config), built.config
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    for layer in range(config.num_hidden_layers):
        cache.update(*(torch.zeros(2, heads, 5, 8) for _ in range(2)), layer)
    inputs, rows = {"input_ids": torch.ones(2, 3, dtype=torch.long), "past_key_values": cache, "use_cache": True}, "rows:1:64"
    torch.export.save(shardc_export.export(built, (), inputs, [f"input_ids:0={rows}", "input_ids:1=new:1:64", f"past_key_values.*:0={rows}",
                                                                  "past_key_values.*:2=past:0:64"]), path)


def export_static(family, path, strict=False):
    """Exports a step with transformers' StaticCache, which the program keeps."""
    import shardc_export
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache
    built = model(family)
    built.generation_config.cache_implementation, built.generation_config.use_cache = "static", True
    step = TorchExportableModuleWithStaticCache(built, batch_size=2, max_cache_len=64)
    inputs = {"input_ids": torch.ones(2, 3, dtype=torch.long), "cache_position": torch.arange(3)}
    torch.export.save(shardc_export.export(step, (), inputs, ["input_ids:1=new:1:64", "cache_position:0=new"], strict=strict), path)


EXPORTS = {"dynamic": export_dynamic, "static": export_static}


def generated(family, count):
    with torch.no_grad():
        tokens = model(family).generate(torch.tensor(PROMPT), max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=0)
    return tokens[:, PROMPT.shape[1]:].tolist()


def plan(family, mesh, form="dynamic"):
    styles = STYLES.get(family, {COLUMNS: "colwise", ROWS: "rowwise"})
    prefix = "model." if form == "static" else ""
    options = [f"--place=module:{prefix}{name}={style}" for name, style in styles.items()]
    placed = ",".join(f"{axis}:S({dim})" for axis, dim in (("dp", 0), ("tp", 1)) if axis in mesh)
    options.append(f"--place={'input:past_key_values*' if form == 'dynamic' else 'param:{key,value}_cache_*'}={placed}")
    return options + (["--place=input:input_ids=dp:S(0)"] if "dp" in mesh else [])


def main(families):
    sys.path.insert(0, str(ROOT / "runtime/examples"))
    import decode
    wrong = 0
    for family in families or ("gpt2", "llama", "llama-gqa", "qwen3", "mistral", "mixtral"):
        with tempfile.TemporaryDirectory() as folder:
            path, program = pathlib.Path(folder) / "model.pt2", pathlib.Path(folder) / "model.so"
            wanted = generated(family, 32)
            for form, export in EXPORTS.items():
                export(family, path)
                for mesh in MESHES:
                    options = ["--mesh", mesh, *plan(family, mesh, form)]
                    subprocess.run([ROOT / "build/bin/shardc", "compile", path, *options, "-o", program], check=True)
                    same = decode.decode(str(program), str(path), PROMPT, 32).tolist() == wanted
                    wrong += not same
                    print(f"{family:10} {form:8} {mesh:10} {'the tokens of generate' if same else 'OTHER TOKENS'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
