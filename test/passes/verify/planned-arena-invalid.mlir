// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=planned
//
// Places of buffers that are wrong. A buffer here has 64 bytes.

// Two buffers of which the second is written while the first is still needed.
func.func private @k(%x: memref<16xf32>, %y: memref<16xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<16xf32> to tensor<16xf32>
  %1 = aten.relu %0 : (tensor<16xf32>) -> tensor<16xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<16xf32>, memref<16xf32>) -> ()
  return
}
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  exec.launch @k(%x, %a) : memref<16xf32>, memref<16xf32>
  // expected-error@+1 {{'exec.alloc' lies at bytes 32 to 96, which may overlap bytes 0 to 64 of a buffer that is in use at the same time}}
  %b = exec.alloc at 32 : memref<16xf32>
  exec.launch @k(%a, %b) : memref<16xf32>, memref<16xf32>
  exec.launch @k(%b, %o) : memref<16xf32>, memref<16xf32>
  return
}

// -----
// The later of the two may lie below.
func.func private @k(%x: memref<16xf32>, %y: memref<16xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<16xf32> to tensor<16xf32>
  %1 = aten.relu %0 : (tensor<16xf32>) -> tensor<16xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<16xf32>, memref<16xf32>) -> ()
  return
}
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 60 : memref<16xf32>
  exec.launch @k(%x, %a) : memref<16xf32>, memref<16xf32>
  // expected-error@+1 {{'exec.alloc' lies at bytes 0 to 64, which may overlap bytes 60 to 124}}
  %b = exec.alloc at 0 : memref<16xf32>
  exec.launch @k(%a, %b) : memref<16xf32>, memref<16xf32>
  exec.launch @k(%b, %o) : memref<16xf32>, memref<16xf32>
  return
}

// -----
// In use together are buffers that one op has, also where views are what it gets.
func.func private @k(%x: memref<16xf32>, %y: memref<16xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<16xf32> to tensor<16xf32>
  %1 = aten.relu %0 : (tensor<16xf32>) -> tensor<16xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<16xf32>, memref<16xf32>) -> ()
  return
}
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %a = exec.alloc at 0 : memref<16xf32>
  // expected-error@+1 {{lies at bytes 0 to 64, which may overlap bytes 0 to 64}}
  %b = exec.alloc at 0 : memref<16xf32>
  %v = memref.reinterpret_cast %a to offset: [0], sizes: [16], strides: [1] : memref<16xf32> to memref<16xf32, strided<[1]>>
  exec.launch @k(%v, %b) : memref<16xf32, strided<[1]>>, memref<16xf32>
  exec.launch @k(%b, %o) : memref<16xf32>, memref<16xf32>
  return
}

// -----
// A collective in flight uses what it reads until its wait.
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
  // expected-error@+1 {{lies at bytes 0 to 64, which may overlap bytes 0 to 64 of a buffer that is in use at the same time: a collective in flight has it until it is waited for}}
  %c = exec.alloc at 0 : memref<16xf32>
  exec.launch @k(%x, %c) : memref<16xf32>, memref<16xf32>
  exec.launch @k(%c, %o) : memref<16xf32>, memref<16xf32>
  exec.wait %t
  return
}

// -----
// And what it writes.
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
  // expected-error@+1 {{lies at bytes 64 to 128, which may overlap bytes 64 to 128 of a buffer that is in use at the same time: a collective in flight has it until it is waited for}}
  %c = exec.alloc at 64 : memref<16xf32>
  exec.launch @k(%x, %c) : memref<16xf32>, memref<16xf32>
  exec.launch @k(%c, %o) : memref<16xf32>, memref<16xf32>
  exec.wait %t
  return
}

// -----
// Without a wait, to the end.
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
  %t = exec.start all_reduce sum over #tp (%a : memref<16xf32>) -> (%b : memref<16xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 16>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  // expected-error@+1 {{lies at bytes 0 to 64, which may overlap bytes 0 to 64 of a buffer that is in use at the same time: a collective in flight}}
  %c = exec.alloc at 0 : memref<16xf32>
  exec.launch @k(%x, %c) : memref<16xf32>, memref<16xf32>
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
  // expected-error@+1 {{'exec.alloc' lies at bytes 224 to 288, outside of the arena of 256 bytes}}
  %a = exec.alloc at 224 : memref<16xf32>
  exec.launch @k(%x, %a) : memref<16xf32>, memref<16xf32>
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
  // expected-error@+1 {{lies at bytes 9223372036854775744 to}}
  %a = exec.alloc at 9223372036854775744 : memref<16xf32>
  exec.launch @k(%x, %a) : memref<16xf32>, memref<16xf32>
  return
}
