// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a memory limit makes the pass compute again.
// RUN: shard-opt --dist-recompute="memory-limit=20736" %s | FileCheck --check-prefix=FITS %s
// RUN: shard-opt --dist-recompute="memory-limit=17000" %s | FileCheck --check-prefix=CHEAP %s
// RUN: shard-opt --dist-recompute="memory-limit=1KiB" %s | FileCheck --check-prefix=LEAST %s
// RUN: shard-opt --dist-recompute="memory-limit=17000" %s -o /dev/null 2>&1 | FileCheck --check-prefix=REMARK %s
// RUN: shard-opt --dist-recompute="memory-limit=17000 remarks=false" %s -o /dev/null 2>&1 | FileCheck --allow-empty --check-prefix=SILENT %s
// REMARK: remark: 'aten.exp' is computed again in the backward: 4096 bytes are not kept, 0 us more
// SILENT-NOT: remark

// The argument takes 4096 bytes, the outputs 256. At the peak the product, exp, s and t live, with 4096 bytes each.
// FITS-LABEL: func.func @products
// FITS-SAME: peak_before_bytes = 20736 : i64, peak_bytes = 20736
// FITS-NOT: dist.after

// The elementwise op takes less time than the product.
// CHEAP-LABEL: func.func @products
// CHEAP-SAME: peak_before_bytes = 20736 : i64, peak_bytes = 16640
// CHEAP: %[[P:.*]] = aten.matmul %arg0, %arg0
// CHEAP: %[[E:.*]] = aten.exp %[[P]]
// CHEAP: %[[T:.*]] = aten.matmul
// CHEAP: %[[LAST:.*]] = aten.matmul
// CHEAP: %[[AFTER:.*]] = dist.after %[[P]], %[[LAST]]
// CHEAP-NEXT: %[[AGAIN:.*]] = aten.exp %[[AFTER]]
// CHEAP-NEXT: aten.amax %[[AGAIN]]
// CHEAP-NEXT: aten.amax %[[P]]

// In the end the product is computed again too, once for all that needs it. The peak is then where the backward reads exp: it and
// the product live, and two results of the backward, of 128 bytes each.
// LEAST-LABEL: func.func @products
// LEAST-SAME: peak_bytes = 12800
// LEAST: aten.matmul
// LEAST: aten.exp
// LEAST: aten.amax
// LEAST: %[[X:.*]] = dist.after %arg0
// LEAST: %[[P:.*]] = aten.matmul %[[X]], %[[X]]
// LEAST: %[[E:.*]] = aten.exp %[[P]]
// LEAST: aten.amax %[[E]]
// LEAST-NEXT: aten.amax %[[P]]
func.func @products(%x: tensor<32x32xf32>) -> (tensor<32xf32>, tensor<32xf32>) {
  %p = aten.matmul %x, %x : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %e = aten.exp %p : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %s = aten.matmul %e, %e : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %t = aten.matmul %s, %s : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %g = aten.amax %t dim [0] : (tensor<32x32xf32>) -> tensor<32xf32> loc("backward of matmul")
  %d = aten.amax %e dim [0] : (tensor<32x32xf32>) -> tensor<32xf32> loc("backward of exp")
  %r = aten.amax %p dim [0] : (tensor<32x32xf32>) -> tensor<32xf32> loc("backward of matmul")
  %o = aten.add %g, %d : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32> loc("backward of matmul")
  return %o, %r : tensor<32xf32>, tensor<32xf32>
}

// What is not computed again: a value that is an output, one that an argument is read for which the forward writes over, and one
// of an op that nobody knows.
// LEAST-LABEL: func.func @kept
// LEAST-NOT: dist.after
// LEAST: return
func.func @kept(%x: tensor<32x32xf32>, %state: tensor<32x32xf32> {dist.kind = "buffer", dist.name = "state"})
    -> (tensor<32x32xf32>, tensor<32x32xf32> {dist.kind = "buffer_mutation", dist.name = "state"}, tensor<32x32xf32>) {
  %out = aten.exp %x : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %view = aten.transpose %state [0, 1] : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %of_state = aten.tanh %view : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %unknown = aten.opaque "torch.ops.mine.op"(%x) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %new = aten.add %of_state, %unknown : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %s = aten.matmul %out, %of_state : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %t = aten.matmul %s, %s : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %g = aten.matmul %t, %t : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("backward of matmul")
  %a = aten.mul %g, %out : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("backward of exp")
  %b = aten.mul %a, %of_state : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("backward of tanh")
  %c = aten.mul %b, %unknown : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("backward of op")
  return %out, %new, %c : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>
}

// Without a backward there is nothing to do.
// LEAST-LABEL: func.func @forward
// LEAST-NOT: dist.recomputed
func.func @forward(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %p = aten.matmul %x, %x : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %p : tensor<32x32xf32>
}
