// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-to-inference="into=eval" --mlir-print-local-scope | FileCheck %s
// RUN: shard-opt %s --aten-to-inference --mlir-pass-statistics 2>&1 | FileCheck %s --check-prefix=SELF
// RUN: not shard-opt %s --aten-to-inference="function=absent" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not shard-opt %s --aten-to-inference="into=broken" 2>&1 | FileCheck %s --check-prefix=TAKEN
// RUN: not shard-opt %s --aten-to-inference="function=broken" 2>&1 | FileCheck %s --check-prefix=BROKEN --implicit-check-not=error:

// The function in training mode stays; the other one has its arguments, and nothing that is written back. The second use of a norm reads what
// the first one did.
// CHECK-LABEL: func.func @forward
// CHECK: dist.kind = "buffer_mutation"
// CHECK-LABEL: func.func @eval
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8x4xf32> {dist.kind = "input", dist.name = "x"}
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<8xf32> {dist.kind = "buffer", dist.name = "mean"}
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<8xf32> {dist.kind = "buffer", dist.name = "variance"}
// CHECK-SAME: -> (tensor<2x8x4xf32> {dist.kind = "output", dist.name = "y"})
// CHECK-NOT: aten.var
// CHECK: %[[A:.*]] = aten.scaled_dot_product_attention %[[X]], %[[X]], %[[X]] :
// CHECK-NEXT: %[[N:.*]] = aten.batch_norm %[[A]] mean(%[[M]]) variance(%[[V]]) eps 1.000000e-05 :
// CHECK-NEXT: %[[Y:.*]] = aten.batch_norm %[[N]] mean(%[[M]]) variance(%[[V]]) eps 1.000000e-05 :
// CHECK-NEXT: return %[[Y]]

// SELF: (S) 1 dropouts
// SELF: (S) 2 mutations
// SELF: (S) 2 norms
// ABSENT: error: there is no function 'absent' of one block to bring into inference form
// TAKEN: error: there is a function 'broken' already; name another with 'into'
// BROKEN: error: 'aten.batch_norm' op in norm (model.py:7) has no op 'old_variance' of its running statistics any more

func.func @forward(%x: tensor<2x8x4xf32> {dist.kind = "input", dist.name = "x"},
                   %mean: tensor<8xf32> {dist.kind = "buffer", dist.name = "mean"},
                   %variance: tensor<8xf32> {dist.kind = "buffer", dist.name = "variance"})
    -> (tensor<8xf32> {dist.kind = "buffer_mutation", dist.name = "mean"},
        tensor<8xf32> {dist.kind = "buffer_mutation", dist.name = "variance"},
        tensor<2x8x4xf32> {dist.kind = "output", dist.name = "y"}) {
  %a = aten.scaled_dot_product_attention %x, %x, %x {dropout_p = 0.5 : f64} : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %m = aten.mean %a dim [0, 2] : (tensor<2x8x4xf32>) -> tensor<8xf32>
  %v = aten.var %a dim [0, 2] {correction = 0.000000e+00 : f64} : (tensor<2x8x4xf32>) -> tensor<8xf32>
  %m0 = aten.alias %mean {aten.training_norm = distinct[0]<>, aten.training_part = "old_mean", detached} : (tensor<8xf32>) -> tensor<8xf32>
  %m1 = aten.add %m0, %m : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %m2 = aten.alias %m1 {aten.training_norm = distinct[0]<>, aten.training_part = "new_mean", detached} : (tensor<8xf32>) -> tensor<8xf32>
  %v0 = aten.alias %variance {aten.training_norm = distinct[0]<>, aten.training_part = "old_variance", detached} : (tensor<8xf32>) -> tensor<8xf32>
  %v1 = aten.add %v0, %v : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %v2 = aten.alias %v1 {aten.training_norm = distinct[0]<>, aten.training_part = "new_variance", detached} : (tensor<8xf32>) -> tensor<8xf32>
  %y = aten.batch_norm %a mean(%m) variance(%v) eps 1.000000e-05 {aten.training_norm = distinct[0]<>} : (tensor<2x8x4xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8x4xf32>
  %n = aten.mean %y dim [0, 2] : (tensor<2x8x4xf32>) -> tensor<8xf32>
  %w = aten.var %y dim [0, 2] {correction = 0.000000e+00 : f64} : (tensor<2x8x4xf32>) -> tensor<8xf32>
  %n0 = aten.alias %m2 {aten.training_norm = distinct[1]<>, aten.training_part = "old_mean", detached} : (tensor<8xf32>) -> tensor<8xf32>
  %n1 = aten.add %n0, %n : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %n2 = aten.alias %n1 {aten.training_norm = distinct[1]<>, aten.training_part = "new_mean", detached} : (tensor<8xf32>) -> tensor<8xf32>
  %w0 = aten.alias %v2 {aten.training_norm = distinct[1]<>, aten.training_part = "old_variance", detached} : (tensor<8xf32>) -> tensor<8xf32>
  %w1 = aten.add %w0, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %w2 = aten.alias %w1 {aten.training_norm = distinct[1]<>, aten.training_part = "new_variance", detached} : (tensor<8xf32>) -> tensor<8xf32>
  %z = aten.batch_norm %y mean(%n) variance(%w) eps 1.000000e-05 {aten.training_norm = distinct[1]<>} : (tensor<2x8x4xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8x4xf32>
  return %n2, %w2, %z : tensor<8xf32>, tensor<8xf32>, tensor<2x8x4xf32>
}

func.func @broken(%x: tensor<2x8x4xf32>, %mean: tensor<8xf32>, %variance: tensor<8xf32>) -> tensor<2x8x4xf32> {
  %m = aten.mean %x dim [0, 2] : (tensor<2x8x4xf32>) -> tensor<8xf32>
  %v = aten.var %x dim [0, 2] {correction = 0.000000e+00 : f64} : (tensor<2x8x4xf32>) -> tensor<8xf32>
  %m0 = aten.alias %mean {aten.training_norm = distinct[2]<>, aten.training_part = "old_mean", detached} : (tensor<8xf32>) -> tensor<8xf32>
  %m2 = aten.alias %m {aten.training_norm = distinct[2]<>, aten.training_part = "new_mean", detached} : (tensor<8xf32>) -> tensor<8xf32>
  %v2 = aten.alias %v {aten.training_norm = distinct[2]<>, aten.training_part = "new_variance", detached} : (tensor<8xf32>) -> tensor<8xf32>
  %y = aten.batch_norm %x mean(%m) variance(%v) eps 1.000000e-05 {aten.training_norm = distinct[2]<>} : (tensor<2x8x4xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8x4xf32> loc(fused<"norm">["norm"("model.py":7:0)])
  return %y : tensor<2x8x4xf32>
}
