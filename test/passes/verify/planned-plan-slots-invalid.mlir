// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=planned
//
// Buffers whose slots and sizes do not fit the plan function of their entry.

func.func private @k(%x: memref<?x5xf32>, %y: memref<?x5xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<?x5xf32> to tensor<?x5xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<?x5xf32>, memref<?x5xf32>) -> ()
  return
}
func.func @f(%x: memref<?x5xf32> {exec.argument = #exec.argument<input>}, %o: memref<?x5xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry, exec.plan = @p, exec.slots = 3 : i64, dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %n = dist.extent #dist.extents<n>
  %a = exec.alloc(%n) slot 0 : memref<?x5xf32>
  exec.launch @k(%x, %a) : memref<?x5xf32>, memref<?x5xf32>
  %b = exec.alloc(%n) slot 1 : memref<?x5xf32>
  exec.launch @k(%a, %b) : memref<?x5xf32>, memref<?x5xf32>
  // expected-error@+1 {{'exec.alloc' has slot 7, but its entry has 3 slots}}
  %c = exec.alloc(%n) slot 7 : memref<?x5xf32>
  exec.launch @k(%b, %c) : memref<?x5xf32>, memref<?x5xf32>
  exec.launch @k(%c, %o) : memref<?x5xf32>, memref<?x5xf32>
  return
}
func.func private @p() attributes {exec.plan, dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %c0 = arith.constant 0 : index
  %c20 = arith.constant 20 : index
  %c64 = arith.constant 64 : index
  %n = dist.extent #dist.extents<n>
  %bytes = arith.muli %c20, %n : index
  %blocks = arith.ceildivui %bytes, %c64 : index
  %size = arith.muli %blocks, %c64 : index
  exec.set_offset %c0 slot 0
  exec.set_offset %size slot 1
  %end = arith.addi %size, %size : index
  exec.set_offset %c0 slot 2
  exec.set_arena_bytes %end
  return
}

// -----
func.func private @k(%x: memref<?x5xf32>, %y: memref<?x5xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<?x5xf32> to tensor<?x5xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<?x5xf32>, memref<?x5xf32>) -> ()
  return
}
func.func @f(%x: memref<?x5xf32> {exec.argument = #exec.argument<input>}, %o: memref<?x5xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry, exec.plan = @p, exec.slots = 3 : i64, dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %n = dist.extent #dist.extents<n>
  %a = exec.alloc(%n) slot 0 : memref<?x5xf32>
  exec.launch @k(%x, %a) : memref<?x5xf32>, memref<?x5xf32>
  %b = exec.alloc(%n) slot 1 : memref<?x5xf32>
  exec.launch @k(%a, %b) : memref<?x5xf32>, memref<?x5xf32>
  // expected-error@+1 {{'exec.alloc' has a size that is too large to be checked}}
  %d = exec.alloc(%n) slot 2 : memref<?x4611686018427387904xf32>
  %c = exec.alloc(%n) slot 2 : memref<?x5xf32>
  exec.launch @k(%b, %c) : memref<?x5xf32>, memref<?x5xf32>
  exec.launch @k(%c, %o) : memref<?x5xf32>, memref<?x5xf32>
  return
}
func.func private @p() attributes {exec.plan, dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %c0 = arith.constant 0 : index
  %c20 = arith.constant 20 : index
  %c64 = arith.constant 64 : index
  %n = dist.extent #dist.extents<n>
  %bytes = arith.muli %c20, %n : index
  %blocks = arith.ceildivui %bytes, %c64 : index
  %size = arith.muli %blocks, %c64 : index
  exec.set_offset %c0 slot 0
  exec.set_offset %size slot 1
  %end = arith.addi %size, %size : index
  exec.set_offset %c0 slot 2
  exec.set_arena_bytes %end
  return
}
