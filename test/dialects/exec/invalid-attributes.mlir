// RUN: shard-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error@+1 {{unknown attribute "exec.enrty"; known are exec.entry, exec.kernel, exec.overwrites, exec.writes, exec.in_place, exec.outlined, exec.arena_bytes, exec.slots, exec.plan, exec.memory, exec.messages, exec.shared_bytes, exec.name, exec.groups, exec.collectives, exec.libraries, exec.ops, exec.program, exec.uses_blas}}
func.func @f() attributes {exec.enrty} {
  return
}

// -----
// expected-error@+1 {{'exec.entry' must be a unit, got true}}
func.func @f() attributes {exec.entry = true} {
  return
}

// -----
// expected-error@+1 {{is both an entry and a kernel}}
func.func @f() attributes {exec.entry, exec.kernel} {
  return
}

// -----
// expected-error@+1 {{is an entry without a body}}
func.func private @f() attributes {exec.entry}

// -----
// expected-error@+1 {{is an entry with several blocks, but entries are straight-line code}}
func.func @f() attributes {exec.entry} {
  cf.br ^next
^next:
  return
}

// -----
// expected-error@+1 {{'exec.arena_bytes' must be a 64-bit integer of at least 0, got -1 : i64}}
func.func @f() attributes {exec.arena_bytes = -1 : i64} {
  return
}

// -----
// expected-error@+1 {{'exec.slots' must be a 64-bit integer of at least 0, got 1 : i32}}
func.func @f() attributes {exec.slots = 1 : i32} {
  return
}

// -----
// expected-error@+1 {{'exec.plan' must be a unit, or on an entry the name of its plan function, got unit}}
func.func @f() attributes {exec.entry, exec.plan} {
  return
}

// -----
// expected-error@+1 {{'exec.plan' must be a unit, or on an entry the name of its plan function, got @g}}
func.func @f() attributes {exec.plan = @g} {
  return
}

// -----
// expected-error@+1 {{'exec.memory' must be a dictionary of 'parameters', 'caller', 'arena' and 'peak', got {arena = 1 : i64}}}
func.func @f() attributes {exec.memory = {arena = 1 : i64}} {
  return
}

// -----
// expected-error@+1 {{'exec.groups' belongs on a module}}
func.func @f() attributes {exec.groups = []} {
  return
}

// -----
// expected-error@+1 {{argument 0: 'exec.argument' must be an #exec.argument, got "input"}}
func.func @f(%x: memref<4xf32> {exec.argument = "input"}) {
  return
}

// -----
// expected-error@+1 {{argument 0: 'exec.index' must be a 64-bit integer of at least 0, got -1 : i64}}
func.func @f(%x: memref<4xf32> {exec.index = -1 : i64}) {
  return
}

// -----
// expected-error@+1 {{argument 0: 'exec.extents' must list one #dist.extents for each dim of 'memref<4xf32>', got []}}
func.func @f(%x: memref<4xf32> {exec.extents = []}) {
  return
}

// -----
// expected-error@+1 {{argument 0: unknown attribute 'exec.kind'; known are exec.argument, exec.index, exec.extents and exec.updates}}
func.func @f(%x: memref<4xf32> {exec.kind = "input"}) {
  return
}

// -----
// expected-error@+1 {{result 0: unknown attribute "exec.kind"}}
func.func private @f() -> (memref<4xf32> {exec.kind = "output"})

// -----
// expected-error@+1 {{'exec.ops' must be a list, got "none"}}
module attributes {exec.ops = "none"} {}

// -----
// expected-error@+1 {{'exec.program' must be a dictionary, got "none"}}
module attributes {exec.program = "none"} {}

// -----
func.func private @g()
func.func @f() {
  // expected-error@+1 {{'exec.name' must be a string, got 1 : i64}}
  call @g() {exec.name = 1 : i64} : () -> ()
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'exec.name' belongs on a call}}
  return {exec.name = "relu"}
}

// -----
// expected-error@+1 {{'sum' is no kind of collective: expected one of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, permute}}
"test.kind"() {kind = #exec.collective<sum>} : () -> ()

// -----
// expected-error@+1 {{'inptu' is no kind of argument: expected one of input, parameter, output}}
func.func @f(%x: memref<4xf32> {exec.argument = #exec.argument<inptu>}) {
  return
}

// -----
// expected-error@+1 {{'exec.writes' must be a list of argument numbers, got "y"}}
func.func @k(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = "y"} {
  return
}

// -----

// expected-error@+1 {{'exec.shared_bytes' must be}}
func.func private @f() attributes {exec.shared_bytes = -1 : i64}

// -----
// expected-error@+1 {{argument 2: parameter 0 gets its new value from argument 1}}
func.func @f(%w: memref<4xf32> {exec.argument = #exec.argument<parameter>}, %a: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64},
             %b: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64}) attributes {exec.entry} {
  return
}
