// RUN: shard-opt %s --exec-verify-buffers --split-input-file --verify-diagnostics

func.func private @k(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  return
}
func.func @unwritten(%y: memref<4xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
  %0 = exec.alloc : memref<4xf32>
  // expected-error@+1 {{'exec.launch' reads element 0 of a buffer of type memref<4xf32>, which nothing has written}}
  exec.launch @k(%0, %y) : memref<4xf32>, memref<4xf32>
  return
}

// -----
// Of a concatenation the last column is missing: the first of it is element 8.
func.func private @k(%x: memref<3x8xf32>, %y: memref<3x8xf32, strided<[9, 1]>>)
    attributes {exec.kernel, exec.writes = array<i64: 1>} {
  return
}
func.func private @all(%x: memref<3x9xf32>, %y: memref<3x9xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  return
}
func.func @column(%x: memref<3x8xf32> {exec.argument = #exec.argument<input>}, %y: memref<3x9xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry} {
  %0 = exec.alloc : memref<3x9xf32>
  %1 = memref.reinterpret_cast %0 to offset: [0], sizes: [3, 8], strides: [9, 1]
      : memref<3x9xf32> to memref<3x8xf32, strided<[9, 1]>>
  exec.launch @k(%x, %1) : memref<3x8xf32>, memref<3x8xf32, strided<[9, 1]>>
  // expected-error@+1 {{'exec.launch' reads element 8 of a buffer of type memref<3x9xf32>, which nothing has written}}
  exec.launch @all(%0, %y) : memref<3x9xf32>, memref<3x9xf32>
  return
}

// -----
// What a collective in flight brings is there after the wait.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func private @k(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  return
}
func.func @in_flight(%x: memref<4xf32> {exec.argument = #exec.argument<input>}, %y: memref<4xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry} {
  %0 = exec.alloc : memref<4xf32>
  %t = exec.start all_reduce sum over #tp (%x : memref<4xf32>) -> (%0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  // expected-error@+1 {{'exec.launch' reads element 0 of a buffer of type memref<4xf32>, which nothing has written}}
  exec.launch @k(%0, %y) : memref<4xf32>, memref<4xf32>
  exec.wait %t
  return
}

// -----
func.func private @k(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  return
}
func.func @output(%x: memref<4xf32> {exec.argument = #exec.argument<input>}, %y: memref<4xf32> {exec.argument = #exec.argument<output>},
                  %z: memref<9xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
  exec.launch @k(%x, %y) : memref<4xf32>, memref<4xf32>
  %0 = memref.reinterpret_cast %z to offset: [0], sizes: [4], strides: [1] : memref<9xf32> to memref<4xf32>
  exec.launch @k(%x, %0) : memref<4xf32>, memref<4xf32>
  // expected-error@+1 {{the entry 'output' returns without having written element 4 of output 1}}
  return
}

// -----
func.func private @k(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  return
}
func.func @input(%x: memref<4xf32> {exec.argument = #exec.argument<input>}, %y: memref<4xf32> {exec.argument = #exec.argument<parameter>})
    attributes {exec.entry} {
  // expected-error@+1 {{'exec.launch' writes an input, a parameter or a constant}}
  exec.launch @k(%x, %y) : memref<4xf32>, memref<4xf32>
  return
}

// -----
// The last of what is read is the first of what is written.
func.func private @k(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  return
}
func.func @overlap(%x: memref<4xf32> {exec.argument = #exec.argument<input>}, %y: memref<7xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry} {
  %0 = memref.reinterpret_cast %y to offset: [0], sizes: [4], strides: [1] : memref<7xf32> to memref<4xf32>
  %1 = memref.reinterpret_cast %y to offset: [3], sizes: [4], strides: [1]
      : memref<7xf32> to memref<4xf32, strided<[1], offset: 3>>
  exec.launch @k(%x, %0) : memref<4xf32>, memref<4xf32>
  // expected-error@+1 {{'exec.launch' writes memory that it uses through another operand, too}}
  exec.launch @k(%0, %1) : memref<4xf32>, memref<4xf32, strided<[1], offset: 3>>
  return
}

// -----
func.func @product(%x: memref<4x4xf32> {exec.argument = #exec.argument<input>}, %y: memref<4x4xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry} {
  // expected-error@+2 {{'exec.gemm' writes memory that it uses through another operand, too}}
  // expected-error@+1 {{'exec.gemm' reads element 0 of a buffer of type memref<4x4xf32>, which nothing has written}}
  exec.gemm %x * %y -> %y : memref<4x4xf32> * memref<4x4xf32> -> memref<4x4xf32>
  return
}

// -----
// With beta there is something before.
func.func @accumulates(%x: memref<4x4xf32> {exec.argument = #exec.argument<input>}, %y: memref<4x4xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry} {
  // expected-error@+1 {{'exec.gemm' reads element 0 of a buffer of type memref<4x4xf32>, which nothing has written}}
  exec.gemm %x * %x -> %y {beta = 1.0 : f64} : memref<4x4xf32> * memref<4x4xf32> -> memref<4x4xf32>
  return
}

// -----
func.func private @k(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel} {
  return
}
// expected-error@below {{the entry 'silent' does not say with 'exec.argument' what argument 1 is}}
func.func @silent(%x: memref<4xf32> {exec.argument = #exec.argument<input>}, %y: memref<4xf32>) attributes {exec.entry} {
  // expected-error@+1 {{'exec.launch' launches 'k', which does not say with 'exec.writes' which arguments it writes}}
  exec.launch @k(%x, %y) : memref<4xf32>, memref<4xf32>
  return
}

// -----
func.func private @foreign(%x: memref<4xf32>, %y: memref<4xf32>)
func.func @unknown(%x: memref<4xf32> {exec.argument = #exec.argument<input>}, %y: memref<4xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry} {
  // expected-error@+1 {{'func.call' is no op that this verifier knows on memory}}
  call @foreign(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  // expected-error@+1 {{the entry 'unknown' returns without having written element 0 of output 0}}
  return
}

// -----
// expected-error@below {{the entry 'tensors' has an argument that is no memory: argument 1}}
func.func @tensors(%x: memref<4xf32> {exec.argument = #exec.argument<input>}, %y: tensor<4xf32> {exec.argument = #exec.argument<input>})
    attributes {exec.entry} {
  return
}
