// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-schedule-collectives --dist-predict-timeline %s | FileCheck %s

// A function may return numbers beside its tensors: they take no memory.
// CHECK-LABEL: func.func @beside(
// CHECK-SAME: dist.timeline = {{.*}}peak_bytes = 32 : i64
// CHECK: %[[N:.*]] = arith.constant 1 : index
// CHECK: return %{{.*}}, %[[N]] : tensor<4xf32>, index
func.func @beside(%x: tensor<4xf32>) -> (tensor<4xf32>, index) {
  %n = arith.constant 1 : index
  %y = aten.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y, %n : tensor<4xf32>, index
}

// CHECK-LABEL: func.func @alone(
// CHECK: return %{{.*}} : index
func.func @alone(%n: index) -> index {
  %one = arith.constant 1 : index
  %m = arith.addi %n, %one : index
  return %m : index
}
