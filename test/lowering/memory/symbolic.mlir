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
