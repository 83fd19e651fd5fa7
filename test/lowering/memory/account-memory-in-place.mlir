// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-update-in-place --exec-plan-arena --exec-verify-buffers --exec-account-memory | FileCheck %s
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-update-in-place --exec-plan-arena --exec-account-memory --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-plan-arena --exec-account-memory | FileCheck %s --check-prefix=APART

// By hand, in bytes: the weight and its momentum are 16 x 8 x 4 each, and so is the gradient that the caller gives. Updated in place they
// need no more, and nothing of the arena; otherwise the caller would have to give as much again.
// STATS: exec-account-memory
// STATS-DAG: (S) 512 caller-bytes
// STATS-DAG: (S) 1024 parameter-bytes

// CHECK: func.func @step
// CHECK-SAME: exec.arena_bytes = 0
// CHECK-SAME: exec.memory = {arena = 0 : i64, caller = 512 : i64,
// CHECK-SAME: parameters = array<i64: 512, 512>
// APART: exec.memory = {arena = 0 : i64, caller = 1536 : i64,
func.func @step(%w: tensor<16x8xf32> {dist.kind = "parameter", dist.name = "w"}, %m: tensor<16x8xf32> {dist.kind = "state", dist.name = "m", dist.initial = 0.0 : f64},
                %g: tensor<16x8xf32> {dist.kind = "input", dist.name = "g"})
    -> (tensor<16x8xf32> {dist.kind = "parameter_mutation", dist.name = "w"}, tensor<16x8xf32> {dist.kind = "state_mutation", dist.name = "m"}) {
  %0 = aten.add %m, %g : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %1 = aten.sub %w, %0 : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  return %1, %0 : tensor<16x8xf32>, tensor<16x8xf32>
}
