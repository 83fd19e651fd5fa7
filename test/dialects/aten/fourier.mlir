// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt | FileCheck %s
// RUN: shard-opt %s --aten-expand-fourier | FileCheck %s --check-prefix=EXPANDED

// CHECK-LABEL: @forms
// EXPANDED-LABEL: @forms
// EXPANDED-NOT: aten.fft
func.func @forms(%z: tensor<8x30x2xf32>, %x: tensor<8x?xf64>, %n: index)
    -> (tensor<8x30x2xf32>, tensor<8x?x2xf64>, tensor<8x?xf64>) {
  // CHECK: aten.fft_c2c %{{.*}} dim 1 forward : (tensor<8x30x2xf32>) -> tensor<8x30x2xf32>
  %0 = aten.fft_c2c %z dim 1 forward : (tensor<8x30x2xf32>) -> tensor<8x30x2xf32>
  // CHECK: aten.fft_c2c %{{.*}} dim 0 normalization 2 : (tensor<8x30x2xf32>) -> tensor<8x30x2xf32>
  %1 = aten.fft_c2c %0 dim 0 normalization 2 : (tensor<8x30x2xf32>) -> tensor<8x30x2xf32>
  // CHECK: aten.fft_r2c %{{.*}} dim 1 normalization 1 onesided : (tensor<8x?xf64>) -> tensor<8x?x2xf64>
  %2 = aten.fft_r2c %x dim 1 normalization 1 onesided : (tensor<8x?xf64>) -> tensor<8x?x2xf64>
  // CHECK: aten.fft_c2r %{{.*}} dim 1 to [%{{.*}}] : (tensor<8x?x2xf64>) -> tensor<8x?xf64>
  %3 = aten.fft_c2r %2 dim 1 to [%n] : (tensor<8x?x2xf64>) -> tensor<8x?xf64>
  return %1, %2, %3 : tensor<8x30x2xf32>, tensor<8x?x2xf64>, tensor<8x?xf64>
}

// A short transform of the last dim is one product.
// EXPANDED-LABEL: @short
// EXPANDED: %[[M:.*]] = aten.constant {{.*}} : tensor<4x3xf64>
// EXPANDED: %[[P:.*]] = aten.linear %{{.*}}, %[[M]] : (tensor<8x3xf64>, tensor<4x3xf64>) -> tensor<8x4xf64>
// EXPANDED: aten.view %[[P]] [8, 2, 2]
// EXPANDED-NEXT: return
func.func @short(%x: tensor<8x3xf64>) -> tensor<8x2x2xf64> {
  %y = aten.fft_r2c %x dim 1 onesided : (tensor<8x3xf64>) -> tensor<8x2x2xf64>
  return %y : tensor<8x2x2xf64>
}

// Two factors: two products. A prime: a convolution, by products of a power of two.
// EXPANDED-LABEL: @long
// EXPANDED-COUNT-2: aten.linear
// EXPANDED-NOT: aten.linear
// EXPANDED-LABEL: @prime
// EXPANDED: aten.constant_pad_nd %{{.*}} : (tensor<1009x2xf32>) -> tensor<2048x2xf32>
func.func @long(%z: tensor<4096x2xf32>) -> tensor<4096x2xf32> {
  %y = aten.fft_c2c %z dim 0 forward : (tensor<4096x2xf32>) -> tensor<4096x2xf32>
  return %y : tensor<4096x2xf32>
}
func.func @prime(%z: tensor<1009x2xf32>) -> tensor<1009x2xf32> {
  %y = aten.fft_c2c %z dim 0 : (tensor<1009x2xf32>) -> tensor<1009x2xf32>
  return %y : tensor<1009x2xf32>
}
