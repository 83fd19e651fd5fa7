// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=lowered

llvm.func @expf(f32) -> f32
llvm.func @memcpy(!llvm.ptr, !llvm.ptr, i64) -> !llvm.ptr
llvm.func @"llvm.some.intrinsic"()
llvm.func @run(%frame: !llvm.ptr, %x: f32) -> f32 {
  %0 = llvm.call @expf(%x) : (f32) -> f32
  llvm.return %0 : f32
}

// -----

// One arena, and no calls but through the frame.
// expected-error@+1 {{external function 'malloc': generated code may call libm, memcpy, memmove and memset, functions that 'exec.libraries' has, and reaches the runtime through its frame alone}}
llvm.func @malloc(i64) -> !llvm.ptr
// expected-error@+1 {{external function 'shardrt_start'}}
llvm.func @shardrt_start(!llvm.ptr)

// -----

// expected-error@+1 {{'func.func' is no op of the stage "lowered"}}
func.func @f(%x: memref<4xf32>) {
  // expected-error@+1 {{'func.return' is no op of the stage "lowered"}}
  return
}

// -----

// Ops of devices are in their modules.
llvm.func @g() -> i32 {
  // expected-error@+1 {{'nvvm.read.ptx.sreg.tid.x' is outside of a 'gpu.module'}}
  %0 = nvvm.read.ptx.sreg.tid.x : i32
  llvm.return %0 : i32
}
