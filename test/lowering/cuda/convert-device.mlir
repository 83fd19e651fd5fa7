// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which functions are instructions of the chip and which are libdevice's; nothing is approximate.
// RUN: shard-opt %s --pass-pipeline='builtin.module(gpu.module(math-extend-to-supported-types,cuda-convert-device))' | FileCheck %s
// RUN: shard-opt %s --cuda-convert-device | FileCheck %s --check-prefix=FLAGS
// FLAGS-NOT: fastmath
// FLAGS-NOT: approx
gpu.module @kernels {
  // CHECK-DAG: llvm.func @__nv_expf(f32) -> f32
  // CHECK-DAG: llvm.func @__nv_tanh(f64) -> f64
  // CHECK-DAG: llvm.func @__nv_fmodf(f32, f32) -> f32
  // CHECK-NOT: llvm.func @__nv_{{(fabs|sqrt|fma|floor|ceil|rint|trunc)}}
  // CHECK-LABEL: llvm.func @k(
  gpu.func @k(%x: memref<f32>, %y: memref<f64>, %h: memref<bf16>) kernel {
    %a = memref.load %x[] : memref<f32>
    // CHECK: llvm.call @__nv_expf(%{{.*}}) : (f32) -> f32
    %b = math.exp %a : f32
    // CHECK: llvm.intr.sqrt(%{{.*}}) : (f32) -> f32
    %c = math.sqrt %b : f32
    // CHECK: llvm.intr.fabs
    %d = math.absf %c : f32
    // CHECK: llvm.intr.floor
    %e = math.floor %d : f32
    // CHECK: llvm.intr.roundeven
    %f = math.roundeven %e : f32
    // CHECK: llvm.intr.fma
    %g = math.fma %f, %e, %d : f32
    // CHECK: llvm.fdiv %{{.*}}, %{{.*}} : f32
    %i = arith.divf %g, %a : f32
    // CHECK: llvm.call @__nv_fmodf
    %j = arith.remf %i, %a : f32
    // CHECK: llvm.intr.maximum
    %k = arith.maximumf %j, %a : f32
    // CHECK: llvm.intr.maxnum
    %l = arith.maxnumf %k, %a : f32
    memref.store %l, %x[] : memref<f32>
    // CHECK: llvm.call @__nv_tanh(%{{.*}}) : (f64) -> f64
    %m = memref.load %y[] : memref<f64>
    %n = math.tanh %m : f64
    memref.store %n, %y[] : memref<f64>
    // bf16 in f32, rounded once.
    // CHECK: llvm.fpext %{{.*}} : bf16 to f32
    // CHECK: llvm.call @__nv_expf
    // CHECK: llvm.fptrunc %{{.*}} : f32 to bf16
    %o = memref.load %h[] : memref<bf16>
    %p = math.exp %o : bf16
    memref.store %p, %h[] : memref<bf16>
    gpu.return
  }
}
