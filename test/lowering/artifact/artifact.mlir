// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a shared object says about itself, and when it is refused.
// RUN: rm -rf %t && mkdir -p %t/again
// RUN: shardc compile %s --mesh tp=4 "--place=param:fc.weight=tp:S(0)" --target=cpu:x86-64-v2 -o %t/model.so

// One symbol, through which the runtime finds all else.
// RUN: llvm-nm -D --defined-only %t/model.so | FileCheck %s --check-prefix=SYMBOLS
// SYMBOLS: T shardrt_query
// SYMBOLS-NOT: {{[^[:space:]]}}

// The manifest. Ten rows over four ranks are 3 3 3 1: two variants; what a rank holds of the result, 3 x 3 floats in 64
// bytes, is computed before the activation.
// RUN: shard-run --manifest %t/model.so | FileCheck %s --check-prefix=MANIFEST
// MANIFEST: "arena_bytes":[64,64]
// MANIFEST-SAME: "inputs":[{"layout":"[R]","name":"x","shape":[3,8],"type":"f32"}],
// MANIFEST-SAME: "memory":[{"arena_bytes":64,"caller_bytes":132,"parameter_bytes":96,"state_bytes":0},{"arena_bytes":64,"caller_bytes":108,"parameter_bytes":32,"state_bytes":0}],"name":"forward"
// MANIFEST-SAME: "outputs":[{"kind":"user","layout":"[S(1)]","name":"y","shape":[3,10],"type":"f32"}]
// MANIFEST-SAME: "axes":[{"name":"tp","size":4}]
// MANIFEST-SAME: "parameters":[{"layout":"[S(0)]","mutable":false,"names":["fc.weight","head.weight"],"shape":[10,8]
// MANIFEST-SAME: "features":["sse3","ssse3","sse4.1","sse4.2","popcnt"]
// MANIFEST-SAME: "world_size":4

// The same bytes every time: nothing in it depends on addresses, times or threads.
// RUN: shardc compile %s --mesh tp=4 "--place=param:fc.weight=tp:S(0)" --target=cpu:x86-64-v2 -o %t/again/model.so
// RUN: cmp %t/model.so %t/again/model.so

// Cut off, or with one byte changed anywhere: refused before it is loaded, with the file's name.
// RUN: head -c 2000 %t/model.so > %t/short.so
// RUN: not shard-run %t/short.so 2>&1 | FileCheck %s --check-prefix=SHORT
// SHORT: error: {{.*}}short.so{{.*}}truncated
// RUN: %python %S/Inputs/change_byte.py %t/model.so %t/changed.so
// RUN: not shard-run %t/changed.so 2>&1 | FileCheck %s --check-prefix=CHANGED
// CHANGED: error: {{.*}}changed.so{{.*}}checksum

func.func @forward(%x: tensor<3x8xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<10x8xf32> {dist.kind = "parameter", dist.name = ["fc.weight", "head.weight"]})
    -> (tensor<3x10xf32> {dist.name = "y"}) {
  %0 = aten.linear %x, %w : (tensor<3x8xf32>, tensor<10x8xf32>) -> tensor<3x10xf32> loc(fused<"fc">["linear"("m.py":3:0)])
  %1 = aten.relu %0 : (tensor<3x10xf32>) -> tensor<3x10xf32> loc("relu"("m.py":4:0))
  return %1 : tensor<3x10xf32>
}
