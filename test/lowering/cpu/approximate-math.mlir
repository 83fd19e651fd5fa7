// RUN: shard-opt %s --cpu-approximate-math | FileCheck %s
// RUN: shard-opt %s --cpu-approximate-math --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
// STATS: cpu-approximate-math
// STATS-DAG: 4 expanded

// CHECK-LABEL: func.func private @polynomials(
// CHECK-NOT: math.{{exp|tanh|erf|log}}
// CHECK: return
func.func private @polynomials(%x: f32) -> (f32, f32, f32, f32) attributes {exec.kernel} {
  %0 = math.exp %x : f32
  %1 = math.tanh %x : f32
  %2 = math.erf %x : f32
  %3 = math.log %x : f32
  return %0, %1, %2, %3 : f32, f32, f32, f32
}

// Polynomials are for f32; the C library knows f64.
// CHECK-LABEL: func.func private @doubles(
// CHECK: math.exp %{{.*}} : f64
func.func private @doubles(%x: f64) -> f64 attributes {exec.kernel} {
  %0 = math.exp %x : f64
  return %0 : f64
}

// Not a kernel: as it was.
// CHECK-LABEL: func.func @entry(
// CHECK-NEXT: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: math.exp %{{.*}} : f32
func.func @entry(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  %1 = math.exp %0 : f32
  return %1 : f32
}
