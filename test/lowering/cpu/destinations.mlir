// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --cpu-tile-kernels --split-input-file | FileCheck %s

// A kernel writes each of its destinations, whatever its results became inside.

// Multiplication by one folds: both results are one value, which is computed once and copied.
// CHECK-LABEL: func.func private @one_value(
// CHECK-SAME: %[[X:.*]]: memref<5x7xf32>, %[[Y:.*]]: memref<5x7xf32>, %[[Z:.*]]: memref<5x7xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]] : {{.*}}) outs(%[[Y]] :
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} ins(%[[Y]] : {{.*}}) outs(%[[Z]] :
// CHECK-NOT: math.exp
// CHECK: return
func.func private @one_value(%x: memref<5x7xf32>, %y: memref<5x7xf32>, %z: memref<5x7xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<5x7xf32> to tensor<5x7xf32>
  %1 = aten.exp %0 : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %one = aten.constant dense<1.0> : tensor<f32>
  %2 = aten.mul %1, %one : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<5x7xf32>, memref<5x7xf32>) -> ()
  bufferization.materialize_in_destination %2 in restrict writable %z : (tensor<5x7xf32>, memref<5x7xf32>) -> ()
  return
}

// -----
// Three names of one sum, a tile at a time, with sizes that are known when the kernel runs.
// CHECK-LABEL: func.func private @symbolic(
// CHECK-SAME: %[[X:.*]]: memref<?x70xf32>, %[[A:.*]]: memref<?xf32>, %[[B:.*]]: memref<?xf32>, %[[C:.*]]: memref<?xf32>)
// CHECK: exec.parallel
// CHECK-DAG: %[[AT:.*]] = memref.subview %[[A]]
// CHECK-DAG: linalg.fill {{.*}} outs(%[[AT]] :
// CHECK: linalg.generic {{.*}} outs(%[[AT]] :
// CHECK: %[[BT:.*]] = memref.subview %[[B]]
// CHECK: linalg.generic {{.*}} ins(%[[AT]] : {{.*}}) outs(%[[BT]] :
// CHECK: %[[CT:.*]] = memref.subview %[[C]]
// CHECK: linalg.generic {{.*}} ins(%[[AT]] : {{.*}}) outs(%[[CT]] :
func.func private @symbolic(%x: memref<?x70xf32>, %a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>)
    attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?x70xf32> to tensor<?x70xf32>
  %1 = aten.sum %0 dim [1] : (tensor<?x70xf32>) -> tensor<?xf32>
  bufferization.materialize_in_destination %1 in restrict writable %a : (tensor<?xf32>, memref<?xf32>) -> ()
  bufferization.materialize_in_destination %1 in restrict writable %b : (tensor<?xf32>, memref<?xf32>) -> ()
  bufferization.materialize_in_destination %1 in restrict writable %c : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

// -----
// An argument that is returned, twice.
// CHECK-LABEL: func.func private @argument(
// CHECK-SAME: %[[X:.*]]: memref<3xi64>, %[[Y:.*]]: memref<3xi64>, %[[Z:.*]]: memref<3xi64>)
// CHECK: linalg.generic {{.*}} ins(%[[X]] : {{.*}}) outs(%[[Y]] :
// CHECK: linalg.generic {{.*}} ins(%[[X]] : {{.*}}) outs(%[[Z]] :
func.func private @argument(%x: memref<3xi64>, %y: memref<3xi64>, %z: memref<3xi64>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<3xi64> to tensor<3xi64>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<3xi64>, memref<3xi64>) -> ()
  bufferization.materialize_in_destination %0 in restrict writable %z : (tensor<3xi64>, memref<3xi64>) -> ()
  return
}

// -----
// What is updated in place is nobody else's: the sum begins with a copy of what is a result, too.
// CHECK-LABEL: func.func private @update(
// CHECK-SAME: %[[X:.*]]: memref<4xf32>, %[[Y:.*]]: memref<4xf32>, %[[Z:.*]]: memref<4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]] : {{.*}}) outs(%[[Y]] :
// CHECK: linalg.generic {{.*}} ins(%[[Y]] : {{.*}}) outs(%[[Z]] :
// CHECK: linalg.generic {{.*}} ins(%[[X]] : {{.*}}) outs(%[[Z]] :
// CHECK-NOT: linalg.generic
#id = affine_map<(d0) -> (d0)>
func.func private @update(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  %1 = aten.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<4xf32>) outs(%1 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<4xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  bufferization.materialize_in_destination %2 in restrict writable %z : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}
