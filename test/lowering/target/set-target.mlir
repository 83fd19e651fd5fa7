// RUN: shard-opt %s --exec-set-target=target=cpu:x86-64-v3 | FileCheck %s --check-prefixes=CHECK,V3
// RUN: shard-opt %s --exec-set-target=target=cpu:x86-64-v2 | FileCheck %s --check-prefixes=CHECK,V2
// RUN: shard-opt %s --exec-set-target=target=cpu:x86-64-v4 | FileCheck %s --check-prefixes=CHECK,V4
// RUN: shard-opt %s --exec-set-target=target=cpu:x86-64-v3 --exec-set-target=target=cpu:x86-64-v2 | FileCheck %s --check-prefixes=CHECK,V2
// RUN: not shard-opt %s --exec-set-target=target=gpu 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not shard-opt %s --exec-set-target=target=cpu: 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not shard-opt %s --exec-set-target=target=cpu:znver33 2>&1 | FileCheck %s --check-prefix=CHIP
//
// The target becomes part of the module: chip, features, and the limits that follow from them.

// CHECK: module attributes {dlti.target_system_spec = #dlti.target_system_spec<"cpu" = #dlti.target_device_spec<
// V2-SAME: "chip" = "x86-64-v2"
// V3-SAME: "chip" = "x86-64-v3"
// V4-SAME: "chip" = "x86-64-v4"
// V2-SAME: "features" = "{{[^"]*}}+sse4.2
// V3-SAME: "features" = "{{[^"]*}}+avx2
// V4-SAME: "features" = "{{[^"]*}}+avx512vl
// CHECK-SAME: "triple" = "
// V2-SAME: "vector_bytes" = 16 : i64, "vector_registers" = 16 : i64
// V3-SAME: "vector_bytes" = 32 : i64, "vector_registers" = 16 : i64
// V4-SAME: "vector_bytes" = 64 : i64, "vector_registers" = 32 : i64
// CHECK-SAME: "buffer_alignment" = 64 : i64
// CHECK-SAME: "copy_bytes_per_ns" = 6.000000e+00 : f64
// CHECK-NOT: dlti.

// UNKNOWN: error: unknown target 'gpu'; use 'cpu', 'cpu:NAME', 'cuda', 'cuda:sm_80,sm_90,...' or 'cuda:emulated'
// EMPTY: error: unknown target 'cpu:'; use 'cpu', 'cpu:NAME', 'cuda', 'cuda:sm_80,sm_90,...' or 'cuda:emulated'
// CHIP: error: unknown processor 'znver33'; the nearest names are znver3

module {}
