// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=planned
//
// Views: which parts of a buffer they are, in flight and otherwise.

// Views are what they are views of: every other element from the second on meets what is in flight, the others are free.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func private @k(%x: memref<4xf32>, %y: memref<4xf32, strided<[2]>>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<4xf32>, memref<4xf32, strided<[2]>>) -> ()
  return
}
func.func @f(%x: memref<4xf32> {exec.argument = #exec.argument<input>}) attributes {exec.entry, exec.arena_bytes = 64 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  %s = memref.reinterpret_cast %a to offset: [3], sizes: [1], strides: [1] : memref<16xf32> to memref<1xf32, strided<[1], offset: 3>>
  %t = exec.start broadcast over #tp (%s : memref<1xf32, strided<[1], offset: 3>>) -> (%s : memref<1xf32, strided<[1], offset: 3>>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 1>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  %even = memref.reinterpret_cast %a to offset: [0], sizes: [4], strides: [2] : memref<16xf32> to memref<4xf32, strided<[2]>>
  exec.launch @k(%x, %even) : memref<4xf32>, memref<4xf32, strided<[2]>>
  %odd = memref.reinterpret_cast %a to offset: [1], sizes: [4], strides: [2] : memref<16xf32> to memref<4xf32, strided<[2], offset: 1>>
  // expected-error@+1 {{'exec.launch' writes memory that a collective in flight reads until it is waited for}}
  exec.launch @k(%x, %odd) : memref<4xf32>, memref<4xf32, strided<[2], offset: 1>>
  exec.wait %t
  return
}

// -----
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  // expected-error@+1 {{'memref.reinterpret_cast' reaches outside of its buffer: elements 1 to 16 of 16}}
  %v = memref.reinterpret_cast %a to offset: [1], sizes: [16], strides: [1] : memref<16xf32> to memref<16xf32, strided<[1], offset: 1>>
  return
}

// -----
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  %v = memref.reinterpret_cast %a to offset: [8], sizes: [8], strides: [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 8>>
  // expected-error@+1 {{'memref.reinterpret_cast' is a view of a view: it must be one of the buffer itself}}
  %w = memref.reinterpret_cast %v to offset: [4], sizes: [4], strides: [1] : memref<8xf32, strided<[1], offset: 8>> to memref<4xf32, strided<[1], offset: 4>>
  return
}

// -----
// All of a buffer is in flight: a view of a size that is not known meets it.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}
func.func @f(%x: memref<?xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry, exec.plan = @p, exec.slots = 0 : i64, dist.symbols = [#dist.symbol<n in [1, 16]>]} {
  %n = dist.extent #dist.extents<n>
  %t = exec.start broadcast over #tp (%o : memref<16xf32>) -> (%o : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  %v = memref.reinterpret_cast %o to offset: [0], sizes: [%n], strides: [1] : memref<16xf32> to memref<?xf32, strided<[1]>>
  // expected-error@+1 {{'exec.launch' writes memory that a collective in flight reads until it is waited for}}
  exec.launch @k(%x, %v) : memref<?xf32>, memref<?xf32, strided<[1]>>
  exec.wait %t
  return
}
func.func private @p() attributes {exec.plan, dist.symbols = [#dist.symbol<n in [1, 16]>]} {
  %c0 = arith.constant 0 : index
  exec.set_arena_bytes %c0
  return
}

// -----
// What is called more general is right, for comparison; what is called more exact is refused.
func.func private @k(%x: memref<?xf32>) attributes {exec.kernel, exec.writes = array<i64: 0>} {
  return
}
func.func @f(%o: memref<?xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 64 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  %general = memref.cast %a : memref<16xf32> to memref<?xf32>
  exec.launch @k(%general) : memref<?xf32>
  // expected-error@+1 {{makes sizes known that nothing has checked}}
  %exact = memref.cast %o : memref<?xf32> to memref<4xf32>
  return
}
