// RUN: shard-opt %s --exec-verify-buffers -o /dev/null
// RUN: shard-opt %s --exec-verify-buffers --pass-statistics -o /dev/null 2>&1 | FileCheck %s
// CHECK: exec-verify-buffers
// CHECK: 4 entries-checked

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func private @left(%x: memref<3x4xf32>, %y: memref<3x4xf32, strided<[9, 1]>>)
    attributes {exec.kernel, exec.writes = array<i64: 1>} {
  return
}
func.func private @all(%x: memref<3x9xf32>, %y: memref<3x9xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  return
}

// Parts of a concatenation, the last one twice: together they are all. Parts lie between each other, and have nothing in
// common. What a collective in flight writes is read after its wait, or by the caller.
func.func @parts(%x: memref<3x4xf32> {exec.argument = #exec.argument<input>}, %y: memref<3x9xf32> {exec.argument = #exec.argument<output>},
                 %z: memref<3x4xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
  %0 = exec.alloc : memref<3x9xf32>
  %a = memref.reinterpret_cast %0 to offset: [0], sizes: [3, 4], strides: [9, 1]
      : memref<3x9xf32> to memref<3x4xf32, strided<[9, 1]>>
  %b = memref.reinterpret_cast %0 to offset: [4], sizes: [3, 4], strides: [9, 1]
      : memref<3x9xf32> to memref<3x4xf32, strided<[9, 1], offset: 4>>
  %c = memref.reinterpret_cast %0 to offset: [5], sizes: [3, 4], strides: [9, 1]
      : memref<3x9xf32> to memref<3x4xf32, strided<[9, 1], offset: 5>>
  %t = exec.start all_reduce sum over #tp (%x : memref<3x4xf32>) -> (%z : memref<3x4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 3, 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  exec.launch @left(%x, %a) : memref<3x4xf32>, memref<3x4xf32, strided<[9, 1]>>
  exec.launch @left(%x, %b) : memref<3x4xf32>, memref<3x4xf32, strided<[9, 1], offset: 4>>
  exec.launch @left(%x, %c) : memref<3x4xf32>, memref<3x4xf32, strided<[9, 1], offset: 5>>
  exec.launch @all(%0, %y) : memref<3x9xf32>, memref<3x9xf32>
  return
}

// A rank with nothing of a dim has nothing to write.
func.func @empty(%y: memref<0x9xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
  return
}

// Symbolic sizes: both halves of the vector, with typical values of the symbol.
func.func private @copy(%x: memref<?xf32>, %y: memref<?xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  return
}
func.func @symbolic(%x: memref<?xf32> {exec.argument = #exec.argument<input>, exec.extents = [#dist.extents<n>]},
                    %y: memref<?xf32> {exec.argument = #exec.argument<output>, exec.extents = [#dist.extents<2*n>]})
    attributes {exec.entry} {
  %n = dist.extent #dist.extents<n>
  %0 = memref.reinterpret_cast %y to offset: [0], sizes: [%n], strides: [1]
      : memref<?xf32> to memref<?xf32>
  %1 = memref.reinterpret_cast %y to offset: [%n], sizes: [%n], strides: [1]
      : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
  exec.launch @copy(%x, %0) : memref<?xf32>, memref<?xf32>
  exec.launch @copy(%x, %1) : memref<?xf32>, memref<?xf32, strided<[1], offset: ?>>
  return
}

func.func private @some(%x: memref<?x2xf32>, %y: memref<?x2xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  return
}

// A size that a comparison decides is the same size: what a bound counts from the end where it is negative.
func.func @bounds(%x: memref<?x2xf32> {exec.argument = #exec.argument<input>, exec.extents = [#dist.extents<n>, #dist.extents<2>]},
                  %y: memref<?x2xf32> {exec.argument = #exec.argument<output>, exec.extents = [#dist.extents<n>, #dist.extents<2>]})
    attributes {exec.entry, dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %c0 = arith.constant 0 : index
  %n = dist.extent #dist.extents<n>
  %negative = arith.cmpi slt, %n, %c0 : index
  %wrapped = arith.addi %n, %n : index
  %bound = arith.select %negative, %wrapped, %n : index
  %0 = exec.alloc(%n) : memref<?x2xf32>
  %a = memref.reinterpret_cast %0 to offset: [0], sizes: [%bound, 2], strides: [2, 1] : memref<?x2xf32> to memref<?x2xf32, strided<[2, 1]>>
  exec.launch @some(%x, %a) : memref<?x2xf32>, memref<?x2xf32, strided<[2, 1]>>
  exec.launch @some(%0, %y) : memref<?x2xf32>, memref<?x2xf32>
  return
}
