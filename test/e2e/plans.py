# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Placement plans of the test models, as `--place` options: what a user would write, no more."""


def places(*specs):
    return [option for spec in specs for option in ("--place", spec)]


# Naming only the weights of attention and MLP gives the Megatron program (sparse annotations suffice).
GPT2_TP = places("module:*.c_attn=colwise", "module:*.attn.c_proj=rowwise",
                 "module:*.c_fc=colwise", "module:*.mlp.c_proj=rowwise")
LLAMA_TP = places("module:layers.*.self_attn.{q,k,v}_proj=colwise", "module:layers.*.self_attn.o_proj=rowwise",
                  "module:layers.*.mlp.{gate,up}_proj=colwise", "module:layers.*.mlp.down_proj=rowwise")
MINILM_TP = places("module:*.attention.self.{query,key,value}=colwise", "module:*.attention.output.dense=rowwise",
                   "module:*.intermediate.dense=colwise", "module:*.layer.*.output.dense=rowwise")
MLP_TP = places("module:up=colwise", "module:down=rowwise")

# The vocabulary of embedding and head over tp as well.
VOCABULARY_TP = places("module:*{wte,embed_tokens,word_embeddings}=embedding_rowwise")
LM_HEAD_TP = places("module:lm_head=colwise")
REPLICATED_OUTPUT = places("output:*=R")

DATA_PARALLEL = places("input:*=dp:S(0)")

TP = {"mlp": MLP_TP, "gpt2": GPT2_TP, "llama": LLAMA_TP, "minilm": MINILM_TP}


def tensor_parallel(name):
    return TP[name.split("_")[0]]


# Norms on their part of the sequence; goes with tensor_parallel.
SEQUENCE = {
    "gpt2": places("module:*.ln_1=sequence", "module:*.ln_2=sequence", "module:*.ln_f=sequence"),
    "llama": places("module:*.input_layernorm=sequence", "module:*.post_attention_layernorm=sequence",
                    "module:*.norm=sequence"),
}


def sequence_parallel(name):
    return SEQUENCE[name.split("_")[0]]
