// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --canonicalize --cse --split-input-file | FileCheck %s
//
// Sizes that are known when the program runs: equal expressions are one value, so that what is dense is seen to be.

// Heads are cut off and put together again without a copy but that into the output: the strides of the whole are
// 64 s, 64, those of the heads 64 s, 16, 64, 1.
// CHECK-LABEL: func.func @heads(
// CHECK-NOT: @copy
// CHECK: exec.launch @copy
// CHECK-NOT: @copy
// CHECK: return
func.func @heads(%x: tensor<?x?x64xf32> {dist.sizes = [#dist.size<b>, #dist.size<s>, #dist.size<64>]})
    -> tensor<?x?x64xf32> attributes {dist.symbols = [#dist.symbol<b in [1, 8]>, #dist.symbol<s in [1, 8]>]} {
  %b = aten.sym_size %x dim 0 : (tensor<?x?x64xf32>) -> index
  %s = aten.sym_size %x dim 1 : (tensor<?x?x64xf32>) -> index
  %0 = aten.view %x [%b, %s, 4, 16] : (tensor<?x?x64xf32>) -> tensor<?x?x4x16xf32>
  %1 = aten.transpose %0 [1, 2] : (tensor<?x?x4x16xf32>) -> tensor<?x4x?x16xf32>
  %2 = aten.transpose %1 [1, 2] : (tensor<?x4x?x16xf32>) -> tensor<?x?x4x16xf32>
  %3 = aten.view %2 [%b, %s, 64] : (tensor<?x?x4x16xf32>) -> tensor<?x?x64xf32>
  return %3 : tensor<?x?x64xf32>
}

// -----
// A slice up to the size itself is all of it: nothing negative is counted from the end.
// CHECK-LABEL: func.func @whole_slice(
// CHECK-NOT: arith.select
// CHECK-NOT: arith.minsi
// CHECK: return
func.func @whole_slice(%x: tensor<?x3xf32> {dist.sizes = [#dist.size<b>, #dist.size<3>]}) -> tensor<?x3xf32>
    attributes {dist.symbols = [#dist.symbol<b in [1, 8]>]} {
  %b = aten.sym_size %x dim 0 : (tensor<?x3xf32>) -> index
  %0 = aten.slice %x dim 0 [0 : %b : 1] : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----
// Heads of a transposed tensor are not: one copy, then a view of that.
// CHECK-LABEL: func.func @merge_transposed(
// CHECK: exec.alloc(%{{.*}}) : memref<?x?x4x16xf32>
// CHECK: exec.launch @copy
// CHECK: exec.launch @copy
// CHECK-NEXT: return
func.func @merge_transposed(%x: tensor<?x4x?x16xf32> {dist.sizes = [#dist.size<b>, #dist.size<4>, #dist.size<s>, #dist.size<16>]})
    -> tensor<?x?x64xf32> attributes {dist.symbols = [#dist.symbol<b in [1, 8]>, #dist.symbol<s in [1, 8]>]} {
  %b = aten.sym_size %x dim 0 : (tensor<?x4x?x16xf32>) -> index
  %s = aten.sym_size %x dim 2 : (tensor<?x4x?x16xf32>) -> index
  %0 = aten.transpose %x [1, 2] : (tensor<?x4x?x16xf32>) -> tensor<?x?x4x16xf32>
  %1 = aten.view %0 [%b, %s, 64] : (tensor<?x?x4x16xf32>) -> tensor<?x?x64xf32>
  return %1 : tensor<?x?x64xf32>
}

// -----
// A rank's chunk of a reduce-scatter: c = ceil(n / 4), then max(0, min(c, n - position * c)).
// CHECK-LABEL: func.func @scatter(
// CHECK-DAG: %[[N:.*]] = dist.extent #dist.extents<n>
// CHECK-DAG: %[[AT:.*]] = dist.axis_index over #tp
// CHECK: %[[C:.*]] = arith.ceildivsi %[[N]], %c4
// CHECK: %[[BEFORE:.*]] = arith.muli %[[AT]], %[[C]]
// CHECK: %[[REST:.*]] = arith.subi %[[N]], %[[BEFORE]]
// CHECK: %[[MIN:.*]] = arith.minsi %[[C]], %[[REST]]
// CHECK: %[[MINE:.*]] = arith.maxsi %[[MIN]], %c0
// CHECK: memref.reinterpret_cast %arg1 to offset: [0], sizes: [%[[MINE]], 3]
#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func @scatter(%x: tensor<?x3xf32> {dist.sizes = [#dist.size<n>, #dist.size<3>]}) -> tensor<?x3xf32>
    attributes {dist.symbols = [#dist.symbol<n in [1, 8]>]} {
  %0 = dist.reduce_scatter sum over #tp %x dim 0 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----
// A bound that is computed from the end is counted from there.
// CHECK-LABEL: func.func @from_the_end(
// CHECK: %[[LESS:.*]] = dist.extent #dist.extents<b * -1>
// CHECK: %[[IS_LESS:.*]] = arith.cmpi slt, %[[LESS]]
// CHECK: arith.select %[[IS_LESS]]
// CHECK: return
func.func @from_the_end(%x: tensor<8x3xf32>, %y: tensor<?xf32> {dist.sizes = [#dist.size<b>]}) -> (tensor<?x3xf32>, tensor<?xf32>)
    attributes {dist.symbols = [#dist.symbol<b in [1, 8]>]} {
  %start = dist.extent #dist.extents<b * -1>
  %0 = aten.slice %x dim 0 [%start : 9223372036854775807 : 1] : (tensor<8x3xf32>) -> tensor<?x3xf32>
  %1 = aten.neg %0 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %2 = aten.neg %y : (tensor<?xf32>) -> tensor<?xf32>
  return %1, %2 : tensor<?x3xf32>, tensor<?xf32>
}

// -----
// A kernel is not told that a part of a tensor is dense because its strides are as little known as those of one that is.
// CHECK-LABEL: func.func @columns(
// The whole of the result is dense.
// CHECK: exec.launch @[[KERNEL:.*]](%{{.*}}, %{{.*}}) {{.*}} : memref<4x?x3xf32, strided<[?, 3, 1], offset: ?>>, memref<4x?x3xf32>
// CHECK: func.func private @[[KERNEL]](%{{.*}}: memref<4x?x3xf32, strided<[?, 3, 1]>>, %{{.*}}: memref<4x?x3xf32>)
func.func @columns(%x: tensor<4x?x3xf32> {dist.sizes = [#dist.size<4>, #dist.size<b>, #dist.size<3>]}) -> tensor<4x?x3xf32>
    attributes {dist.symbols = [#dist.symbol<b in [2, 8]>]} {
  %0 = aten.slice %x dim 1 [1 : 9223372036854775807 : 1] : (tensor<4x?x3xf32>) -> tensor<4x?x3xf32>
  %1 = aten.neg %0 : (tensor<4x?x3xf32>) -> tensor<4x?x3xf32>
  return %1 : tensor<4x?x3xf32>
}

// -----
// What arithmetic shows of the memory is so of the tensor that is read at positions in it.
// CHECK-LABEL: func.func @one_row(
// CHECK: func.func private @{{.*}}(%{{.*}}: memref<1x8xf32>
// CHECK: aten.flip %{{.*}} [1] : (tensor<1x8xf32>) -> tensor<1x8xf32>
func.func @one_row(%x: tensor<8xf32>, %y: tensor<?xf32> {dist.sizes = [#dist.size<b>]}) -> tensor<?x8xf32>
    attributes {dist.symbols = [#dist.symbol<b in [1, 8]>]} {
  %one = arith.constant 1 : index
  %b = aten.sym_size %y dim 0 : (tensor<?xf32>) -> index
  %more = arith.addi %b, %one : index
  %rows = arith.subi %more, %b : index
  %0 = aten.view %x [%rows, 8] : (tensor<8xf32>) -> tensor<?x8xf32>
  %1 = aten.flip %0 [1] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
