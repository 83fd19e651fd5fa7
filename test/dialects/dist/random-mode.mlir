// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: module attributes {dist.random = "per-rank"}
module attributes {dist.random = "per-rank"} {}

// -----

// expected-error@+1 {{'dist.random' must be a module's mode of random numbers, "default", "dtensor" or "per-rank", got "mine"}}
module attributes {dist.random = "mine"} {}

// -----

// expected-error@+1 {{'dist.random' must be a module's mode of random numbers}}
func.func private @f() attributes {dist.random = "dtensor"}
