// RUN: shard-opt %s | shard-opt | FileCheck %s
// RUN: shard-opt %s --aten-expand-convolutions | FileCheck %s --check-prefix=EXPAND
// RUN: shard-opt %s --aten-expand-convolutions --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=COUNT

// COUNT: 6 convolutions

// CHECK-LABEL: func.func @convolution
// CHECK: aten.convolution %{{.*}}, %{{.*}} bias(%{{.*}}) stride [2, 1] padding [1, 0] dilation [1, 1] : (
// EXPAND-LABEL: func.func @convolution
// EXPAND: %[[C:.*]] = aten.windows %{{.*}} kernel [3, 2] stride [2, 1] padding [1, 0] dilation [1, 1] : (tensor<2x3x8x8xf32>) -> tensor<2x3x3x2x4x7xf32>
// EXPAND: %[[K:.*]] = aten.view %{{.*}} [4, 18] : (tensor<4x3x3x2xf32>)
// EXPAND: %[[V:.*]] = aten.view %[[C]] [2, 18, 28]
// EXPAND: %[[P:.*]] = aten.matmul %[[K]], %[[V]] : (tensor<4x18xf32>, tensor<2x18x28xf32>) -> tensor<2x4x28xf32>
// EXPAND: %[[Y:.*]] = aten.view %[[P]] [2, 4, 4, 7]
// EXPAND: %[[B:.*]] = aten.view %{{.*}} [4, 1, 1]
// EXPAND: aten.add %[[Y]], %[[B]]
func.func @convolution(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x2xf32>, %b: tensor<4xf32>) -> tensor<2x4x4x7xf32> {
  %y = aten.convolution %x, %w bias(%b) stride [2, 1] padding [1, 0] dilation [1, 1]
    : (tensor<2x3x8x8xf32>, tensor<4x3x3x2xf32>, tensor<4xf32>) -> tensor<2x4x4x7xf32>
  return %y : tensor<2x4x4x7xf32>
}

// A window of one element that visits each needs no columns.
// EXPAND-LABEL: func.func @pointwise
// EXPAND-NOT: aten.windows
// EXPAND: aten.view %{{.*}} [%{{.*}}, 3, 64]
// EXPAND: aten.matmul
func.func @pointwise(%x: tensor<?x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<?x4x8x8xf32> {
  %y = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1]
    : (tensor<?x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<?x4x8x8xf32>
  return %y : tensor<?x4x8x8xf32>
}

// CHECK-LABEL: func.func @groups
// CHECK: dilation [2, 2] groups 2
// EXPAND-LABEL: func.func @groups
// EXPAND: %[[K:.*]] = aten.view %{{.*}} [2, 3, 18]
// EXPAND: %[[V:.*]] = aten.view %{{.*}} [1, 2, 18, 16]
// EXPAND: aten.matmul %[[K]], %[[V]]
func.func @groups(%x: tensor<1x4x8x8xf32>, %w: tensor<6x2x3x3xf32>) -> tensor<1x6x4x4xf32> {
  %y = aten.convolution %x, %w stride [1] padding [0] dilation [2, 2] groups 2
    : (tensor<1x4x8x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x4x4xf32>
  return %y : tensor<1x6x4x4xf32>
}

// Height and width that are not known are counted at run time.
// EXPAND-LABEL: func.func @unknown_sizes
// EXPAND: aten.sym_size
// EXPAND: arith.ceildivsi
func.func @unknown_sizes(%x: tensor<1x3x?x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x?x6xf32> {
  %y = aten.convolution %x, %w stride [2, 1] padding [0, 0] dilation [1, 1]
    : (tensor<1x3x?x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x?x6xf32>
  return %y : tensor<1x4x?x6xf32>
}

// Lines and volumes.
// EXPAND-LABEL: func.func @line
// EXPAND: aten.windows %{{.*}} kernel [3] stride [2] padding [1] dilation [1] : (tensor<2x3x8xf32>) -> tensor<2x3x3x4xf32>
// EXPAND: aten.matmul {{.*}} : (tensor<4x9xf32>, tensor<2x9x4xf32>) -> tensor<2x4x4xf32>
func.func @line(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>) -> tensor<2x4x4xf32> {
  %y = aten.convolution %x, %w stride [2] padding [1] dilation [1] : (tensor<2x3x8xf32>, tensor<4x3x3xf32>) -> tensor<2x4x4xf32>
  return %y : tensor<2x4x4xf32>
}

// EXPAND-LABEL: func.func @volume
// EXPAND: aten.windows %{{.*}} kernel [1, 3, 3] stride [1, 2, 2] padding [0, 1, 1] dilation [1, 1, 1] : (tensor<2x3x4x8x8xf32>) -> tensor<2x3x1x3x3x4x4x4xf32>
func.func @volume(%x: tensor<2x3x4x8x8xf32>, %w: tensor<4x3x1x3x3xf32>) -> tensor<2x4x4x4x4xf32> {
  %y = aten.convolution %x, %w stride [1, 2, 2] padding [0, 1, 1] dilation [1] : (tensor<2x3x4x8x8xf32>, tensor<4x3x1x3x3xf32>) -> tensor<2x4x4x4x4xf32>
  return %y : tensor<2x4x4x4x4xf32>
}

// CHECK-LABEL: func.func @fold
// CHECK: aten.fold %{{.*}} to [8, %{{.*}}] stride [2] padding [1] dilation [1, 2] : (tensor<1x4x3x3x4x?xf32>) -> tensor<1x4x8x?xf32>
func.func @fold(%x: tensor<1x4x3x3x4x?xf32>, %n: index) -> tensor<1x4x8x?xf32> {
  %y = aten.fold %x to [8, %n] stride [2] padding [1] dilation [1, 2] : (tensor<1x4x3x3x4x?xf32>) -> tensor<1x4x8x?xf32>
  return %y : tensor<1x4x8x?xf32>
}

// CHECK-LABEL: func.func @pools
// CHECK: aten.max_pool %{{.*}} kernel [3, 3] stride [2] padding [1] dilation [1] ceil : (
// CHECK: aten.avg_pool %{{.*}} kernel [2, 3] stride [] padding [0] with_padding divisor 7 : (
// CHECK: aten.adaptive_avg_pool %{{.*}} to [1, 1] : (
// CHECK: aten.batch_norm %{{.*}} mean(%{{.*}}) variance(%{{.*}}) eps 1.000000e-05 : (
func.func @pools(%x: tensor<2x3x9x9xf32>, %c: tensor<3xf32>) -> tensor<2x3x1x1xf32> {
  %0 = aten.max_pool %x kernel [3, 3] stride [2] padding [1] dilation [1] ceil : (tensor<2x3x9x9xf32>) -> tensor<2x3x5x5xf32>
  %1 = aten.avg_pool %0 kernel [2, 3] stride [] padding [0] with_padding divisor 7 : (tensor<2x3x5x5xf32>) -> tensor<2x3x2x1xf32>
  %2 = aten.adaptive_avg_pool %1 to [1, 1] : (tensor<2x3x2x1xf32>) -> tensor<2x3x1x1xf32>
  %3 = aten.batch_norm %2 mean(%c) variance(%c) eps 1.0e-5 : (tensor<2x3x1x1xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x1x1xf32>
  return %3 : tensor<2x3x1x1xf32>
}
