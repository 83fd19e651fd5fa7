// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=planned
//
// Buffers without a place, and entries that do not say who gives places.

func.func private @k(%x: memref<16xf32>, %y: memref<16xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<16xf32> to tensor<16xf32>
  %1 = aten.relu %0 : (tensor<16xf32>) -> tensor<16xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<16xf32>, memref<16xf32>) -> ()
  return
}
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  // expected-error@+1 {{'exec.alloc' has no place in the arena: run exec-plan-arena}}
  %a = exec.alloc : memref<16xf32>
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
// expected-error@+1 {{'func.func' has buffers, but neither 'exec.arena_bytes' nor 'exec.plan'}}
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
  %a = exec.alloc at 0 : memref<16xf32>
  exec.launch @k(%x, %a) : memref<16xf32>, memref<16xf32>
  return
}

// -----
// expected-error@+1 {{'func.func' has both an arena of known size and a plan function}}
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 64 : i64, exec.plan = @p} {
  %a = exec.alloc at 0 : memref<16xf32>
  return
}

// -----
// expected-error@+1 {{'func.func' names 'p', which is no plan function}}
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.plan = @p} {
  %a = exec.alloc at 0 : memref<16xf32>
  return
}

// -----
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  // expected-error@+1 {{has a slot, but its entry has no plan function}}
  %a = exec.alloc slot 0 : memref<16xf32>
  return
}

// -----
func.func @f(%x: memref<16xf32> {exec.argument = #exec.argument<input>}, %o: memref<16xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 256 : i64} {
  %n = dist.extent #dist.extents<7>
  // expected-error@+1 {{has a size that is not known at a fixed offset, and its entry has no plan function}}
  %a = exec.alloc(%n) at 0 : memref<?xf32>
  return
}
