// RUN: shard-opt %s "--shardc-place=mesh=tp=4 place=output:0=tp:S(1)" | FileCheck %s

// Positions and masks are made on every rank alike: they stay whole, and a rank takes its part for free where the
// stream is sharded over the sequence. No gather for the other use.
// CHECK: %[[P:.*]] = aten.arange{{.*}} : tensor<16xi64, #R>
// CHECK: %[[PART:.*]] = dist.redistribute %[[P]] : tensor<16xi64, #R> to tensor<16xi64, #S0tp>
// CHECK: aten.embedding %{{.*}} at %[[PART]] {{.*}} -> tensor<16x8xf32, #S0tp>
// CHECK-NOT: dist.redistribute {{.*}}#S0tp> to tensor<16x{{.*}}, #R>
// CHECK: return {{.*}}, tensor<16x16xi1, #R>
func.func @forward(%x: tensor<2x16x8xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<32x8xf32> {dist.kind = "parameter", dist.name = "wpe.weight"})
    -> (tensor<2x16x8xf32> {dist.name = "y"}, tensor<16x16xi1> {dist.name = "mask"}) {
  %p = aten.arange [0 : 16 : 1] i64 : tensor<16xi64>
  %row = aten.unsqueeze %p dim 1 : (tensor<16xi64>) -> tensor<16x1xi64>
  %mask = aten.le %p, %row : (tensor<16xi64>, tensor<16x1xi64>) -> tensor<16x16xi1>
  %e = aten.embedding %w at %p : (tensor<32x8xf32>, tensor<16xi64>) -> tensor<16x8xf32>
  %y = aten.add %x, %e : (tensor<2x16x8xf32>, tensor<16x8xf32>) -> tensor<2x16x8xf32>
  return %y, %mask : tensor<2x16x8xf32>, tensor<16x16xi1>
}

// The size of such a value is no tensor and has no layout.
// CHECK-LABEL: func.func @sizes
// CHECK: %[[ZERO:.*]] = aten.expand {{.*}} -> tensor<?x16xf32, #R>
// CHECK: aten.sym_size %[[ZERO]] dim 0 : (tensor<?x16xf32, #R>) -> index
// CHECK: aten.add {{.*}} -> tensor<?x16xf32, #S1tp>
func.func @sizes(%x: tensor<?x16xf32> {dist.kind = "input", dist.name = "x", dist.sizes = [#dist.size<s0>, #dist.size<16>],
                                       dist.annotation = #dist.layout<#dist.mesh<["tp" = 4]>, [S(1)]>})
    -> (tensor<?x16xf32> {dist.name = "y", dist.sizes = [#dist.size<s0>, #dist.size<16>]})
    attributes {dist.symbols = [#dist.symbol<s0 in [2, 64]>]} {
  %n = aten.sym_size %x dim 0 : (tensor<?x16xf32>) -> index
  %c = aten.constant dense<0.0> : tensor<f32>
  %zero = aten.expand %c [%n, 16] : (tensor<f32>) -> tensor<?x16xf32>
  %m = aten.sym_size %zero dim 0 : (tensor<?x16xf32>) -> index
  %more = aten.expand %c [%m, 16] : (tensor<f32>) -> tensor<?x16xf32>
  %sum = aten.add %x, %zero : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %y = aten.add %sum, %more : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
