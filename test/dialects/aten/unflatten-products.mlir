// RUN: shard-opt %s --aten-unflatten-products --canonicalize | FileCheck %s

// The sizes of batch and sequence are those of the argument, on whatever way they come.
// CHECK-LABEL: @dynamic
// CHECK-NEXT: %[[W:.*]] = aten.permute %arg1 [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
// CHECK-NEXT: %[[Y:.*]] = aten.linear %arg0, %[[W]], %arg2 : (tensor<?x?x64xf32>, tensor<32x64xf32>, tensor<32xf32>) -> tensor<?x?x32xf32>
// CHECK-NEXT: return %[[Y]]
func.func @dynamic(%x: tensor<?x?x64xf32>, %w: tensor<64x32xf32>, %b: tensor<32xf32>) -> tensor<?x?x32xf32> {
  %n = aten.sym_size %x dim 0 : (tensor<?x?x64xf32>) -> index
  %s = aten.sym_size %x dim 1 : (tensor<?x?x64xf32>) -> index
  %m = arith.muli %n, %s : index
  %v = aten.view %x [%m, 64] : (tensor<?x?x64xf32>) -> tensor<?x64xf32>
  %p = aten.addmm %b, %v, %w : (tensor<32xf32>, tensor<?x64xf32>, tensor<64x32xf32>) -> tensor<?x32xf32>
  %y = aten.view %p [%n, %s, 32] : (tensor<?x32xf32>) -> tensor<?x?x32xf32>
  return %y : tensor<?x?x32xf32>
}

// A transposed weight is what a linear takes; several views of one product are one.
// CHECK-LABEL: @static
// CHECK-NEXT: %[[Y:.*]] = aten.linear %arg0, %arg1 : (tensor<2x3x5x64xf32>, tensor<32x64xf32>) -> tensor<2x3x5x32xf32>
// CHECK-NEXT: return %[[Y]], %[[Y]]
func.func @static(%x: tensor<2x3x5x64xf32>, %w: tensor<32x64xf32>) -> (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) {
  %v = aten.view %x [30, 64] : (tensor<2x3x5x64xf32>) -> tensor<30x64xf32>
  %t = aten.transpose %w [0, 1] : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %p = aten.mm %v, %t : (tensor<30x64xf32>, tensor<64x32xf32>) -> tensor<30x32xf32>
  %y = aten.view %p [2, 3, 5, 32] : (tensor<30x32xf32>) -> tensor<2x3x5x32xf32>
  %z = aten.view %p [2, 3, 5, 32] : (tensor<30x32xf32>) -> tensor<2x3x5x32xf32>
  return %y, %z : tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>
}

// What is merged stays merged where anything else is made of it.
// CHECK-LABEL: @other_dims
// CHECK-COUNT-2: aten.view
func.func @other_dims(%x: tensor<4x6x64xf32>, %w: tensor<64x32xf32>) -> tensor<6x4x32xf32> {
  %v = aten.view %x [24, 64] : (tensor<4x6x64xf32>) -> tensor<24x64xf32>
  %p = aten.mm %v, %w : (tensor<24x64xf32>, tensor<64x32xf32>) -> tensor<24x32xf32>
  %y = aten.view %p [6, 4, 32] : (tensor<24x32xf32>) -> tensor<6x4x32xf32>
  return %y : tensor<6x4x32xf32>
}

// Batch and sequence trade places: the types are the same, the sizes are not.
// CHECK-LABEL: @swapped
// CHECK: aten.mm
func.func @swapped(%x: tensor<?x?x64xf32>, %w: tensor<64x32xf32>) -> tensor<?x?x32xf32> {
  %n = aten.sym_size %x dim 0 : (tensor<?x?x64xf32>) -> index
  %s = aten.sym_size %x dim 1 : (tensor<?x?x64xf32>) -> index
  %m = arith.muli %n, %s : index
  %v = aten.view %x [%m, 64] : (tensor<?x?x64xf32>) -> tensor<?x64xf32>
  %p = aten.mm %v, %w : (tensor<?x64xf32>, tensor<64x32xf32>) -> tensor<?x32xf32>
  %y = aten.view %p [%s, %n, 32] : (tensor<?x32xf32>) -> tensor<?x?x32xf32>
  return %y : tensor<?x?x32xf32>
}

// The last dim changes too, or the product is used as it is, scaled, or has another bias.
// CHECK-LABEL: @no_linear
// CHECK: aten.mm
// CHECK: aten.mm
// CHECK: aten.addmm
// CHECK: aten.addmm
func.func @no_linear(%x: tensor<4x6x64xf32>, %w: tensor<64x32xf32>, %u: tensor<32x32xf32>, %b: tensor<32xf32>, %c: tensor<24x32xf32>)
    -> (tensor<4x6x32xf32>, tensor<24x32xf32>, tensor<4x6x32xf32>, tensor<4x6x32xf32>) {
  %h = aten.view %x [48, 32] : (tensor<4x6x64xf32>) -> tensor<48x32xf32>
  %hp = aten.mm %h, %u : (tensor<48x32xf32>, tensor<32x32xf32>) -> tensor<48x32xf32>
  %first = aten.slice %hp dim 0 [0 : 24 : 1] : (tensor<48x32xf32>) -> tensor<24x32xf32>
  %0 = aten.view %first [4, 6, 32] : (tensor<24x32xf32>) -> tensor<4x6x32xf32>
  %v = aten.view %x [24, 64] : (tensor<4x6x64xf32>) -> tensor<24x64xf32>
  %1 = aten.mm %v, %w : (tensor<24x64xf32>, tensor<64x32xf32>) -> tensor<24x32xf32>
  %p2 = aten.addmm %b, %v, %w {alpha = 2.0 : f64} : (tensor<32xf32>, tensor<24x64xf32>, tensor<64x32xf32>) -> tensor<24x32xf32>
  %2 = aten.view %p2 [4, 6, 32] : (tensor<24x32xf32>) -> tensor<4x6x32xf32>
  %p3 = aten.addmm %c, %v, %w : (tensor<24x32xf32>, tensor<24x64xf32>, tensor<64x32xf32>) -> tensor<24x32xf32>
  %3 = aten.view %p3 [4, 6, 32] : (tensor<24x32xf32>) -> tensor<4x6x32xf32>
  return %0, %1, %2, %3 : tensor<4x6x32xf32>, tensor<24x32xf32>, tensor<4x6x32xf32>, tensor<4x6x32xf32>
}

// A batch made of images, heads, rows and columns: each keeps its dim. What reads the product takes its elements in the same order.
// CHECK-LABEL: @batch_of_positions
// CHECK-NOT: aten.bmm
// CHECK-DAG: %[[A:.*]] = aten.view %arg0 [2, 3, 7, 5, 1, 4] : (tensor<2x3x7x5x4x1xf32>) -> tensor<2x3x7x5x1x4xf32>
// CHECK-DAG: aten.matmul %[[A]], %arg1 : (tensor<2x3x7x5x1x4xf32>, tensor<2x3x7x5x4x9xf32>) -> tensor<2x3x7x5x1x9xf32>
// CHECK: aten.view %{{.*}} [2, 3, 7, 5, 9]
func.func @batch_of_positions(%q: tensor<2x3x7x5x4x1xf32>, %k: tensor<2x3x7x5x4x9xf32>) -> tensor<2x3x7x5x9xf32> {
  %a = aten.view %q [210, 1, 4] : (tensor<2x3x7x5x4x1xf32>) -> tensor<210x1x4xf32>
  %b = aten.view %k [210, 4, 9] : (tensor<2x3x7x5x4x9xf32>) -> tensor<210x4x9xf32>
  %p = aten.bmm %a, %b : (tensor<210x1x4xf32>, tensor<210x4x9xf32>) -> tensor<210x1x9xf32>
  %y = aten.view %p [2, 3, 7, 5, 9] : (tensor<210x1x9xf32>) -> tensor<2x3x7x5x9xf32>
  return %y : tensor<2x3x7x5x9xf32>
}

// The same matrices on both sides.
// CHECK-LABEL: @batch_of_squares
// CHECK: aten.matmul %arg0, %arg0 : (tensor<2x3x5x4x4xf32>, tensor<2x3x5x4x4xf32>) -> tensor<2x3x5x4x4xf32>
func.func @batch_of_squares(%x: tensor<2x3x5x4x4xf32>) -> tensor<2x3x5x4x4xf32> {
  %a = aten.view %x [30, 4, 4] : (tensor<2x3x5x4x4xf32>) -> tensor<30x4x4xf32>
  %p = aten.bmm %a, %a : (tensor<30x4x4xf32>, tensor<30x4x4xf32>) -> tensor<30x4x4xf32>
  %y = aten.view %p [2, 3, 5, 4, 4] : (tensor<30x4x4xf32>) -> tensor<2x3x5x4x4xf32>
  return %y : tensor<2x3x5x4x4xf32>
}

// Batch and heads; batches of other dims; a product that is used as it is.
// CHECK-LABEL: @batches_that_stay
// CHECK-COUNT-3: aten.bmm
func.func @batches_that_stay(%x: tensor<2x3x4x4xf32>, %y: tensor<2x3x5x4x4xf32>, %z: tensor<3x2x5x4x4xf32>) -> (tensor<2x3x4x4xf32>, tensor<2x3x5x4x4xf32>, tensor<30x4x4xf32>) {
  %a = aten.view %x [6, 4, 4] : (tensor<2x3x4x4xf32>) -> tensor<6x4x4xf32>
  %0 = aten.bmm %a, %a : (tensor<6x4x4xf32>, tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %1 = aten.view %0 [2, 3, 4, 4] : (tensor<6x4x4xf32>) -> tensor<2x3x4x4xf32>
  %b = aten.view %y [30, 4, 4] : (tensor<2x3x5x4x4xf32>) -> tensor<30x4x4xf32>
  %c = aten.view %z [30, 4, 4] : (tensor<3x2x5x4x4xf32>) -> tensor<30x4x4xf32>
  %2 = aten.bmm %b, %c : (tensor<30x4x4xf32>, tensor<30x4x4xf32>) -> tensor<30x4x4xf32>
  %3 = aten.view %2 [2, 3, 5, 4, 4] : (tensor<30x4x4xf32>) -> tensor<2x3x5x4x4xf32>
  %4 = aten.bmm %b, %b : (tensor<30x4x4xf32>, tensor<30x4x4xf32>) -> tensor<30x4x4xf32>
  return %1, %3, %4 : tensor<2x3x4x4xf32>, tensor<2x3x5x4x4xf32>, tensor<30x4x4xf32>
}
