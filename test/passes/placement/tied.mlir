// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s "--dist-apply-plan=mesh=tp=4 place=module:embed=embedding_rowwise" | FileCheck %s --check-prefix=VOCABULARY
// RUN: shard-opt %s "--dist-apply-plan=mesh=tp=4 place=module:head=colwise" | FileCheck %s --check-prefix=VOCABULARY
// RUN: shard-opt %s "--dist-apply-plan=mesh=tp=4 place=module:embed=colwise" | FileCheck %s --check-prefix=HIDDEN
// RUN: shard-opt %s "--dist-apply-plan=mesh=tp=4 place=module:head=rowwise" | FileCheck %s --check-prefix=HIDDEN
// RUN: shard-opt %s "--dist-apply-plan=mesh=tp=4 place=module:apart=embedding_rowwise" | FileCheck %s --check-prefix=APART
// RUN: not shard-opt %s "--dist-apply-plan=mesh=tp=4 place=module:head=embedding_rowwise place=module:block=embedding_rowwise" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: shard-opt %s "--dist-apply-plan=mesh=tp=4 place=param:*=R place=param:head.weight=tp:S(0)" 2>&1 | FileCheck %s --check-prefix=REMARK

// A table of 1003 tokens that is looked up in one module and multiplied with in another: its dims have
// other roles in each.
// VOCABULARY: {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.kind = "parameter", dist.name = ["embed.weight", "head.weight"]
// HIDDEN: {dist.annotation = #dist.layout<#mesh, [S(1)]>, dist.kind = "parameter", dist.name = ["embed.weight", "head.weight"]

// No op has this module's path: its table is what the ops elsewhere make of it.
// APART: {dist.annotation = #dist.layout<#mesh, [S(1)]>, dist.kind = "parameter", dist.name = "apart.weight"

// NONE-DAG: error: {{.*}}module 'head' has no weight of its own that is looked up
// NONE-DAG: error: {{.*}}module 'block' has no weight of its own that is looked up

// REMARK: remark: --place param:head.weight=tp:S(0): 'head.weight' is tied to 'embed.weight': tp:S(0) replaces tp:R of '*'

func.func @forward(%ids: tensor<3x7xi64> {dist.kind = "input", dist.name = "ids"},
                   %table: tensor<1003x16xf32> {dist.kind = "parameter", dist.name = ["embed.weight", "head.weight"]},
                   %apart: tensor<16x1003xf32> {dist.kind = "parameter", dist.name = "apart.weight"},
                   %w: tensor<16x16xf32> {dist.kind = "parameter", dist.name = "block.weight"})
    -> (tensor<3x7x1003xf32> {dist.name = "logits"}, tensor<3x7x16xf32> {dist.name = "more"}) {
  %0 = aten.embedding %table at %ids : (tensor<1003x16xf32>, tensor<3x7xi64>) -> tensor<3x7x16xf32> loc(fused<"embed">["e"("m.py":3:0)])
  %1 = aten.linear %0, %w : (tensor<3x7x16xf32>, tensor<16x16xf32>) -> tensor<3x7x16xf32> loc(fused<"block">["b"("m.py":4:0)])
  %2 = aten.linear %1, %table : (tensor<3x7x16xf32>, tensor<1003x16xf32>) -> tensor<3x7x1003xf32> loc(fused<"head">["h"("m.py":5:0)])
  %3 = aten.permute %apart [1, 0] : (tensor<16x1003xf32>) -> tensor<1003x16xf32>
  %4 = aten.embedding %3 at %ids : (tensor<1003x16xf32>, tensor<3x7xi64>) -> tensor<3x7x16xf32>
  return %2, %4 : tensor<3x7x1003xf32>, tensor<3x7x16xf32>
}
