// RUN: shard-opt %s --cpu-expand-attention | FileCheck %s
//
// The pass alone, with no other that would have loaded the dialects of the attention kernel.

// Ops of equal types and attributes share a kernel; another scale, a mask or other types are another kernel. Offsets are
// part of pointers.
// CHECK-LABEL: func.func @entry(
// CHECK: exec.launch @[[K:[a-z_0-9]+]](%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) name "first" : memref<2x4x16x8xf32>,
// CHECK-NEXT: exec.launch @[[K]](
// CHECK-NEXT: exec.launch @[[SCALED:[a-z_0-9]+]](
// CHECK-NEXT: exec.launch @[[MASKED:[a-z_0-9]+]](%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) :
// CHECK: exec.launch @[[K]](%{{.*}}) : memref<2x4x16x8xf32, strided<[512, 128, 8, 1], offset: 512>>
// CHECK-NOT: exec.attention
func.func @entry(%q: memref<2x4x16x8xf32>, %k: memref<2x4x16x8xf32>, %m: memref<2x4x16x16xi8>, %o: memref<2x4x16x8xf32>,
                 %two: memref<3x4x16x8xf32>) attributes {exec.entry} {
  exec.attention %q, %k, %k -> %o causal scale 0.5 name "first"
      : memref<2x4x16x8xf32>, memref<2x4x16x8xf32>, memref<2x4x16x8xf32> -> memref<2x4x16x8xf32>
  exec.attention %o, %k, %q -> %o causal scale 0.5
      : memref<2x4x16x8xf32>, memref<2x4x16x8xf32>, memref<2x4x16x8xf32> -> memref<2x4x16x8xf32>
  exec.attention %q, %k, %k -> %o causal scale 0.25
      : memref<2x4x16x8xf32>, memref<2x4x16x8xf32>, memref<2x4x16x8xf32> -> memref<2x4x16x8xf32>
  exec.attention %q, %k, %k mask %m -> %o causal scale 0.5
      : memref<2x4x16x8xf32>, memref<2x4x16x8xf32>, memref<2x4x16x8xf32> mask memref<2x4x16x16xi8> -> memref<2x4x16x8xf32>
  %v = memref.reinterpret_cast %two to offset: [512], sizes: [2, 4, 16, 8], strides: [512, 128, 8, 1]
      : memref<3x4x16x8xf32> to memref<2x4x16x8xf32, strided<[512, 128, 8, 1], offset: 512>>
  exec.attention %v, %k, %k -> %o causal scale 0.5
      : memref<2x4x16x8xf32, strided<[512, 128, 8, 1], offset: 512>>, memref<2x4x16x8xf32>, memref<2x4x16x8xf32>
        -> memref<2x4x16x8xf32>
  return
}

// Values whose rows are whole register tiles are multiplied where they are; keys are packed.
// CHECK-LABEL: func.func @values(
func.func @values(%q: memref<2x4x70x64xf32>, %k: memref<2x2x33x64xf32>, %v: memref<2x2x33x64xf32>, %o: memref<2x4x70x64xf32>)
    attributes {exec.entry} {
  exec.attention %q, %k, %v -> %o scale 0.125 : memref<2x4x70x64xf32>, memref<2x2x33x64xf32>, memref<2x2x33x64xf32> -> memref<2x4x70x64xf32>
  return
}

// CHECK: func.func private @[[K]](%{{.*}}: memref<2x4x16x8xf32>, %{{.*}}: memref<2x4x16x8xf32>, %{{.*}}: memref<2x4x16x8xf32>,
// CHECK-SAME: exec.kernel
// CHECK: exec.parallel %{{.*}} to %{{.*}} grain 1 {
// CHECK: scf.for
// CHECK: vector.shuffle

// CHECK: func.func private @{{.*}}(%{{.*}}: memref<2x4x70x64xf32>, %{{.*}}: memref<2x2x33x64xf32>, %[[V:.*]]: memref<2x2x33x64xf32>,
// CHECK: vector.load %[[V]][
