// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cpu-approximate-math | FileCheck %s
// RUN: shard-opt %s --cpu-approximate-math --split-input-file --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
// STATS: cpu-approximate-math
// STATS-DAG: {{[1-9][0-9]*}} reordered

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Sums may be taken in any order, with the products in them; the division stays a division.
// CHECK-LABEL: func.func @sum
// CHECK:         arith.divf %{{[^ ]*}}, %{{[^ ]*}} : f32
// CHECK:         arith.mulf %{{.*}} fastmath<contract> : f32
// CHECK:         arith.addf %{{.*}} fastmath<reassoc,nsz,contract> : f32
func.func @sum(%x: memref<4x8xf32>, %s: memref<4xf32>) attributes {exec.kernel} {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x8xf32>) outs(%s : memref<4xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %c = arith.constant 3.0 : f32
    %d = arith.divf %a, %c : f32
    %p = arith.mulf %d, %d : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  }
  return
}

// Elementwise arithmetic keeps its order: (x + c) - c is what a model means by it. exp is a polynomial.
// CHECK-LABEL: func.func @elementwise
// CHECK:         arith.addf %{{[^ ]*}}, %{{[^ ]*}} : f32
// CHECK:         arith.subf %{{[^ ]*}}, %{{[^ ]*}} : f32
// CHECK-NOT:     math.exp
// CHECK:         math.fma
func.func @elementwise(%x: memref<4x8xf32>, %y: memref<4x8xf32>) attributes {exec.kernel} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.constant 3.0 : f32
    %b = arith.addf %a, %c : f32
    %d = arith.subf %b, %c : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  }
  return
}

// CHECK-LABEL: func.func @not_a_kernel
// CHECK:         math.exp
func.func @not_a_kernel(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}
