// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --cuda-lower-kernels --cuda-lower-to-llvm --mlir-print-ir-after=cuda-narrow-indices -o /dev/null 2>&1 | FileCheck %s
//
// Kernels that look up rows of a table compute their indices in 32 bits as others do: rows are read several elements at a time, at
// positions that are data.

// All sizes are known: there is one function.
// CHECK: func.func private @known(
// CHECK: gpu.launch_func @kernels::@known blocks
// CHECK-NOT: gpu.launch_func
// CHECK: return
func.func private @known(%x: memref<1000x64xf32>, %i: memref<3x5xi64>, %y: memref<3x5x64xf32>) attributes {exec.kernel, exec.writes = array<i64: 2>} {
  %0 = bufferization.to_tensor %x restrict : memref<1000x64xf32> to tensor<1000x64xf32>
  %1 = bufferization.to_tensor %i restrict : memref<3x5xi64> to tensor<3x5xi64>
  %r = aten.embedding %0 at %1 : (tensor<1000x64xf32>, tensor<3x5xi64>) -> tensor<3x5x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<3x5x64xf32>, memref<3x5x64xf32>) -> ()
  return
}

// Sizes of the run: the host chooses. The row of an element is its number divided by 64, and no larger than that.
// CHECK: func.func private @unknown(
// CHECK: arith.cmpi ule
// CHECK: arith.divui %{{.*}}, %c64
// CHECK: scf.if
// CHECK: gpu.launch_func @kernels::@unknown_narrow blocks
// CHECK: } else {
// CHECK: gpu.launch_func @kernels::@unknown blocks
// CHECK: return
func.func private @unknown(%x: memref<?x64xf32>, %i: memref<?xi64>, %y: memref<?x64xf32>) attributes {exec.kernel, exec.writes = array<i64: 2>} {
  %0 = bufferization.to_tensor %x restrict : memref<?x64xf32> to tensor<?x64xf32>
  %1 = bufferization.to_tensor %i restrict : memref<?xi64> to tensor<?xi64>
  %r = aten.embedding %0 at %1 : (tensor<?x64xf32>, tensor<?xi64>) -> tensor<?x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x64xf32>, memref<?x64xf32>) -> ()
  return
}

// CHECK: gpu.func @known({{.*}}narrow_indices
// CHECK: vector.load {{.*}}vector<4xf32>
// CHECK: gpu.func @unknown(
// CHECK: gpu.func @unknown_narrow({{.*}}narrow_indices
