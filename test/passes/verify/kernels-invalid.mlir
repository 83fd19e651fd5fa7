// RUN: shard-opt %s --exec-verify-kernels --split-input-file --verify-diagnostics
//
// Kernels that break their promise about memory, in each of the forms that a kernel has. Before it has memory, a kernel
// returns its results and promises nothing.
func.func private @returns(%x: tensor<5xi64>) -> tensor<5xi64> attributes {exec.kernel} {
  return %x : tensor<5xi64>
}

// -----
// Tensors with destinations: of two results one is nowhere.
// expected-error@below {{kernel 'one_store' never writes argument 2: every destination is written exactly once}}
func.func private @one_store(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>)
    attributes {exec.kernel, exec.writes = array<i64: 1, 2>} {
  %0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// -----
func.func private @two_stores(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  // expected-error@+1 {{kernel 'two_stores' writes argument 1 twice: every destination is written exactly once}}
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// -----
func.func private @read_first(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  // expected-error@+1 {{kernel 'read_first' reads argument 1, a destination, before it is written}}
  %0 = bufferization.to_tensor %y restrict : memref<4xf32> to tensor<4xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// -----
func.func private @no_destination(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64>} {
  %0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  // expected-error@+1 {{kernel 'no_destination' writes argument 1, which is no destination}}
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// -----
// expected-error@below {{kernel 'silent' does not say with 'exec.writes' which arguments it writes}}
func.func private @silent(%x: memref<4xf32>) attributes {exec.kernel} {
  return
}

// -----
// expected-error@below {{kernel 'numbers' has no memory as argument 0, which 'exec.writes' names}}
// expected-error@below {{kernel 'numbers' has no memory as argument 1, which 'exec.writes' names}}
func.func private @numbers(%i: index) attributes {exec.kernel, exec.writes = array<i64: 0, 1>} {
  return
}

// -----
func.func private @opaque(%x: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64>} {
  // expected-error@+1 {{kernel 'opaque' hands memory to 'func.call', which does not say what it does with it}}
  func.call @f(%x) : (memref<4xf32>) -> ()
  return
}
func.func private @f(memref<4xf32>)

// -----
// Linalg on memory: a sum whose destination nobody has set to zero.
#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
func.func private @sum(%x: memref<4xf32>, %y: memref<f32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  // expected-error@+1 {{kernel 'sum' reads argument 1, a destination, before it is written}}
  linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]}
      ins(%x : memref<4xf32>) outs(%y : memref<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  }
  return
}

// -----
// Linalg on memory, a tile at a time: both results in the place of the second.
#id = affine_map<(d0) -> (d0)>
// expected-error@below {{kernel 'tiles' never writes argument 1: every destination is written exactly once}}
func.func private @tiles(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>)
    attributes {exec.kernel, exec.writes = array<i64: 1, 2>} {
  %count = arith.constant 4 : index
  exec.parallel %i to %count grain 1 {
    %in = memref.subview %x[%i] [1] [1] : memref<4xf32> to memref<1xf32, strided<[1], offset: ?>>
    %out = memref.subview %z[%i] [1] [1] : memref<4xf32> to memref<1xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%in : memref<1xf32, strided<[1], offset: ?>>) outs(%out : memref<1xf32, strided<[1], offset: ?>>) {
    ^bb0(%a: f32, %b: f32):
      %0 = math.exp %a : f32
      linalg.yield %0 : f32
    }
  }
  return
}

// -----
// Iterations run on several threads: neither a destination nor a buffer outside the loop is theirs together.
func.func private @race(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %t = memref.alloc() : memref<1xf32>
  exec.parallel %i to %c4 grain 1 {
    %0 = memref.load %x[%i] : memref<4xf32>
    // expected-note@+1 {{also here}}
    memref.store %0, %t[%c0] : memref<1xf32>
    %1 = memref.load %t[%c0] : memref<1xf32>
    // expected-error@+1 {{kernel 'race' writes one place in all iterations of a parallel loop}}
    memref.store %1, %y[%c0] : memref<4xf32>
  }
  return
}

// -----
// Loops: the second store is not computed from what the first has left.
func.func private @loops(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %0 = memref.load %x[%i] : memref<4xf32>
    memref.store %0, %y[%i] : memref<4xf32>
    %1 = arith.negf %0 : f32
    // expected-error@+1 {{kernel 'loops' writes argument 1 twice: every destination is written exactly once}}
    memref.store %1, %y[%i] : memref<4xf32>
  }
  return
}

// -----
func.func private @buffer(%x: memref<4xf32>, %y: memref<f32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %t = memref.alloc() : memref<4xf32>
  // expected-error@+1 {{kernel 'buffer' reads a buffer of its own before it is written}}
  %0 = memref.load %t[%c0] : memref<4xf32>
  memref.store %0, %y[] : memref<f32>
  memref.store %0, %t[%c0] : memref<4xf32>
  return
}

// -----
// Bodies of loops that are functions of their own, which get pointers: what the kernel promises of %z is not done there.
// expected-error@below {{kernel 'outlined' never writes argument 4: every destination is written exactly once}}
func.func private @outlined(%frame: !llvm.ptr, %location: !llvm.ptr, %x: memref<f32>, %y: memref<f32>, %z: memref<f32>)
    attributes {exec.kernel, exec.outlined, exec.writes = array<i64: 3, 4>} {
  %n = arith.constant 4 : index
  exec.parallel_call @outlined_body(%x, %y, %z) to %n grain 1 : memref<f32>, memref<f32>, memref<f32>
  return
}
func.func private @outlined_body(%x: memref<f32>, %y: memref<f32>, %z: memref<f32>, %begin: index, %end: index) {
  %in = memref.reinterpret_cast %x to offset: [0], sizes: [4], strides: [1] : memref<f32> to memref<4xf32>
  %out = memref.reinterpret_cast %y to offset: [0], sizes: [4], strides: [1] : memref<f32> to memref<4xf32>
  %0 = memref.load %in[%begin] : memref<4xf32>
  memref.store %0, %out[%begin] : memref<4xf32>
  return
}

// -----
// LLVM: the task takes its pointers from a struct.
// expected-error@below {{kernel 'lowered' never writes argument 3: every destination is written exactly once}}
llvm.func @lowered(%frame: !llvm.ptr, %location: !llvm.ptr, %x: !llvm.ptr, %y: !llvm.ptr)
    attributes {exec.kernel, exec.outlined, exec.writes = array<i64: 3>} {
  %one = llvm.mlir.constant(1 : i64) : i64
  %packed = llvm.alloca %one x !llvm.struct<(ptr, ptr)> : (i64) -> !llvm.ptr
  %0 = llvm.getelementptr %packed[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, ptr)>
  llvm.store %x, %0 : !llvm.ptr, !llvm.ptr
  %1 = llvm.getelementptr %packed[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, ptr)>
  llvm.store %y, %1 : !llvm.ptr, !llvm.ptr
  %task = llvm.mlir.addressof @task : !llvm.ptr
  %services = llvm.load %frame : !llvm.ptr -> !llvm.ptr
  llvm.call %services(%task, %packed) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return
}
llvm.func @task(%context: !llvm.ptr) {
  %0 = llvm.getelementptr %context[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, ptr)>
  %x = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  %1 = llvm.getelementptr %context[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, ptr)>
  %y = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  llvm.call @body(%x, %y) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return
}
llvm.func @body(%x: !llvm.ptr, %y: !llvm.ptr) {
  %0 = llvm.load %x : !llvm.ptr -> f32
  // expected-error@+1 {{kernel 'lowered' writes argument 2, which is no destination}}
  llvm.store %0, %x : f32, !llvm.ptr
  llvm.return
}
