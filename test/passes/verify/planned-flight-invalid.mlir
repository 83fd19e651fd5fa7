// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=planned
//
// What is done while a collective is in flight.

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
