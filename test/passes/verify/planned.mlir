// RUN: shard-opt %s --split-input-file --dist-verify-stage=planned --mlir-pass-statistics -o /dev/null 2>&1 | FileCheck %s
//
// What the stage allows.

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func private @k(%x: memref<16xf32>, %y: memref<16xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<16xf32> to tensor<16xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<16xf32>, memref<16xf32>) -> ()
  return
}

// A place is used again as soon as nobody needs it, empty buffers and ones that nothing uses lie anywhere inside, what a collective
// reads may be read meanwhile, an all-gather reads its own part of what it delivers, and one tensor is reduced in place. Whether
// the last launch meets what is in flight cannot be known here.
// CHECK: (S) {{[0-9]+}} ops-checked
// CHECK: (S) 3 views-unproven
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>},
             %o: memref<16xf32> {exec.argument = #exec.argument<output>},
             %p: memref<?xf32> {exec.argument = #exec.argument<parameter>})
    attributes {exec.entry, exec.arena_bytes = 192 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  %b = exec.alloc at 64 : memref<16xf32>
  exec.launch @k(%x, %a) : memref<16xf32>, memref<16xf32>
  exec.launch @k(%a, %b) : memref<16xf32>, memref<16xf32>
  %none = exec.alloc at 64 : memref<0xf32>
  %unused = exec.alloc at 0 : memref<48xf32>
  %c = exec.alloc at 0 : memref<16xf32>
  %t = exec.start all_reduce sum over #tp (%b : memref<16xf32>) -> (%c : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  %d = exec.alloc at 128 : memref<16xf32>
  exec.launch @k(%b, %d) : memref<16xf32>, memref<16xf32>
  exec.wait %t
  %half = memref.reinterpret_cast %d to offset: [8], sizes: [8], strides: [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 8>>
  %g = exec.start all_gather over #tp (%half : memref<8xf32, strided<[1], offset: 8>>) -> (%d : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  exec.wait %g
  %n = dist.extent #dist.extents<9>
  %m = dist.axis_index over #tp
  %v = memref.reinterpret_cast %p to offset: [%n], sizes: [16], strides: [1] : memref<?xf32> to memref<16xf32, strided<[1], offset: ?>>
  %w = memref.reinterpret_cast %p to offset: [%m], sizes: [16], strides: [1] : memref<?xf32> to memref<16xf32, strided<[1], offset: ?>>
  %i = exec.start all_reduce sum over #tp (%v : memref<16xf32, strided<[1], offset: ?>>) -> (%v : memref<16xf32, strided<[1], offset: ?>>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  exec.launch @k(%w, %o) : memref<16xf32, strided<[1], offset: ?>>, memref<16xf32>
  return
}

// -----
// Offsets are compared for all sizes, also where buffers are empty with few rows: what comes first in the entry here lies above.
func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>) attributes {exec.kernel, exec.writes = array<i64: 1, 2>} {
  %0 = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<?xf32>, memref<?xf32>) -> ()
  bufferization.materialize_in_destination %0 in restrict writable %z : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}
func.func @f(%x: memref<?xf32> {exec.argument = #exec.argument<input>})
    attributes {exec.entry, exec.plan = @p, exec.slots = 2 : i64, dist.symbols = [#dist.symbol<n in [1, ?]>]} {
  %c0 = arith.constant 0 : index
  %c5000000 = arith.constant 5000000 : index
  %n = dist.extent #dist.extents<n>
  %less = arith.subi %n, %c5000000 : index
  %rest = arith.maxsi %less, %c0 : index
  %above = exec.alloc(%rest) slot 0 : memref<?xf32>
  %below = exec.alloc(%rest) slot 1 : memref<?xf32>
  exec.launch @k(%x, %above, %below) : memref<?xf32>, memref<?xf32>, memref<?xf32>
  return
}
func.func private @p() attributes {exec.plan, dist.symbols = [#dist.symbol<n in [1, ?]>]} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c5000000 = arith.constant 5000000 : index
  %n = dist.extent #dist.extents<n>
  %less = arith.subi %n, %c5000000 : index
  %rest = arith.maxsi %less, %c0 : index
  %bytes = arith.muli %rest, %c4 : index
  %blocks = arith.ceildivui %bytes, %c64 : index
  %size = arith.muli %blocks, %c64 : index
  %end = arith.addi %size, %size : index
  exec.set_offset %c0 slot 1
  exec.set_offset %size slot 0
  exec.set_arena_bytes %end
  return
}
