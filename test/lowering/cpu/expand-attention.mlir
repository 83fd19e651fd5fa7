// RUN: shard-opt %s --cpu-expand-attention | FileCheck %s
// RUN: shard-opt %s --cpu-expand-attention --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
// RUN: sed 's/vector_bytes" = 32 : i64, "vector_registers" = 16/vector_bytes" = 64 : i64, "vector_registers" = 32/' %s | shard-opt --cpu-expand-attention | FileCheck %s --check-prefix=WIDE
//
// The pass alone, with no other that would have loaded the dialects of the kernel.
//
// STATS-DAG: 4{{ +}}expanded
// STATS-DAG: 3{{ +}}kernels

// Two layers share a kernel; other scales, and queries that see the keys before them only, have their own.
// CHECK-LABEL: func.func @layers(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<2x4x70x64xf32> {{[^,]*}}, %[[K:[a-z0-9]+]]: memref<2x2x64x64xf32> {{[^,]*}}, %[[V:[a-z0-9]+]]: memref<2x2x64x64xf32> {{[^,]*}}, %[[O:[a-z0-9]+]]:
// CHECK: exec.launch @[[A:attention[a-z_0-9]*]](%[[Q]], %[[K]], %[[V]], %[[O]]) name "first"
// CHECK: exec.launch @[[A]](%[[Q]], %[[K]], %[[V]], %[[O]]) name "second"
// CHECK: exec.launch @[[B:attention[a-z_0-9]*]](
// CHECK: exec.launch @[[C:attention[a-z_0-9]*]](
// CHECK-NOT: exec.attention

// Values are multiplied where they are, keys are packed, in vectors of the target: 8 numbers each, 6 x 2 sums in registers.
// CHECK: func.func private @[[A]](
// CHECK-SAME: %[[VALUES:[a-z0-9]+]]: memref<2x2x64x64xf32>, %{{[a-z0-9]+}}: memref<2x4x70x64xf32>) attributes {exec.kernel, exec.writes = array<i64: 3>}
// CHECK: exec.parallel %{{.*}} to %{{.*}} grain 1 {
// CHECK: vector.shuffle {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-COUNT-12: vector.fma {{.*}} : vector<8xf32>
// CHECK-NOT: vector.fma
// CHECK: scf.yield
// CHECK: vector.load %[[VALUES]][{{.*}} vector<8xf32>
// CHECK: func.func private @[[B]](
// CHECK: func.func private @[[C]](

// WIDE: func.func private @attention
// WIDE: vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>
// WIDE-COUNT-24: vector.fma {{.*}} : vector<16xf32>
// WIDE-NOT: vector.fma
// WIDE: scf.yield
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"cpu" = #dlti.target_device_spec<
    "vector_bytes" = 32 : i64, "vector_registers" = 16 : i64>>} {
  func.func @layers(%q: memref<2x4x70x64xf32> {exec.argument = #exec.argument<input>}, %k: memref<2x2x64x64xf32> {exec.argument = #exec.argument<input>},
                    %v: memref<2x2x64x64xf32> {exec.argument = #exec.argument<input>}, %o: memref<2x4x70x64xf32> {exec.argument = #exec.argument<output>})
      attributes {exec.entry} {
    exec.attention %q, %k, %v -> %o scale 0.125 name "first" : memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32> -> memref<2x4x70x64xf32>
    exec.attention %q, %k, %v -> %o scale 0.125 name "second" : memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32> -> memref<2x4x70x64xf32>
    exec.attention %q, %k, %v -> %o scale 0.5 : memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32> -> memref<2x4x70x64xf32>
    exec.attention %q, %k, %v -> %o causal scale 0.125 : memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32> -> memref<2x4x70x64xf32>
    return
  }
}
