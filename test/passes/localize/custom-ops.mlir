// An operator that a user has registered: the same function on what a rank has, and the rows that a window covers.
// RUN: shard-opt %s --dist-localize | FileCheck %s

#mesh = #dist.mesh<["sp" = 2]>
#rows = #dist.layout<#mesh, [S(0)]>
#whole = #dist.layout<#mesh, [R]>
#sum = #dist.layout<#mesh, [P(sum)]>
#uneven = #dist.layout<#mesh, [S(0, sizes = [7, 3])]>

// CHECK-LABEL: func @points
// CHECK: aten.custom "geometry.knn.default"(%{{.*}}, %{{.*}}) {{.*}} : (tensor<?x3xf32>, tensor<20x3xf32>) -> tensor<?x3xi64>
func.func @points(%x: tensor<10x3xf32, #uneven>, %y: tensor<20x3xf32, #whole>) -> tensor<10x3xi64, #uneven> {
  %k = aten.custom "geometry.knn.default"(%x, %y) rule "n d, m d -> n k" symbol "knn"
    : (tensor<10x3xf32, #uneven>, tensor<20x3xf32, #whole>) -> tensor<10x3xi64, #uneven>
  return %k : tensor<10x3xi64, #uneven>
}

// CHECK-LABEL: func @grid
// CHECK: aten.custom "geometry.to_grid.default"(%{{.*}}, %{{.*}}) {{.*}} : (tensor<4x2xf32>, tensor<4xi64>) -> tensor<6x2xf32>
func.func @grid(%x: tensor<8x2xf32, #rows>, %cell: tensor<8xi64, #rows>) -> tensor<6x2xf32, #sum> {
  %g = aten.custom "geometry.to_grid.default"(%x, %cell) rule "n c, n -> g c; sum n" symbol "to_grid"
    : (tensor<8x2xf32, #rows>, tensor<8xi64, #rows>) -> tensor<6x2xf32, #sum>
  return %g : tensor<6x2xf32, #sum>
}

// Of 12 rows, rank 0 has 6 and needs 7 for 5 results; rank 1 has the other 6 and needs 7, too.
// CHECK-LABEL: func @window
// CHECK: dist.all_to_all
// CHECK: aten.custom "geometry.smooth.default"(%{{.*}}) {{.*}} : (tensor<7x4xf32>) -> tensor<5x4xf32>
func.func @window(%x: tensor<12x4xf32, #rows>) -> tensor<10x4xf32, #rows> {
  %s = aten.custom "geometry.smooth.default"(%x) rule "y[kernel=3] x -> y x" symbol "smooth"
    : (tensor<12x4xf32, #rows>) -> tensor<10x4xf32, #rows>
  return %s : tensor<10x4xf32, #rows>
}
