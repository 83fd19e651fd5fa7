// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s "--dist-apply-plan=mesh=dp=2,tp=2 other-mesh={{readers:io=2,devices=[4,5]}} place={{input:x=mesh:readers,io:S(0)},{output:y=mesh:readers},{param:w=tp:S(0)}}" | FileCheck %s --check-prefix=APPLIED
// A plan file says the same.
// RUN: printf 'mesh: {dp: 2, tp: 2}\nmeshes:\n  readers: {io: 2, devices: [4, 5]}\ninputs:\n  x: {mesh: readers, io: S(0)}\noutputs: {y: {mesh: readers}}\nparameters: {w: {tp: S(0)}}\n' > %t.yaml
// RUN: shard-opt %s --dist-apply-plan=plan=%t.yaml | FileCheck %s --check-prefix=APPLIED
// RUN: shard-opt %s --dist-apply-plan=plan=%t.yaml --dist-propagate --dist-place | FileCheck %s
// What is written between the two passes is enough to go on from.
// RUN: shard-opt %s --dist-apply-plan=plan=%t.yaml --dist-propagate | shard-opt --dist-place | FileCheck %s
// RUN: %if torch %{ shard-opt %s --dist-apply-plan=plan=%t.yaml -o %t.mlir %}
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %t.mlir -- --dist-propagate --dist-place | FileCheck %s --check-prefix=RAN %}

// An input or output on another mesh has its layout at once; what crosses is to be placed.
// APPLIED: module attributes {dist.mesh = #mesh, dist.meshes = {readers = #mesh1}}
// APPLIED: func.func @forward(%[[X:.*]]: tensor<8x6xf32, #S0io> {dist.kind = "input", dist.name = "x"}
// APPLIED-SAME: -> (tensor<8x4xf32, #R{{.*}}> {dist.name = "y"})
// APPLIED: %[[HERE:.*]] = dist.redistribute %[[X]] : tensor<8x6xf32, #S0io> to tensor<8x6xf32>
// APPLIED: %[[Y:.*]] = aten.linear %[[HERE]]
// APPLIED: %[[THERE:.*]] = dist.redistribute %[[Y]] : tensor<8x4xf32> to tensor<8x4xf32, #R{{.*}}>
// APPLIED: return %[[THERE]]

// The value comes in the layout that its use wants, and goes from the one that it has.
// CHECK: %[[HERE:.*]] = dist.redistribute %arg0 : tensor<8x6xf32, #S0io> to tensor<8x6xf32, #R{{.*}}>
// CHECK: %[[Y:.*]] = aten.linear %[[HERE]], %arg1 : (tensor<8x6xf32, #R{{.*}}>, tensor<4x6xf32, #S0tp>) -> tensor<8x4xf32, #S1tp>
// CHECK: dist.redistribute %[[Y]] : tensor<8x4xf32, #S1tp> to tensor<8x4xf32, #R{{.*}}>
// CHECK-NOT: dist.sharding

// RAN: forward: all_to_all 2, enter_mesh 2, leave_mesh 2
// RAN: 1 functions, 0 failures

func.func @forward(%x: tensor<8x6xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<4x6xf32> {dist.kind = "parameter", dist.name = "w"}) -> (tensor<8x4xf32> {dist.name = "y"}) {
  %y = aten.linear %x, %w : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
