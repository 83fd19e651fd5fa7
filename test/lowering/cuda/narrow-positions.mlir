// RUN: shard-opt %s --split-input-file --cuda-narrow-indices | FileCheck %s
// RUN: shard-opt %s --split-input-file --cuda-narrow-indices --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
//
// STATS: 2{{ +}}narrowed
// STATS-NOT: variants
// STATS: 2{{ +}}wide

// Positions that are data.

// A position that is data has no bound, and needs none where it is used as one. Where it is computed with, 64 bits stay.
// CHECK: gpu.func @lookup({{.*}}narrow_indices
// CHECK: gpu.func @computed
// CHECK-NOT: narrow_indices
// CHECK: gpu.return
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @lookup(%x: memref<f32>, %p: memref<i64>) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %position = memref.load %p[] : memref<i64>
      %i = arith.index_cast %position : i64 to index
      %memory = memref.reinterpret_cast %x to offset: [0], sizes: [100], strides: [1] : memref<f32> to memref<100xf32>
      %v = memref.load %memory[%i] : memref<100xf32>
      gpu.return
    }
    gpu.func @computed(%x: memref<f32>, %p: memref<i64>) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %position = memref.load %p[] : memref<i64>
      %i = arith.index_cast %position : i64 to index
      %c4 = arith.constant 4 : index
      %q = arith.divsi %i, %c4 : index
      %memory = memref.reinterpret_cast %x to offset: [0], sizes: [100], strides: [1] : memref<f32> to memref<100xf32>
      %v = memref.load %memory[%q] : memref<100xf32>
      gpu.return
    }
  }
  func.func private @f(%x: memref<f32>, %p: memref<i64>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@lookup blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<f32>, %p : memref<i64>)
    gpu.launch_func @kernels::@computed blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<f32>, %p : memref<i64>)
    return
  }
}

// -----

// Accesses to several neighbours have positions, too: a row of a table, read and written four elements at a time.
// CHECK: gpu.func @neighbours({{.*}}narrow_indices
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @neighbours(%x: memref<f32>, %p: memref<i64>) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %position = memref.load %p[] : memref<i64>
      %i = arith.index_cast %position : i64 to index
      %c0 = arith.constant 0 : index
      %memory = memref.reinterpret_cast %x to offset: [0], sizes: [100, 4], strides: [4, 1] : memref<f32> to memref<100x4xf32>
      %v = vector.load %memory[%i, %c0] : memref<100x4xf32>, vector<4xf32>
      vector.store %v, %memory[%i, %c0] : memref<100x4xf32>, vector<4xf32>
      gpu.return
    }
  }
  func.func private @f(%x: memref<f32>, %p: memref<i64>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@neighbours blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<f32>, %p : memref<i64>)
    return
  }
}

// -----

// Sizes that the host knows, and a position that stays 64 bits: the host computes nothing in front of the launch.
// CHECK: gpu.func @wide
// CHECK-NOT: narrow_indices
// CHECK: func.func private @f
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT: gpu.launch_func @kernels::@wide
// CHECK-NEXT: return
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @wide(%x: memref<f32>, %p: memref<i64>, %n: index) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %memory = memref.reinterpret_cast %x to offset: [0], sizes: [%n, 4], strides: [4, 1] : memref<f32> to memref<?x4xf32>
      %position = memref.load %p[] : memref<i64>
      %i = arith.index_cast %position : i64 to index
      %c4 = arith.constant 4 : index
      %q = arith.divsi %i, %c4 : index
      %r = arith.remsi %i, %c4 : index
      %v = memref.load %memory[%q, %r] : memref<?x4xf32>
      gpu.return
    }
  }
  func.func private @f(%x: memref<f32>, %p: memref<i64>, %n: index) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@wide blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<f32>, %p : memref<i64>, %n : index)
    return
  }
}
