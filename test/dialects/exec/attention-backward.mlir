// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics | shard-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @forward(
func.func @forward(%q: memref<2x8x16x64xf32>, %m: memref<2x8x16x16xi8, strided<[0, 0, 16, 1]>>, %o: memref<2x8x16x64xf32>, %l: memref<2x8x16xf32>) {
  // CHECK: exec.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} -> %{{.*}} logsumexp %{{.*}} causal scale 1.250000e-01 name "attention" :
  // CHECK-SAME: -> memref<2x8x16x64xf32> logsumexp memref<2x8x16xf32>
  exec.attention %q, %q, %q mask %m -> %o logsumexp %l causal scale 1.250000e-01 name "attention"
      : memref<2x8x16x64xf32>, memref<2x8x16x64xf32>, memref<2x8x16x64xf32> mask memref<2x8x16x16xi8, strided<[0, 0, 16, 1]>>
        -> memref<2x8x16x64xf32> logsumexp memref<2x8x16xf32>
  return
}

// CHECK-LABEL: func.func @backward(
func.func @backward(%g: memref<2x8x16x64xbf16>, %k: memref<2x2x16x64xbf16>, %m: memref<2x8x16x16xbf16>, %l: memref<2x8x16xf32>,
                    %dq: memref<2x8x16x64xbf16>, %dk: memref<2x2x16x64xbf16>, %dv: memref<2x2x16x64xbf16>) {
  // CHECK: exec.attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} -> %{{.*}}, %{{.*}}, %{{.*}} causal scale 1.250000e-01 name "back" :
  exec.attention_backward %g, %g, %k, %k, %g, %l mask %m -> %dq, %dk, %dv causal scale 1.250000e-01 name "back"
      : memref<2x8x16x64xbf16>, memref<2x8x16x64xbf16>, memref<2x2x16x64xbf16>, memref<2x2x16x64xbf16>, memref<2x8x16x64xbf16>,
        memref<2x8x16xf32> mask memref<2x8x16x16xbf16> -> memref<2x8x16x64xbf16>, memref<2x2x16x64xbf16>, memref<2x2x16x64xbf16>
  return
}

// Over some of the keys.
// CHECK-LABEL: func.func @partial(
func.func @partial(%i: index, %q: memref<2x8x4x64xbf16>, %k: memref<2x8x16x64xbf16>, %o: memref<2x8x4x64xf32>, %l: memref<2x8x4xf32>, %dk: memref<2x8x16x64xf32>) {
  // CHECK: exec.attention %{{.*}} logsumexp %{{.*}} causal first %{{.*}} partial scale
  exec.attention %q, %k, %k -> %o logsumexp %l causal first %i partial scale 1.0
      : memref<2x8x4x64xbf16>, memref<2x8x16x64xbf16>, memref<2x8x16x64xbf16> -> memref<2x8x4x64xf32> logsumexp memref<2x8x4xf32>
  // CHECK: exec.attention_backward %{{.*}} causal first %{{.*}} partial scale
  exec.attention_backward %q, %q, %k, %k, %q, %l -> %o, %dk, %dk causal first %i partial scale 1.0
      : memref<2x8x4x64xbf16>, memref<2x8x4x64xbf16>, memref<2x8x16x64xbf16>, memref<2x8x16x64xbf16>, memref<2x8x4x64xbf16>, memref<2x8x4xf32>
        -> memref<2x8x4x64xf32>, memref<2x8x16x64xf32>, memref<2x8x16x64xf32>
  return
}

// -----
func.func @f(%i: index, %q: memref<2x4x5x8xf32>, %o: memref<2x4x5x8xf32>) {
  // expected-error@+1 {{says where its first query is among the keys, and is not causal}}
  exec.attention %q, %q, %q -> %o first %i scale 1.0 : memref<2x4x5x8xf32>, memref<2x4x5x8xf32>, memref<2x4x5x8xf32> -> memref<2x4x5x8xf32>
  return
}

// -----
func.func @f(%q: memref<2x4x5x8xf32>, %o: memref<2x4x5x8xf32>, %l: memref<2x4x6xf32>) {
  // expected-error@+1 {{has a logsumexp of 'memref<2x4x6xf32>', not of 'f32' for each query of 'memref<2x4x5x8xf32>'}}
  exec.attention %q, %q, %q -> %o logsumexp %l scale 1.0
      : memref<2x4x5x8xf32>, memref<2x4x5x8xf32>, memref<2x4x5x8xf32> -> memref<2x4x5x8xf32> logsumexp memref<2x4x6xf32>
  return
}

// -----
func.func @f(%g: memref<2x4x5x6xf32>, %q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x7x6xf32>, %o: memref<2x4x5x6xf32>, %l: memref<2x4x5xf64>, %dq: memref<2x4x5x8xf32>, %dk: memref<2x2x7x8xf32>, %dv: memref<2x2x7x6xf32>) {
  // expected-error@+1 {{has a logsumexp of 'memref<2x4x5xf64>', not of 'f32' for each query of 'memref<2x4x5x8xf32>'}}
  exec.attention_backward %g, %q, %k, %v, %o, %l -> %dq, %dk, %dv scale 1.0
      : memref<2x4x5x6xf32>, memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32>, memref<2x4x5x6xf32>, memref<2x4x5xf64> -> memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32>
  return
}

// -----
func.func @f(%g: memref<2x4x5x5xf32>, %q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x7x6xf32>, %o: memref<2x4x5x6xf32>, %l: memref<2x4x5xf32>, %dq: memref<2x4x5x8xf32>, %dk: memref<2x2x7x8xf32>, %dv: memref<2x2x7x6xf32>) {
  // expected-error@+1 {{has a cotangent of 'memref<2x4x5x5xf32>' for 'memref<2x4x5x6xf32>'}}
  exec.attention_backward %g, %q, %k, %v, %o, %l -> %dq, %dk, %dv scale 1.0
      : memref<2x4x5x5xf32>, memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32>, memref<2x4x5x6xf32>, memref<2x4x5xf32> -> memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32>
  return
}

// -----
func.func @f(%g: memref<2x4x5x6xf32>, %q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x7x6xf32>, %o: memref<2x4x5x6xf32>, %l: memref<2x4x5xf32>, %dq: memref<2x4x5x8xf32>, %dk: memref<2x4x7x8xf32>, %dv: memref<2x2x7x6xf32>) {
  // expected-error@+1 {{has a cotangent of 'memref<2x4x7x8xf32>' for 'memref<2x2x7x8xf32>'}}
  exec.attention_backward %g, %q, %k, %v, %o, %l -> %dq, %dk, %dv scale 1.0
      : memref<2x4x5x6xf32>, memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32>, memref<2x4x5x6xf32>, memref<2x4x5xf32> -> memref<2x4x5x8xf32>, memref<2x4x7x8xf32>, memref<2x2x7x6xf32>
  return
}

// -----
func.func @f(%g: memref<2x4x5x6xf32>, %q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x7x6xf32>, %o: memref<2x4x5x6xf32>, %l: memref<2x4x5xf32>, %dq: memref<2x4x5x8xf64>, %dk: memref<2x2x7x8xf32>, %dv: memref<2x2x7x6xf32>) {
  // expected-error@+1 {{has a cotangent of 'memref<2x4x5x8xf64>' for 'memref<2x4x5x8xf32>'}}
  exec.attention_backward %g, %q, %k, %v, %o, %l -> %dq, %dk, %dv scale 1.0
      : memref<2x4x5x6xf32>, memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32>, memref<2x4x5x6xf32>, memref<2x4x5xf32> -> memref<2x4x5x8xf64>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32>
  return
}

// -----
func.func @f(%g: memref<2x4x5x6xf32>, %q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x7x6xf32>, %o: memref<2x4x5x6xf32>, %l: memref<2x4x5xf32>, %dq: memref<2x4x5x8xf32>, %dk: memref<2x2x7x8xf32>, %dv: memref<2x7x6xf32>) {
  // expected-error@+1 {{has a cotangent of 'memref<2x7x6xf32>' for 'memref<2x2x7x6xf32>'}}
  exec.attention_backward %g, %q, %k, %v, %o, %l -> %dq, %dk, %dv scale 1.0
      : memref<2x4x5x6xf32>, memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32>, memref<2x4x5x6xf32>, memref<2x4x5xf32> -> memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x7x6xf32>
  return
}

// -----
func.func @f(%g: memref<2x4x5x6xf32>, %q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x6x6xf32>, %o: memref<2x4x5x6xf32>, %l: memref<2x4x5xf32>, %dq: memref<2x4x5x8xf32>, %dk: memref<2x2x7x8xf32>, %dv: memref<2x2x6x6xf32>) {
  // expected-error@+1 {{has another number of keys than of values: 'memref<2x2x7x8xf32>' and 'memref<2x2x6x6xf32>'}}
  exec.attention_backward %g, %q, %k, %v, %o, %l -> %dq, %dk, %dv scale 1.0
      : memref<2x4x5x6xf32>, memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x6x6xf32>, memref<2x4x5x6xf32>, memref<2x4x5xf32> -> memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x6x6xf32>
  return
}
