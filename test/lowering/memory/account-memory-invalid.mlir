// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --verify-diagnostics --exec-account-memory

// expected-error@+2 {{'func.func' op is an entry, but argument 1 is no memory: 'index'}}
// expected-error@+1 {{'func.func' op is an entry, but does not say with 'exec.argument' what argument 2 is}}
func.func @f(%x: memref<4xf32> {exec.argument = #exec.argument<input>}, %n: index, %y: memref<4xf32>)
    attributes {exec.entry, exec.arena_bytes = 0 : i64} {
  return
}
