// RUN: shard-opt %s --exec-plan-arena --canonicalize --cse | FileCheck %s
//
// Sizes that are known when the program runs: offsets become slots, and a plan function computes them from the symbols.

func.func private @k(%x: memref<?x5xf32>, %y: memref<?x5xf32>) attributes {exec.kernel} {
  return
}

// CHECK-LABEL: func.func @batch(
// CHECK-SAME: exec.plan = @batch_plan, exec.slots = 3 : i64
// CHECK-NOT: exec.arena_bytes
// CHECK: exec.alloc(%{{.*}}) slot 0 : memref<?x5xf32>
// CHECK: exec.alloc(%{{.*}}) slot 1 : memref<?x5xf32>
// CHECK: exec.alloc(%{{.*}}) slot 2 : memref<?x5xf32>

// A buffer has batch x 5 floats of 4 bytes, rounded up to 64 bytes. The first and the second live together, and the second
// and the third; the first and the third do not, and both may lie at 0. The second then begins where both others end.
// CHECK-LABEL: func.func private @batch_plan()
// CHECK-SAME: dist.symbols = [#dist.symbol<batch in [1, 64]>], exec.plan
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[ROW:.*]] = arith.constant 20 : index
// CHECK: %[[N:.*]] = dist.extent #dist.extents<batch>
// CHECK: %[[BYTES:.*]] = arith.muli %[[N]], %[[ROW]]
// CHECK: %[[BLOCKS:.*]] = arith.ceildivui %[[BYTES]], %[[C64]]
// CHECK: %[[SIZE:.*]] = arith.muli %[[BLOCKS]], %[[C64]]
// CHECK: exec.set_offset %[[C0]] slot 0
// CHECK: %[[ABOVE:.*]] = arith.maxui %[[SIZE]], %[[SIZE]]
// CHECK: exec.set_offset %[[C0]] slot 2
// CHECK: %[[END:.*]] = arith.addi %[[ABOVE]], %[[SIZE]]
// CHECK: %[[ALL:.*]] = arith.maxui %{{.*}}, %[[END]]
// CHECK: exec.set_offset %[[ABOVE]] slot 1
// CHECK: exec.set_arena_bytes %[[ALL]]
func.func @batch(%x: memref<?x5xf32>) attributes {exec.entry, dist.symbols = [#dist.symbol<batch in [1, 64]>]} {
  %n = dist.extent #dist.extents<batch>
  %a = exec.alloc(%n) : memref<?x5xf32>
  exec.launch @k(%x, %a) : memref<?x5xf32>, memref<?x5xf32>
  %b = exec.alloc(%n) : memref<?x5xf32>
  exec.launch @k(%a, %b) : memref<?x5xf32>, memref<?x5xf32>
  %c = exec.alloc(%n) : memref<?x5xf32>
  exec.launch @k(%b, %c) : memref<?x5xf32>, memref<?x5xf32>
  exec.launch @k(%c, %x) : memref<?x5xf32>, memref<?x5xf32>
  return
}
