// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the manifest will say, noted while it is known.
// RUN: shard-opt --exec-describe-program %s | FileCheck %s
// It survives printing, and is read by whoever checks memory.
// RUN: shard-opt --exec-describe-program %s | shard-opt --exec-form-kernels --exec-assign-buffers --exec-plan-arena --exec-account-memory -o %t.mlir
// RUN: shard-opt %t.mlir --exec-check-memory=limit=1KiB -o /dev/null
// RUN: shard-opt %t.mlir --exec-check-memory -o /dev/null
// RUN: not shard-opt %t.mlir --exec-check-memory=limit=60B 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not shard-opt %t.mlir --exec-check-memory=limit=some 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not shard-opt %s --exec-check-memory=limit=60B 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not shard-opt %t.mlir --exec-describe-program 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: sed 's/world_size = 2 : i64/world = 2 : i64/' %t.mlir | not shard-opt --exec-check-memory=limit=60B 2>&1 | FileCheck %s --check-prefix=OTHER

// CHECK: module attributes
// CHECK-SAME: exec.program = {constraints = [],
// CHECK-SAME: entries = [{inputs = [{kind = "user", layout = "[R]", names = ["x"], shape = [4], type = 1 : i32}], name = "forward",
// CHECK-SAME: outputs = [{kind = "user", layout = "[R]", names = ["y"], shape = [4], type = 1 : i32}], variant_of_rank = array<i32: 0, 0>, variants = ["forward"]}]
// CHECK-SAME: mesh = {axes = [{name = "tp", size = 2 : i64}], name = "mesh"}
// CHECK-SAME: parameters = [{constant = false, kind = "user", layout = "[S(0)]", mutable = false, names = ["w", "tied"], shape = [8], type = 1 : i32}, {constant = true, {{.*}}names = ["c"]
// CHECK-SAME: sequences = "", symbols = [], world_size = 2 : i64}
// CHECK: func.func @forward(%arg0: {{.*}}dist.name = "x"}, %arg1: {{.*}}exec.index = 0 : i64}, %arg2: {{.*}}exec.index = 1 : i64}

// By hand: four floats each of w, c, x and y; one kernel makes y of them.
// LIMIT: error: 'forward' needs 64 bytes on rank 0 and 1 more, the limit is 60 bytes
// LIMIT: note: slices of 2 parameters: 32 bytes; the largest are
// LIMIT: note: inputs and outputs: 32 bytes
// NUMBER: error: limit: 'some' is not a number of bytes, e.g. 2GiB
// ABSENT: error: the module has no 'exec.program': run exec-describe-program before buffers are assigned
// LATE: error: {{.*}}'input_0' is 'memref<4xf32>', but a program is described before its tensors get memory
// OTHER: error: the module has an 'exec.program' that is not what exec-describe-program writes
#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S = #dist.layout<#mesh, [S(0)]>
module attributes {dist.mesh = #mesh} {
  func.func @forward(%x: tensor<4xf32> {dist.kind = "input", dist.name = "x", dist.global_type = tensor<4xf32>, dist.layout = #R},
                     %w: tensor<4xf32> {dist.kind = "parameter", dist.name = ["w", "tied"], dist.global_type = tensor<8xf32>, dist.layout = #S},
                     %c: tensor<4xf32> {dist.kind = "constant", dist.name = "c", dist.global_type = tensor<4xf32>, dist.layout = #R})
      -> (tensor<4xf32> {dist.name = "y", dist.global_type = tensor<4xf32>, dist.layout = #R}) {
    %0 = aten.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = aten.add %0, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = aten.exp %1 : (tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
