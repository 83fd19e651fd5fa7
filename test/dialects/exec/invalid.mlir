// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  // expected-error@+1 {{makes dense row-major buffers only, not 'memref<4x8xf32, strided<[1, 4]>>'}}
  %0 = exec.alloc : memref<4x8xf32, strided<[1, 4]>>
  return
}

// -----
func.func @f(%n: index) {
  // expected-error@+1 {{has 1 sizes for a type with 2 dynamic dims}}
  %0 = exec.alloc(%n) : memref<?x?xf32>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{has both an offset and a slot}}
  %0 = exec.alloc at 64 slot 0 : memref<4xf32>
  return
}

// -----
func.func @f(%x: memref<4xf32>) {
  // expected-error@+1 {{launches 'g', which is no kernel}}
  exec.launch @g(%x) : memref<4xf32>
  return
}
func.func private @g(%x: memref<4xf32>) {
  return
}

// -----
func.func @f(%x: memref<4xf32>) {
  // expected-error@+1 {{passes other types than 'g' takes}}
  exec.launch @g(%x) : memref<4xf32>
  return
}
func.func private @g(%x: memref<5xf32>) attributes {exec.kernel} {
  return
}

// -----
// An offset is part of the pointer; strides are part of the type.
func.func @f(%x: memref<4x4xf32, strided<[1, 4], offset: 3>>) {
  exec.launch @strided(%x) : memref<4x4xf32, strided<[1, 4], offset: 3>>
  // expected-error@+1 {{passes other types than 'dense' takes}}
  exec.launch @dense(%x) : memref<4x4xf32, strided<[1, 4], offset: 3>>
  return
}
func.func private @strided(%x: memref<4x4xf32, strided<[1, 4]>>) attributes {exec.kernel} {
  return
}
func.func private @dense(%x: memref<4x4xf32>) attributes {exec.kernel} {
  return
}

// -----
func.func @f(%n: index) {
  // expected-error@+1 {{calls 'g', which is no function}}
  exec.parallel_call @g(%n) to %n grain 1 : index
  return
}

// -----
func.func @f(%n: index, %c: i1) {
  // expected-error@+1 {{passes other types than 'g' takes}}
  exec.parallel_call @g(%c) to %n grain 1 : i1
  return
}
func.func private @g(%c: i1) {
  return
}

// -----
func.func @f(%n: index) {
  // expected-error@+1 {{attribute 'grain' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  exec.parallel %i to %n grain 0 {
  }
  return
}

// -----
func.func @f(%n: index) {
  // expected-error@+1 {{needs a body with one argument of type index}}
  "exec.parallel"(%n) <{grain = 1 : i64}> ({
  ^bb0(%i: i64):
  }) : (index) -> ()
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{has the negative offset -64}}
  %0 = exec.alloc at -64 : memref<4xf32>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{has the offset 6, which is no multiple of the 4 bytes of an element}}
  %0 = exec.alloc at 6 : memref<4xf32>
  return
}

// -----
func.func @f(%n: index) {
  // expected-error@+1 {{has the negative slot -1}}
  %0 = exec.alloc(%n) slot -1 : memref<?xf32>
  return
}

// -----
func.func @f(%x: memref<?xi64>) {
  // expected-error@+1 {{reads a list of known length, not 'memref<?xi64>'}}
  %0 = exec.read_sizes %x at_most 8 : memref<?xi64>
  return
}

// -----
func.func @f(%x: memref<2xi64>) {
  // expected-error@+1 {{reads 1 numbers of 'memref<2xi64>'}}
  %0 = "exec.read_sizes"(%x) <{at_most = 8 : i64}> : (memref<2xi64>) -> index
  return
}
