// RUN: shard-opt %s --split-input-file --cuda-narrow-indices | FileCheck %s
// RUN: shard-opt %s --split-input-file --cuda-narrow-indices --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
//
// STATS-DAG: 2{{ +}}narrowed
// STATS-DAG: 1{{ +}}variants
// STATS-DAG: 2{{ +}}wide

// All is known: 2^31 - 1 elements are the most that 32 bits with sign count.
// CHECK: gpu.func @small({{.*}}narrow_indices
// CHECK: gpu.launch_func @kernels::@small
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @small(%x: memref<f32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %c32 = arith.constant 32 : index
      %at = arith.muli %b, %c32 : index
      %i = arith.addi %at, %t : index
      %memory = memref.reinterpret_cast %x to offset: [0], sizes: [2147483647], strides: [1] : memref<f32> to memref<2147483647xf32>
      %v = memref.load %memory[%i] : memref<2147483647xf32>
      memref.store %v, %memory[%i] : memref<2147483647xf32>
      gpu.return
    }
  }
  func.func private @f(%x: memref<f32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c67108863 = arith.constant 67108863 : index
    gpu.launch_func @kernels::@small blocks in (%c67108863, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<f32>)
    return
  }
}

// -----

// One element more.
// CHECK: gpu.func @memory
// CHECK-NOT: narrow_indices
// CHECK: gpu.return
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @memory(%x: memref<f32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %t = gpu.thread_id x
      %memory = memref.reinterpret_cast %x to offset: [0], sizes: [2147483648], strides: [1] : memref<f32> to memref<2147483648xf32>
      %v = memref.load %memory[%t] : memref<2147483648xf32>
      memref.store %v, %memory[%t] : memref<2147483648xf32>
      gpu.return
    }
  }
  func.func private @f(%x: memref<f32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@memory blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<f32>)
    return
  }
}

// -----

// The memory is small, but the number of a thread is not.
// CHECK: gpu.func @grid
// CHECK-NOT: narrow_indices
// CHECK: gpu.return
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @grid(%x: memref<f32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %c32 = arith.constant 32 : index
      %c100 = arith.constant 100 : index
      %at = arith.muli %b, %c32 : index
      %i = arith.addi %at, %t : index
      %r = arith.remui %i, %c100 : index
      %memory = memref.reinterpret_cast %x to offset: [0], sizes: [100], strides: [1] : memref<f32> to memref<100xf32>
      %v = memref.load %memory[%r] : memref<100xf32>
      gpu.return
    }
  }
  func.func private @f(%x: memref<f32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c67108865 = arith.constant 67108865 : index
    gpu.launch_func @kernels::@grid blocks in (%c67108865, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<f32>)
    return
  }
}

// -----

// Known when it runs: rows x stride, and the end of the loop with a step, are compared with 2^31 - 1 in front of the launch.
// CHECK: gpu.func @rows(%{{.*}}: memref<f32>, %{{.*}}: index, %{{.*}}: index) kernel attributes {known_block_size
// CHECK: gpu.func @rows_narrow(%{{.*}}: memref<f32>, %[[N:.*]]: i64, %{{.*}}: i64) kernel attributes {{.*}}narrow_indices
// CHECK: arith.index_cast %[[N]] : i64 to index
// CHECK: func.func private @f(%[[X:.*]]: memref<f32>, %[[ROWS:.*]]: index, %[[STRIDE:.*]]: index)
// CHECK-DAG: %[[SPAN:.*]] = arith.muli %[[ROWS]], %[[STRIDE]] : index
// CHECK-DAG: arith.cmpi ule, %[[SPAN]], %c2147483647{{.*}} : index
// CHECK: scf.if %{{.*}} {
// CHECK: arith.index_cast %[[ROWS]] : index to i64
// CHECK: gpu.launch_func @kernels::@rows_narrow
// CHECK: } else {
// CHECK: gpu.launch_func @kernels::@rows blocks
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @rows(%x: memref<f32>, %n: index, %stride: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %t = gpu.thread_id x
      %c32 = arith.constant 32 : index
      %memory = memref.reinterpret_cast %x to offset: [0], sizes: [%n, 32], strides: [%stride, 1] : memref<f32> to memref<?x32xf32, strided<[?, 1]>>
      %zero = arith.constant 0.0 : f32
      scf.for %i = %t to %n step %c32 {
        memref.store %zero, %memory[%i, %t] : memref<?x32xf32, strided<[?, 1]>>
      }
      gpu.return
    }
  }
  func.func private @f(%x: memref<f32>, %n: index, %stride: index) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@rows blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<f32>, %n : index, %stride : index)
    return
  }
}
