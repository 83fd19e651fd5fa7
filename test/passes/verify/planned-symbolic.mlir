// RUN: shard-opt %s --dist-verify-stage=planned -o /dev/null
//
// The last one lies above the first because three of equal size are below it, of a size that is known not to be negative
// only because it is one: two of the three must not be needed for that.
func.func private @k(%x: memref<?x5xf32>, %y: memref<?x5xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<?x5xf32> to tensor<?x5xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<?x5xf32>, memref<?x5xf32>) -> ()
  return
}
func.func private @add(%x: memref<?x5xf32>, %y: memref<?x5xf32>, %z: memref<?x5xf32>) attributes {exec.kernel, exec.writes = array<i64: 2>} {
  %0 = bufferization.to_tensor %x restrict : memref<?x5xf32> to tensor<?x5xf32>
  bufferization.materialize_in_destination %0 in restrict writable %z : (tensor<?x5xf32>, memref<?x5xf32>) -> ()
  return
}
func.func @f(%x: memref<?x5xf32> {exec.argument = #exec.argument<input>}, %o: memref<?x5xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry, exec.plan = @p, exec.slots = 4 : i64, dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %all = dist.extent #dist.extents<n>
  %c3 = arith.constant 3 : index
  %some = arith.minsi %all, %c3 : index
  %n = arith.subi %all, %some : index
  %a = exec.alloc(%n) slot 0 : memref<?x5xf32>
  %in = memref.reinterpret_cast %x to offset: [0], sizes: [%n, 5], strides: [5, 1] : memref<?x5xf32> to memref<?x5xf32>
  exec.launch @k(%in, %a) : memref<?x5xf32>, memref<?x5xf32>
  %b = exec.alloc(%n) slot 1 : memref<?x5xf32>
  exec.launch @k(%a, %b) : memref<?x5xf32>, memref<?x5xf32>
  %c = exec.alloc(%n) slot 2 : memref<?x5xf32>
  exec.launch @add(%a, %b, %c) : memref<?x5xf32>, memref<?x5xf32>, memref<?x5xf32>
  %out = memref.reinterpret_cast %o to offset: [0], sizes: [%n, 5], strides: [5, 1] : memref<?x5xf32> to memref<?x5xf32>
  exec.launch @k(%c, %out) : memref<?x5xf32>, memref<?x5xf32>
  %d = exec.alloc(%n) slot 3 : memref<?x5xf32>
  exec.launch @k(%a, %d) : memref<?x5xf32>, memref<?x5xf32>
  exec.launch @k(%d, %o) : memref<?x5xf32>, memref<?x5xf32>
  return
}
func.func private @p() attributes {exec.plan, dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c20 = arith.constant 20 : index
  %c64 = arith.constant 64 : index
  %all = dist.extent #dist.extents<n>
  %some = arith.minsi %all, %c3 : index
  %n = arith.subi %all, %some : index
  %bytes = arith.muli %c20, %n : index
  %blocks = arith.ceildivui %bytes, %c64 : index
  %size = arith.muli %blocks, %c64 : index
  exec.set_offset %c0 slot 0
  exec.set_offset %size slot 1
  %two = arith.addi %size, %size : index
  exec.set_offset %two slot 2
  %three = arith.addi %two, %size : index
  exec.set_offset %three slot 3
  %end = arith.addi %three, %size : index
  exec.set_arena_bytes %end
  return
}
