// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=planned
//
// What is done while a collective is in flight, and views.

// Written while it is being sent.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func private @k(%x: memref<16xf32>, %y: memref<16xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<16xf32> to tensor<16xf32>
  %1 = aten.relu %0 : (tensor<16xf32>) -> tensor<16xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<16xf32>, memref<16xf32>) -> ()
  return
}
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  %b = exec.alloc at 64 : memref<16xf32>
  exec.launch @k(%x, %a) : memref<16xf32>, memref<16xf32>
  %t = exec.start all_reduce sum over #tp (%a : memref<16xf32>) -> (%b : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  // expected-error@+1 {{'exec.launch' writes memory that a collective in flight reads until it is waited for}}
  exec.launch @k(%x, %a) : memref<16xf32>, memref<16xf32>
  exec.wait %t
  return
}

// -----
// Written, and read, while it is being received; afterwards both is right.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func private @k(%x: memref<16xf32>, %y: memref<16xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<16xf32> to tensor<16xf32>
  %1 = aten.relu %0 : (tensor<16xf32>) -> tensor<16xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<16xf32>, memref<16xf32>) -> ()
  return
}
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  %b = exec.alloc at 64 : memref<16xf32>
  exec.launch @k(%x, %a) : memref<16xf32>, memref<16xf32>
  %t = exec.start all_reduce sum over #tp (%a : memref<16xf32>) -> (%b : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  // expected-error@+1 {{'exec.launch' writes memory that a collective in flight writes until it is waited for}}
  exec.launch @k(%x, %b) : memref<16xf32>, memref<16xf32>
  // expected-error@+1 {{'exec.launch' reads memory that a collective in flight writes until it is waited for}}
  exec.launch @k(%b, %o) : memref<16xf32>, memref<16xf32>
  exec.wait %t
  exec.launch @k(%b, %o) : memref<16xf32>, memref<16xf32>
  exec.launch @k(%x, %a) : memref<16xf32>, memref<16xf32>
  return
}

// -----
// Two collectives at once.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func private @k(%x: memref<16xf32>, %y: memref<16xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<16xf32> to tensor<16xf32>
  %1 = aten.relu %0 : (tensor<16xf32>) -> tensor<16xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<16xf32>, memref<16xf32>) -> ()
  return
}
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  %b = exec.alloc at 64 : memref<16xf32>
  exec.launch @k(%x, %a) : memref<16xf32>, memref<16xf32>
  %t = exec.start all_reduce sum over #tp (%a : memref<16xf32>) -> (%b : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  // expected-error@+1 {{'exec.start' writes memory that a collective in flight writes until it is waited for}}
  %u = exec.start all_reduce sum over #tp (%a : memref<16xf32>) -> (%b : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  exec.wait %t
  exec.wait %u
  return
}

// -----
// Memory of the caller is no exception, and products write, too.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %t = exec.start all_reduce sum over #tp (%x : memref<16xf32>) -> (%o : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  %v = memref.reinterpret_cast %o to offset: [0], sizes: [4, 4], strides: [4, 1] : memref<16xf32> to memref<4x4xf32, strided<[4, 1]>>
  %w = memref.reinterpret_cast %x to offset: [0], sizes: [4, 4], strides: [4, 1] : memref<16xf32> to memref<4x4xf32, strided<[4, 1]>>
  // expected-error@+1 {{'exec.gemm' writes memory that a collective in flight writes until it is waited for}}
  exec.gemm %w * %w -> %v : memref<4x4xf32, strided<[4, 1]>> * memref<4x4xf32, strided<[4, 1]>> -> memref<4x4xf32, strided<[4, 1]>>
  exec.wait %t
  return
}

// -----
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
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  %b = exec.alloc at 64 : memref<16xf32>
  // expected-error@+1 {{'exec.start' is waited for 2 times, may be once}}
  %t = exec.start all_reduce sum over #tp (%a : memref<16xf32>) -> (%b : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  exec.wait %t
  exec.wait %t
  return
}

// -----
func.func private @k(%x: memref<16xf32>, %y: memref<16xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<16xf32> to tensor<16xf32>
  %1 = aten.relu %0 : (tensor<16xf32>) -> tensor<16xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<16xf32>, memref<16xf32>) -> ()
  return
}
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  // expected-error@+1 {{'exec.launch' writes operand 1, which shares memory with operand 0}}
  exec.launch @k(%a, %a) : memref<16xf32>, memref<16xf32>
  return
}

// -----
// An all-reduce may work in place, an all-to-all may not.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  %b = exec.alloc at 64 : memref<16xf32>
  %t = exec.start all_reduce sum over #tp (%a : memref<16xf32>) -> (%a : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  exec.wait %t
  // expected-error@+1 {{'exec.collective' writes operand 1, which shares memory with operand 0}}
  exec.collective permute over #tp (%a : memref<16xf32>) -> (%a : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64: 0, 1>}
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
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  %b = exec.alloc at 64 : memref<16xf32>
  %t = exec.start all_reduce sum over #tp (%a : memref<16xf32>) -> (%b : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  %c = arith.constant true
  // expected-error@+1 {{'arith.select' uses a token: only exec.wait may}}
  %u = arith.select %c, %t, %t : !exec.token
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
