// Rows of mixtures of experts, where tokens and experts are shared out over one axis.
// RUN: shard-opt %s --split-input-file --dist-dispatch-rows --canonicalize | FileCheck %s

#mesh = #dist.mesh<["ep" = 4]>
#S = #dist.layout<#mesh, [S(0)]>
module attributes {dist.mesh = #mesh} {
// Two rows of a token stay together. Biases are looked up where the rows are; a row that is not there reads zeros.
// CHECK-LABEL: func.func @chain
// CHECK: %[[OWNER:.*]] = aten.div %arg4, %{{.*}} {rounding_mode = "floor"}
// CHECK: %[[MOVED:.*]] = aten.dispatch_rows %{{.*}} at %[[OWNER]] batches 1 parts 4 granule 2 : (tensor<16xi64>, tensor<16xi64>) -> tensor<64xi64>
// CHECK: %[[INDEX:.*]] = aten.sub %[[MOVED]]
// CHECK: %[[ROWS:.*]] = aten.dispatch_rows %{{.*}} at %[[OWNER]] batches 1 parts 4 granule 2 : (tensor<16x8xf32>, tensor<16xi64>) -> tensor<64x8xf32>
// CHECK: %[[UP:.*]] = aten.indexed_mm %[[ROWS]], %arg1 at %[[INDEX]] {row_parts = array<i64: 1, 4>}
// CHECK: %[[AT:.*]] = aten.maximum %[[INDEX]]
// CHECK: %[[FOUND:.*]] = aten.index_select %arg3 dim 0 at %[[AT]]
// CHECK: %[[BIAS:.*]] = aten.where %{{.*}}, %[[FOUND]], %{{.*}} : (tensor<64x1xi1>, tensor<64x16xf32>, tensor<f32>)
// CHECK: %[[SUM:.*]] = aten.add %[[UP]], %[[BIAS]] : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
// CHECK: %[[HALF:.*]]:2 = aten.split_with_sizes %[[SUM]] [8, 8] dim 1
// CHECK: %[[GATE:.*]] = aten.mul %[[HALF]]#0, %[[HALF]]#1
// CHECK: %[[DOWN:.*]] = aten.indexed_mm %[[GATE]], %arg2 at %[[INDEX]] {row_parts = array<i64: 1, 4>}
// CHECK: %[[BACK:.*]] = aten.collect_rows %[[DOWN]] at %[[OWNER]] batches 1 parts 4 granule 2 : (tensor<64x8xf32>, tensor<16xi64>) -> tensor<16x8xf32>
// CHECK: aten.mul %[[BACK]], %arg5
func.func @chain(%x: tensor<8x8xf32> {dist.annotation = #S}, %up: tensor<8x8x16xf32> {dist.annotation = #S}, %down: tensor<8x8x8xf32> {dist.annotation = #S},
                 %bias: tensor<8x16xf32> {dist.annotation = #S}, %i: tensor<16xi64> {dist.annotation = #S}, %w: tensor<16x1xf32> {dist.annotation = #S}) -> tensor<16x8xf32> {
  %0 = aten.unsqueeze %x dim 1 : (tensor<8x8xf32>) -> tensor<8x1x8xf32>
  %1 = aten.expand %0 [8, 2, 8] : (tensor<8x1x8xf32>) -> tensor<8x2x8xf32>
  %2 = aten.view %1 [16, 8] : (tensor<8x2x8xf32>) -> tensor<16x8xf32>
  %3 = aten.indexed_mm %2, %up at %i : (tensor<16x8xf32>, tensor<8x8x16xf32>, tensor<16xi64>) -> tensor<16x16xf32>
  %4 = aten.index_select %bias dim 0 at %i : (tensor<8x16xf32>, tensor<16xi64>) -> tensor<16x16xf32>
  %5 = aten.add %3, %4 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %6:2 = aten.split_with_sizes %5 [8, 8] dim 1 : (tensor<16x16xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>)
  %7 = aten.mul %6#0, %6#1 : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %8 = aten.indexed_mm %7, %down at %i : (tensor<16x8xf32>, tensor<8x8x8xf32>, tensor<16xi64>) -> tensor<16x8xf32>
  %9 = aten.mul %8, %w : (tensor<16x8xf32>, tensor<16x1xf32>) -> tensor<16x8xf32>
  return %9 : tensor<16x8xf32>
}

// What is between the products does not work row by row: each is a region of its own.
// CHECK-LABEL: func.func @mixed
// CHECK: aten.dispatch_rows %arg0
// CHECK: aten.indexed_mm
// CHECK: aten.collect_rows
// CHECK: aten.cumsum
// CHECK-NOT: dispatch_rows
// CHECK: aten.indexed_mm
func.func @mixed(%x: tensor<8x8xf32> {dist.annotation = #S}, %w: tensor<4x8x8xf32> {dist.annotation = #S}, %v: tensor<4x8x8xf32>, %i: tensor<8xi64> {dist.annotation = #S},
                 %j: tensor<8xi64> {dist.annotation = #S}) -> tensor<8x8xf32> {
  %0 = aten.indexed_mm %x, %w at %i : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %1 = aten.cumsum %0 dim 0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = aten.indexed_mm %1, %v at %j : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// Four experts for each token, on four ranks, whose results are added up: to gather the tokens costs as much.
// CHECK-LABEL: func.func @many
// CHECK-NOT: dispatch_rows
func.func @many(%x: tensor<8x8xf32> {dist.annotation = #S}, %w: tensor<8x8x8xf32> {dist.annotation = #S}, %i: tensor<32xi64> {dist.annotation = #S}) -> (tensor<8x8xf32> {dist.annotation = #S}) {
  %0 = aten.unsqueeze %x dim 1 : (tensor<8x8xf32>) -> tensor<8x1x8xf32>
  %1 = aten.expand %0 [8, 4, 8] : (tensor<8x1x8xf32>) -> tensor<8x4x8xf32>
  %2 = aten.view %1 [32, 8] : (tensor<8x4x8xf32>) -> tensor<32x8xf32>
  %3 = aten.indexed_mm %2, %w at %i : (tensor<32x8xf32>, tensor<8x8x8xf32>, tensor<32xi64>) -> tensor<32x8xf32>
  %4 = aten.view %3 [8, 4, 8] : (tensor<32x8xf32>) -> tensor<8x4x8xf32>
  %5 = aten.sum %4 dim [1] : (tensor<8x4x8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}

// A weight that all rows share takes part only where there are rows: its gradient is a sum over them. One that is contracted ends what is dispatched.
// CHECK-LABEL: func.func @shared
// CHECK: %[[UP:.*]] = aten.indexed_mm
// CHECK: %[[SCALE:.*]] = aten.where %{{.*}}, %arg3, %{{.*}} : (tensor<32x1xi1>, tensor<8xf32>, tensor<f32>) -> tensor<32x8xf32>
// CHECK: aten.mul %[[UP]], %[[SCALE]]
// CHECK: aten.collect_rows
// CHECK-LABEL: func.func @contracted
// CHECK-NOT: dispatch_rows
func.func @shared(%x: tensor<8x8xf32> {dist.annotation = #S}, %w: tensor<4x8x8xf32> {dist.annotation = #S}, %v: tensor<4x8x8xf32> {dist.annotation = #S}, %s: tensor<8xf32>,
                  %i: tensor<8xi64> {dist.annotation = #S}) -> (tensor<8x8xf32> {dist.annotation = #S}) {
  %0 = aten.indexed_mm %x, %w at %i : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %1 = aten.mul %0, %s : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %2 = aten.indexed_mm %1, %v at %i : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
func.func @contracted(%x: tensor<8x8xf32> {dist.annotation = #S}, %w: tensor<4x8x8xf32> {dist.annotation = #S}, %v: tensor<4x8x8xf32> {dist.annotation = #S}, %s: tensor<8x8xf32>,
                      %i: tensor<8xi64> {dist.annotation = #S}) -> (tensor<8x8xf32> {dist.annotation = #S}) {
  %0 = aten.indexed_mm %x, %w at %i : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %1 = aten.linear %0, %s : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = aten.indexed_mm %1, %v at %i : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// Six experts are no equal shares of four ranks, and whole tokens are nothing to gather.
// CHECK-LABEL: func.func @others
// CHECK-NOT: dispatch_rows
func.func @others(%x: tensor<8x8xf32> {dist.annotation = #S}, %w: tensor<6x8x8xf32> {dist.annotation = #S}, %i: tensor<8xi64> {dist.annotation = #S},
                  %y: tensor<8x8xf32>, %v: tensor<8x8x8xf32> {dist.annotation = #S}, %j: tensor<8xi64>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = aten.indexed_mm %x, %w at %i : (tensor<8x8xf32>, tensor<6x8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %1 = aten.indexed_mm %y, %v at %j : (tensor<8x8xf32>, tensor<8x8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
}

// -----
// Blocks of tokens along another axis.
#mesh = #dist.mesh<["dp" = 2, "ep" = 2]>
#S = #dist.layout<#mesh, [S(0), S(0)]>
#E = #dist.layout<#mesh, [R, S(0)]>
module attributes {dist.mesh = #mesh} {
// CHECK-LABEL: func.func @blocks
// CHECK: aten.dispatch_rows %arg0 at %{{.*}} batches 2 parts 2 : (tensor<8x8xf32>, tensor<8xi64>) -> tensor<16x8xf32>
// CHECK: aten.indexed_mm {{.*}} {row_parts = array<i64: 2, 2>}
func.func @blocks(%x: tensor<8x8xf32> {dist.annotation = #S}, %w: tensor<4x8x8xf32> {dist.annotation = #E}, %i: tensor<8xi64> {dist.annotation = #S}) -> tensor<8x8xf32> {
  %0 = aten.indexed_mm %x, %w at %i : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
}
