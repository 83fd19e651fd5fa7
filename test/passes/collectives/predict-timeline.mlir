// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-predict-timeline=topology=sim-v1 %s | FileCheck %s
// RUN: shard-opt --dist-predict-timeline=topology=sim-v1 --pass-statistics %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
// The attribute is read back as it was printed, and dist-specialize keeps it.
// RUN: shard-opt --dist-predict-timeline=topology=sim-v1 %s | shard-opt --dist-specialize --dist-verify-stage=specialized | FileCheck %s
// RUN: not shard-opt --dist-predict-timeline="topology=nowhere sizes=n=3" %s 2>&1 | FileCheck %s --check-prefix=ERRORS
// RUN: shard-opt --dist-predict-timeline=topology=sim-v1 %S/Inputs/no-price.mlir 2>&1 | FileCheck %s --check-prefix=WARNING

// ERRORS: error: topology: no target named 'nowhere'
// ERRORS: error: no symbol is named 'n': the program has no dynamic sizes
// STATS: (S) 1 predicted - Functions with a timeline
// WARNING: warning: {{.*}}nothing is predicted: {{.*}}has no price in the cost model 'sim-v1'
// WARNING-NOT: dist.timeline

// By hand, of sim-v1: a gather over four ranks takes 17 us and 3 MiB at 434 kB a us, for which the rank waits; it starts
// after 1 us of its launch. Memory is 1 MiB of the shard and 4 MiB of the whole.
// CHECK: func.func @forward({{.*}}dist.timeline = {cost_model = "sim-v1", durations_us = array<f64: 24.248{{[0-9]+}}, 24.248{{[0-9]+}}>
// CHECK-SAME: exposed_us = 24.248{{[0-9]+}} : f64, names = ["gather", "gather"], peak_bytes = 5242880 : i64
// CHECK-SAME: places = ["decoder (model.py:12)", "decoder (model.py:12)"], starts_us = array<f64: 1.000000e+00, 1.000000e+00>
// CHECK-SAME: step_us = 25.248{{[0-9]+}} : f64, streams = array<i32: {{1, 2|2, 1}}>}
#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>
module attributes {dist.mesh = #mesh} {
  func.func @forward(%w: tensor<262144xf32>) -> tensor<1048576xf32> {
    %g = dist.all_gather over #dp %w dim 0 : (tensor<262144xf32>) -> tensor<1048576xf32> loc(fused<"decoder">["gather"("model.py":12:0)])
    return %g : tensor<1048576xf32>
  }
}
