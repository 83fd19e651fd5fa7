// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=planned
//
// Plan functions that are wrong. They are refused unless they are right for all sizes.

// What is right, for comparison: the first and the third are never in use together.
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

// -----
// The middle one begins before the first has ended.
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
  // expected-error@+2 {{lies at slot 1, and the plan function does not show that it ends inside the arena}}
  // expected-error@+1 {{'exec.alloc' lies at slot 1, which may overlap slot 0 of a buffer that is in use at the same time}}
  %b = exec.alloc(%n) slot 1 : memref<?x5xf32>
  exec.launch @k(%a, %b) : memref<?x5xf32>, memref<?x5xf32>
  // expected-error@+1 {{lies at slot 2, which may overlap slot 1}}
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
  exec.set_offset %c64 slot 1
  %end = arith.addi %size, %size : index
  exec.set_offset %c0 slot 2
  exec.set_arena_bytes %end
  return
}

// -----
// Rows of four do not hold rows of five.
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
  // expected-error@+2 {{lies at slot 1, and the plan function does not show that it ends inside the arena}}
  // expected-error@+1 {{lies at slot 1, which may overlap slot 0}}
  %b = exec.alloc(%n) slot 1 : memref<?x5xf32>
  exec.launch @k(%a, %b) : memref<?x5xf32>, memref<?x5xf32>
  // expected-error@+1 {{lies at slot 2, which may overlap slot 1}}
  %c = exec.alloc(%n) slot 2 : memref<?x5xf32>
  exec.launch @k(%b, %c) : memref<?x5xf32>, memref<?x5xf32>
  exec.launch @k(%c, %o) : memref<?x5xf32>, memref<?x5xf32>
  return
}
func.func private @p() attributes {exec.plan, dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %c0 = arith.constant 0 : index
  %c20 = arith.constant 16 : index
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
// The arena ends where the second begins.
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
  // expected-error@+1 {{lies at slot 1, and the plan function does not show that it ends inside the arena}}
  %b = exec.alloc(%n) slot 1 : memref<?x5xf32>
  exec.launch @k(%a, %b) : memref<?x5xf32>, memref<?x5xf32>
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
  exec.set_arena_bytes %size
  return
}

// -----
// The middle one begins n bytes before the first has ended: -n is no size.
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
  // expected-error@+2 {{lies at slot 1, and the plan function does not show that it ends inside the arena}}
  // expected-error@+1 {{'exec.alloc' lies at slot 1, which may overlap slot 0 of a buffer that is in use at the same time}}
  %b = exec.alloc(%n) slot 1 : memref<?x5xf32>
  exec.launch @k(%a, %b) : memref<?x5xf32>, memref<?x5xf32>
  // expected-error@+1 {{lies at slot 2, which may overlap slot 1}}
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
  %less = dist.extent #dist.extents<n * -1>
  %before = arith.addi %size, %less : index
  exec.set_offset %before slot 1
  %end = arith.addi %size, %size : index
  exec.set_offset %c0 slot 2
  exec.set_arena_bytes %end
  return
}
