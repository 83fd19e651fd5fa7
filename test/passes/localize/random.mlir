// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

// An element's number is that of its index in the whole tensor: rank (i, j) holds rows from 3 i, columns from 3 j.
#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#R = #dist.layout<#mesh, [R, R]>
#S = #dist.layout<#mesh, [S(0), S(1)]>
// CHECK-LABEL: func.func @uniform
// CHECK-SAME: %[[SEED:.*]]: tensor<i64> {{{.*}}}, %[[OFFSET:.*]]: tensor<i64> {
// CHECK-DAG: %[[SCALE:.*]] = aten.constant dense<5.96046448E-8> : tensor<f32>
// CHECK-DAG: %[[LOW:.*]] = aten.constant dense<16777215> : tensor<i64>
// CHECK-DAG: %[[WIDTH:.*]] = aten.constant dense<6> : tensor<i64>
// CHECK: %[[COLUMN:.*]] = dist.extent #dist.extents<table [0, 3, 0, 3] over #mesh>
// CHECK: %[[COLUMNS:.*]] = aten.view %{{.*}} [1, 3]
// CHECK: %[[ROW:.*]] = dist.extent #dist.extents<table [0, 0, 3, 3] over #mesh>
// CHECK: %[[ROWS:.*]] = aten.view %{{.*}} : (tensor<?xi64>) -> tensor<?x1xi64>
// CHECK: %[[BEFORE:.*]] = aten.mul %[[ROWS]], %[[WIDTH]]
// CHECK: %[[ELEMENT:.*]] = aten.add %[[BEFORE]], %[[COLUMNS]]
// CHECK: %[[WORD:.*]] = aten.philox %[[ELEMENT]], %[[SEED]], %[[OFFSET]] {word = 0 : i64}
// CHECK: %[[BITS:.*]] = aten.bitwise_and %[[WORD]], %[[LOW]]
// CHECK: %[[NARROW:.*]] = aten.to_copy %[[BITS]] to i32
// CHECK: %[[FLOAT:.*]] = aten.to_copy %[[NARROW]] to f32
// CHECK: %[[NUMBER:.*]] = aten.mul %[[FLOAT]], %[[SCALE]]
// CHECK: return %[[NUMBER]] : tensor<?x3xf32>
func.func @uniform(%seed: tensor<i64, #R>, %offset: tensor<i64, #R>) -> tensor<5x6xf32, #S> {
  %r = aten.random "uniform" [5, 6] f32 seed(%seed) offset(%offset) : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<5x6xf32, #S>
  return %r : tensor<5x6xf32, #S>
}

// Of 0 dims.
// CHECK-LABEL: func.func @bits
// CHECK-DAG: %[[PLACE:.*]] = aten.constant dense<0> : tensor<i64>
// CHECK-DAG: %[[HIGH:.*]] = aten.constant dense<4294967296> : tensor<i64>
// CHECK: aten.philox %[[PLACE]], %{{.*}} {word = 0 : i64}
// CHECK: aten.mul %{{.*}}, %[[HIGH]]
// CHECK: aten.philox %[[PLACE]], %{{.*}} {word = 1 : i64}
func.func @bits(%seed: tensor<i64, #R>, %offset: tensor<i64, #R>) -> tensor<i64, #R> {
  %r = aten.random "bits" [] i64 seed(%seed) offset(%offset) : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<i64, #R>
  return %r : tensor<i64, #R>
}

// -----

// Of a symbolic size too.
#mesh = #dist.mesh<["dp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
// CHECK-LABEL: func.func @symbolic
// CHECK: aten.philox %{{.*}}, %{{.*}}, %{{.*}} {word = 0 : i64} : (tensor<?x4xi64>, tensor<i64>, tensor<i64>) -> tensor<?x4xi64>
// CHECK: aten.log
// CHECK: aten.sqrt
// CHECK: aten.abs
func.func @symbolic(%x: tensor<?x4xf32, #S0> {dist.sizes = [#dist.size<n>, #dist.size<4>]}, %seed: tensor<i64, #R>,
                    %offset: tensor<i64, #R>) -> tensor<?x4xf32, #S0>
    attributes {dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %n = aten.sym_size %x dim 0 : (tensor<?x4xf32, #S0>) -> index
  %r = aten.random "normal" [%n, 4] f32 seed(%seed) offset(%offset) : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<?x4xf32, #S0>
  return %r : tensor<?x4xf32, #S0>
}

// -----

// As PyTorch's tracker: shards of rows begin behind each other in the stream, replicas at the same place, and elements count in the shard.
#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#R = #dist.layout<#mesh, [R, R]>
#S0 = #dist.layout<#mesh, [S(0), R]>
module attributes {dist.mesh = #mesh, dist.random = "dtensor"} {
// CHECK-LABEL: func.func @dtensor
// CHECK-SAME: %[[SEED:.*]]: tensor<i64> {{{.*}}}, %[[OFFSET:.*]]: tensor<i64> {
// CHECK: %[[SHARD:.*]] = dist.extent #dist.extents<table [0, 0, 20, 20] over #mesh>
// CHECK: aten.arange [%[[SHARD]] :
// CHECK: %[[START:.*]] = aten.add %[[OFFSET]], %{{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK: aten.arange [0 : 6 : 1]
// CHECK: aten.philox %{{.*}}, %[[SEED]], %[[START]] {word = 0 : i64}
func.func @dtensor(%seed: tensor<i64, #R>, %offset: tensor<i64, #R>) -> tensor<5x6xf32, #S0> {
  %r = aten.random "uniform" [5, 6] f32 seed(%seed) offset(%offset) : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<5x6xf32, #S0>
  return %r : tensor<5x6xf32, #S0>
}
}

// -----

// Replicas differ: the rank's position is in the upper half of the key.
#mesh = #dist.mesh<["dp" = 2]>
#R = #dist.layout<#mesh, [R]>
module attributes {dist.mesh = #mesh, dist.random = "per-rank"} {
// CHECK-LABEL: func.func @per_rank
// CHECK-SAME: %[[SEED:.*]]: tensor<i64> {{{.*}}}, %[[OFFSET:.*]]: tensor<i64> {
// CHECK: dist.extent #dist.extents<table [0, 1] over #mesh>
// CHECK: %[[OWN:.*]] = aten.mul %{{.*}}, %{{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK: %[[KEY:.*]] = aten.add %[[SEED]], %[[OWN]]
// CHECK: aten.philox %{{.*}}, %[[KEY]], %[[OFFSET]] {word = 0 : i64}
func.func @per_rank(%seed: tensor<i64, #R>, %offset: tensor<i64, #R>) -> tensor<6xf32, #R> {
  %r = aten.random "uniform" [6] f32 seed(%seed) offset(%offset) : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<6xf32, #R>
  return %r : tensor<6xf32, #R>
}
}
