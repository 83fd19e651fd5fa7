// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-merge-kernels | FileCheck %s

// Two layers of the same sizes have one kernel, which is launched twice; the third is wider.
// CHECK-LABEL: func.func @layers(
// CHECK: exec.launch @[[K:[a-z_0-9]+]](%{{.*}}) name "relu+mul"
// CHECK: exec.gemm
// CHECK: exec.launch @[[K]](%{{.*}}) name "relu+mul"
// CHECK: exec.gemm
// CHECK: exec.launch @[[WIDE:[a-z_0-9]+]](%{{.*}}) name "relu+mul"
// CHECK-DAG: func.func private @[[K]](%{{.*}}: memref<4x16xf32>,
// CHECK-DAG: func.func private @[[WIDE]](%{{.*}}: memref<4x24xf32>,
func.func @layers(%x: tensor<4x16xf32>, %w: tensor<16x16xf32>, %v: tensor<24x16xf32>,
                  %s: tensor<16xf32>, %t: tensor<24xf32>) -> tensor<4x24xf32> {
  %0 = aten.relu %x : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %1 = aten.mul %0, %s : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %2 = aten.linear %1, %w : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %3 = aten.relu %2 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %4 = aten.mul %3, %s : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %5 = aten.linear %4, %v : (tensor<4x16xf32>, tensor<24x16xf32>) -> tensor<4x24xf32>
  %6 = aten.relu %5 : (tensor<4x24xf32>) -> tensor<4x24xf32>
  %7 = aten.mul %6, %t : (tensor<4x24xf32>, tensor<24xf32>) -> tensor<4x24xf32>
  return %7 : tensor<4x24xf32>
}
