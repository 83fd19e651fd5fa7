// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A weight that an op makes something else of before it is used: the message names the op, and its module where the
// importer knows no line of it.
// RUN: not shard-opt %s "--dist-apply-plan=mesh=tp=4 place=module:scaled=colwise place=module:shuffled=rowwise" 2>&1 | FileCheck %s

// CHECK-DAG: error: {{.*}}nothing says which dim of 'scaled.weight' can be sharded by columns: between the module 'scaled' and the use of its weight is 'aten.mul' in scaled (m.py:4); place the weight by its dims, e.g. --place 'param:scaled.weight=tp:S(0)'
// CHECK-DAG: error: {{.*}}nothing says which dim of 'shuffled.weight' can be sharded by rows: between the module 'shuffled' and the use of its weight is 'aten.view' in shuffled; place

func.func @forward(%x: tensor<3x16xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<16x16xf32> {dist.kind = "parameter", dist.name = "scaled.weight"},
                   %g: tensor<16x1xf32> {dist.kind = "parameter", dist.name = "scaled.scale"},
                   %v: tensor<8x32xf32> {dist.kind = "parameter", dist.name = "shuffled.weight"})
    -> (tensor<3x16xf32> {dist.name = "y"}, tensor<3x16xf32> {dist.name = "z"}) {
  %0 = aten.mul %w, %g : (tensor<16x16xf32>, tensor<16x1xf32>) -> tensor<16x16xf32> loc(fused<"scaled">["m"("m.py":4:0)])
  %1 = aten.linear %x, %0 : (tensor<3x16xf32>, tensor<16x16xf32>) -> tensor<3x16xf32> loc(fused<"scaled">["l"("m.py":5:0)])
  %2 = aten.view %v [16, 16] : (tensor<8x32xf32>) -> tensor<16x16xf32> loc(fused<"shuffled">["v"("model.pt2":0:0)])
  %3 = aten.linear %x, %2 : (tensor<3x16xf32>, tensor<16x16xf32>) -> tensor<3x16xf32> loc(fused<"shuffled">["k"("m.py":7:0)])
  return %1, %3 : tensor<3x16xf32>, tensor<3x16xf32>
}
