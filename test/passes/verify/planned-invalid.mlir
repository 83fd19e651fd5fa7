// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=planned
//
// Ops and functions that the stage does not have.

// expected-error@+1 {{'func.func' is neither an entry, a kernel nor a plan function}}
func.func @f() {
  return
}

// -----
// expected-error@+1 {{'func.func' has no body}}
func.func private @f() attributes {exec.kernel}

// -----
// expected-error@+1 {{'func.func' has several blocks: a kernel is straight-line code}}
func.func @f() attributes {exec.kernel} {
  // expected-error@+1 {{'cf.br' does not belong in a kernel of the stage "planned"}}
  cf.br ^next
^next:
  return
}

// -----
// expected-error@+1 {{'func.func' has an argument that is no memory: argument 0}}
func.func @f(%x: index) attributes {exec.entry} {
  return
}

// -----
// expected-error@+1 {{'func.func' does not say what argument 0 is: it has no 'exec.argument'}}
func.func @f(%x: memref<4xf32>) attributes {exec.entry} {
  return
}

// -----
// expected-error@+1 {{'func.func' returns values: the results of an entry are arguments}}
func.func @f(%x: memref<4xf32> {exec.argument = #exec.argument<input>}) -> memref<4xf32> attributes {exec.entry} {
  return %x : memref<4xf32>
}

// -----
// expected-error@+1 {{'llvm.func' is no op of the stage "planned"}}
llvm.func @f()

// -----
// Tensors are for kernels, memory on its own account and launches for entries.
func.func @f(%x: memref<4xf32> {exec.argument = #exec.argument<input>}) attributes {exec.entry} {
  // expected-error@+2 {{'bufferization.to_tensor' makes a tensor in an entry: its values are memory, numbers and tokens}}
  // expected-error@+1 {{'bufferization.to_tensor' does not belong in an entry of the stage "planned"}}
  %0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  // expected-error@+2 {{'aten.relu' makes a tensor in an entry}}
  // expected-error@+1 {{'aten.relu' does not belong in an entry of the stage "planned"}}
  %1 = aten.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'arith.constant' makes a tensor in an entry}}
  %c = arith.constant dense<1.0> : tensor<4xf32>
  // expected-error@+1 {{'memref.alloc' does not belong in an entry of the stage "planned"}}
  %2 = memref.alloc() : memref<4xf32>
  return
}
func.func private @k(%x: memref<4xf32>, %n: index) attributes {exec.kernel, exec.writes = array<i64: 0>} {
  // expected-error@+1 {{'exec.launch' does not belong in a kernel of the stage "planned"}}
  exec.launch @k(%x, %n) : memref<4xf32>, index
  // expected-error@+1 {{'exec.alloc' does not belong in a kernel of the stage "planned"}}
  %0 = exec.alloc at 0 : memref<4xf32>
  // expected-error@+1 {{'scf.for' does not belong in a kernel of the stage "planned"}}
  scf.for %i = %n to %n step %n {
    // expected-error@-1 {{'scf.yield' does not belong in a kernel of the stage "planned"}}
  }
  return
}
func.func private @p() attributes {exec.plan} {
  // expected-error@+1 {{'exec.alloc' does not belong in a plan function of the stage "planned"}}
  %0 = exec.alloc at 0 : memref<4xf32>
  return
}

// -----
// A launch writes what its kernel says; without that it counts as writing everything.
// expected-error@+1 {{'func.func' does not say with 'exec.writes' which of its arguments the kernel writes}}
func.func private @k(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}
func.func @f(%x: memref<4xf32> {exec.argument = #exec.argument<input>}, %o: memref<4xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.arena_bytes = 0 : i64} {
  // expected-error@+1 {{'exec.launch' writes operand 1, which shares memory with operand 0}}
  exec.launch @k(%o, %o) : memref<4xf32>, memref<4xf32>
  return
}

// -----
// A new value of a parameter is in its memory, or the runtime would let the program read what it has overwritten.
// expected-error@+1 {{'func.func' has argument 1 as the new value of a parameter, but not in its memory: run exec-update-in-place}}
func.func @f(%w: memref<4xf32> {exec.argument = #exec.argument<parameter>},
             %o: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64}) attributes {exec.entry, exec.arena_bytes = 0 : i64} {
  return
}
