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
