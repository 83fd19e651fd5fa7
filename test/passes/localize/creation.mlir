// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#blocks = #dist.layout<#mesh, [S(0, blocks = 2)]>

// Positions 0 to 9 and 10 to 19 of 3, 5, 7, ...
// CHECK-LABEL: func.func @arange
// CHECK: %[[SHARD:.*]] = dist.extent #dist.extents<table [0, 10] over #mesh>
// CHECK: %[[OFFSET:.*]] = arith.muli %[[SHARD]], %c2
// CHECK: %[[START:.*]] = arith.addi %[[OFFSET]], %c3
// CHECK: %[[END:.*]] = arith.addi %[[OFFSET]], %c23
// CHECK: aten.arange [%[[START]] : %[[END]] : 2] i64 : tensor<10xi64>
func.func @arange() -> tensor<20xi64, #S0> {
  %x = aten.arange [3 : 43 : 2] i64 : tensor<20xi64, #S0>
  return %x : tensor<20xi64, #S0>
}

// In blocks: a rank takes its share of each from the whole.
// CHECK-LABEL: func.func @arange_in_blocks
// CHECK: aten.arange [0 : 8 : 1] i64 : tensor<8xi64>
// CHECK: aten.view %{{.*}} [2, 4] : (tensor<8xi64>) -> tensor<2x4xi64>
// CHECK: aten.slice %{{.*}} dim 1 [%{{.*}} : %{{.*}} : 1] : (tensor<2x4xi64>) -> tensor<2x2xi64>
// CHECK: aten.view %{{.*}} [4] : (tensor<2x2xi64>) -> tensor<4xi64>
func.func @arange_in_blocks() -> tensor<8xi64, #blocks> {
  %x = aten.arange [0 : 8 : 1] i64 : tensor<8xi64, #blocks>
  return %x : tensor<8xi64, #blocks>
}

// CHECK-LABEL: func.func @splat
// CHECK: aten.constant dense<1.500000e+00> : tensor<2x3xf32>
func.func @splat() -> tensor<4x3xf32, #S0> {
  %x = aten.constant dense<1.5> : tensor<4x3xf32> -> tensor<4x3xf32, #S0>
  return %x : tensor<4x3xf32, #S0>
}

// CHECK-LABEL: func.func @uneven_splat
// CHECK-DAG: %[[ONE:.*]] = aten.constant dense<1.500000e+00> : tensor<f32>
// CHECK-DAG: %[[N:.*]] = dist.extent #dist.extents<5 over #mesh ["tp"]>
// CHECK: aten.expand %[[ONE]] [%[[N]], 3] : (tensor<f32>) -> tensor<?x3xf32>
func.func @uneven_splat() -> tensor<5x3xf32, #S0> {
  %x = aten.constant dense<1.5> : tensor<5x3xf32> -> tensor<5x3xf32, #S0>
  return %x : tensor<5x3xf32, #S0>
}

// CHECK-LABEL: func.func @table
// CHECK: %[[ALL:.*]] = aten.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
// CHECK: aten.slice %[[ALL]] dim 0 [%{{.*}} : %{{.*}} : 1] : (tensor<4xi64>) -> tensor<2xi64>
func.func @table() -> tensor<4xi64, #S0> {
  %x = aten.constant dense<[1, 2, 3, 4]> : tensor<4xi64> -> tensor<4xi64, #S0>
  return %x : tensor<4xi64, #S0>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#P = #dist.layout<#mesh, [P(sum)]>

func.func @refused() -> tensor<4xi64, #P> {
  // expected-error @+1 {{a constant is not a partial value; place it as R and redistribute}}
  %x = aten.constant dense<[1, 2, 3, 4]> : tensor<4xi64> -> tensor<4xi64, #P>
  return %x : tensor<4xi64, #P>
}
