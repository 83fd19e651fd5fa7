// RUN: shard-opt %s --split-input-file --verify-diagnostics
//
// Arguments, checks and plan functions: kinds that are none, and ops that stand where they have no meaning.

func.func @f() {
  // expected-error@+1 {{'inptu' is no kind of argument: expected one of input, parameter, output}}
  %0 = exec.argument inptu 0 : memref<4xf32>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{expected kind of argument: one of input, parameter, output}}
  %0 = exec.argument "input" 0 : memref<4xf32>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{attribute 'index' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = exec.argument input -1 : memref<4xf32>
  return
}

// -----
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{operand #0 must be variadic of}}
  exec.launch @g(%x) : tensor<4xf32>
  return
}

// -----
func.func @f(%c: i1) attributes {exec.kernel} {
  // expected-error@+1 {{has an empty message}}
  exec.fail_if %c, ""
  return
}

// -----
func.func @f(%c: i1) attributes {exec.entry} {
  // expected-error@+1 {{belongs in a kernel, and stands in an entry}}
  exec.fail_if %c, "index out of range"
  return
}

// -----
func.func @f(%n: index) attributes {exec.entry} {
  // expected-error@+1 {{belongs in a kernel, and stands in an entry}}
  exec.parallel %i to %n grain 1 {
  }
  return
}

// -----
func.func @f(%x: memref<4xi64>, %n: index) attributes {exec.entry} {
  // expected-error@+1 {{belongs in a kernel, and stands in an entry}}
  exec.check_range %x in [%n, %n), "index out of range" : memref<4xi64>
  return
}

// -----
func.func @f(%frame: !llvm.ptr) attributes {exec.entry} {
  // expected-error@+1 {{belongs in a kernel, and stands in an entry}}
  %0 = exec.scratch 0 of %frame : !llvm.ptr -> memref<4xf32>
  return
}

// -----
func.func @f(%frame: !llvm.ptr) attributes {exec.kernel} {
  // expected-error@+1 {{has 0 sizes for a type with 1 dynamic dims}}
  %0 = exec.scratch 0 of %frame : !llvm.ptr -> memref<?xf32>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{is in no kernel}}
  %0 = exec.frame : !llvm.ptr
  return
}

// -----
func.func @f(%x: memref<4xf32>, %n: index) attributes {exec.kernel} {
  // expected-error@+1 {{checks integers, not 'f32'}}
  exec.check_range %x in [%n, %n), "index out of range" : memref<4xf32>
  return
}

// -----
func.func @f(%x: memref<4xi64>, %n: index) attributes {exec.kernel} {
  // expected-error@+1 {{has an empty message}}
  exec.check_range %x in [%n, %n), "" : memref<4xi64>
  return
}

// -----
func.func @f(%n: index) {
  // expected-error@+1 {{is in no plan function}}
  exec.set_offset %n slot 0
  return
}

// -----
func.func @f(%n: index) attributes {exec.plan} {
  // expected-error@+1 {{attribute 'slot' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  exec.set_offset %n slot -1
  return
}

// -----
func.func @f(%n: index) {
  // expected-error@+1 {{is in no plan function}}
  exec.set_arena_bytes %n
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{holds numbers, not elements of 'index'}}
  %0 = exec.alloc : memref<4xindex>
  return
}
