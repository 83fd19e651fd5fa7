// RUN: shard-opt %s --aten-to-linalg --canonicalize --split-input-file | FileCheck %s

// 16-bit floats are computed in f32, and rounded at the end of each op.
// CHECK-LABEL: func.func private @half(
// CHECK: ^bb0(%[[X:.*]]: bf16, %[[Y:.*]]: bf16, %{{.*}}: bf16):
// CHECK-DAG: %[[A:.*]] = arith.extf %[[X]] : bf16 to f32
// CHECK-DAG: %[[B:.*]] = arith.extf %[[Y]] : bf16 to f32
// CHECK: %[[S:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK: %[[R:.*]] = arith.truncf %[[S]] : f32 to bf16
// CHECK: linalg.yield %[[R]] : bf16
func.func private @half(%x: memref<4xbf16>, %y: memref<4xbf16>, %z: memref<4xbf16>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<4xbf16> to tensor<4xbf16>
  %1 = bufferization.to_tensor %y restrict : memref<4xbf16> to tensor<4xbf16>
  %2 = aten.add %0, %1 : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  bufferization.materialize_in_destination %2 in restrict writable %z : (tensor<4xbf16>, memref<4xbf16>) -> ()
  return
}

// -----
// A dim of size 1 is repeated by the map, not by a copy. `alpha` scales the second operand.
// CHECK: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: func.func private @broadcast(
// CHECK: %[[THREE:.*]] = arith.constant 3.000000e+00 : f32
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[COLUMN]], #{{.*}}], iterator_types = ["parallel", "parallel"]}
// CHECK: arith.mulf %{{.*}}, %[[THREE]] : f32
// CHECK: arith.addf
func.func private @broadcast(%x: memref<4x8xf32>, %y: memref<4x1xf32>, %z: memref<4x8xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<4x8xf32> to tensor<4x8xf32>
  %1 = bufferization.to_tensor %y restrict : memref<4x1xf32> to tensor<4x1xf32>
  %2 = aten.add %0, %1 {alpha = 3.0 : f64} : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  bufferization.materialize_in_destination %2 in restrict writable %z : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

// -----
// Comparisons give bool, which is i8 in memory.
// CHECK-LABEL: func.func private @compare(
// CHECK: %[[C:.*]] = arith.cmpf olt, %{{.*}}, %{{.*}} : f32
// CHECK: %[[I:.*]] = arith.extui %[[C]] : i1 to i8
// CHECK: linalg.yield %[[I]] : i8
func.func private @compare(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xi8>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  %1 = bufferization.to_tensor %y restrict : memref<4xf32> to tensor<4xf32>
  %2 = aten.lt %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = builtin.unrealized_conversion_cast %2 : tensor<4xi1> to tensor<4xi8>
  bufferization.materialize_in_destination %3 in restrict writable %z : (tensor<4xi8>, memref<4xi8>) -> ()
  return
}
