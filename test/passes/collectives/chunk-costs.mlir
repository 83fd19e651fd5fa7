// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the cost model says. (Under a limit that a function does not meet, nothing is chosen: the scheduler says so.)
// RUN: shard-opt --dist-chunk-collectives="chunks=auto topology=h100-8 memory-limit=60GB" %s | FileCheck %s
// RUN: shard-opt --dist-chunk-collectives="chunks=auto topology=h100-8 memory-limit=60GB remarks" %s -o /dev/null 2>&1 | FileCheck --check-prefix=REMARKS %s
// RUN: shard-opt --dist-chunk-collectives="chunks=auto topology=h100-8 memory-limit=60GB" --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// RUN: shard-opt --dist-chunk-collectives="chunks=auto topology=h100-8 memory-limit=300MB" %s | FileCheck --check-prefix=LEAN %s
// RUN: not shard-opt --dist-chunk-collectives="chunks=1 topology=mars memory-limit=much caps=big" %s 2>&1 | FileCheck --check-prefix=CHUNKS %s
// RUN: not shard-opt --dist-chunk-collectives="topology=mars memory-limit=much caps=big" %s 2>&1 | FileCheck --check-prefix=WRONG %s
// CHUNKS: error: chunks: '1' is neither off, auto, ring nor a number of pieces from 2 to 64
// WRONG: error: bucket cap 'big'
// WRONG: error: topology: no target named 'mars'
// WRONG: error: memory-limit: 'much'

// REMARKS: chunk-costs.mlir:[[#@LINE+14]]:{{.*}} remark: in {{[248]}} pieces from here on: 1 collectives and 1 products
// REMARKS-NOT: remark

// STATS-DAG: 1 regions
// STATS-DAG: 1 too-costly

#mesh = #dist.mesh<["tp" = 8]>
#tp = #dist.axes<#mesh, ["tp"]>

// 340 us on the link, 560 us of arithmetic: nothing else could run meanwhile.
// CHECK-LABEL: func.func @exposed(
// CHECK-COUNT-2: dist.all_gather
// LEAN-LABEL: func.func @exposed(
func.func @exposed(%x: tensor<2048x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<16384x4096xbf16> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<2048x4096xbf16>) -> tensor<16384x4096xbf16>
  %y = aten.linear %g, %w : (tensor<16384x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<16384x4096xbf16>
  return %y : tensor<16384x4096xbf16>
}
// LEAN-COUNT-1: dist.all_gather
// LEAN-NOT: dist.all_gather
// LEAN: return

// Latency is all that it takes.
// CHECK-LABEL: func.func @small(
// CHECK: dist.all_gather
// CHECK-NOT: dist.all_gather
// CHECK: return
func.func @small(%x: tensor<16x512xbf16>, %w: tensor<512x512xbf16>) -> tensor<128x512xbf16> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<16x512xbf16>) -> tensor<128x512xbf16>
  %y = aten.linear %g, %w : (tensor<128x512xbf16>, tensor<512x512xbf16>) -> tensor<128x512xbf16>
  return %y : tensor<128x512xbf16>
}

// Another product takes long enough to hide the gather as it is.
// CHECK-LABEL: func.func @hidden(
// CHECK: dist.all_gather
// CHECK-NOT: dist.all_gather
// CHECK: return
func.func @hidden(%x: tensor<2048x4096xbf16>, %w: tensor<4096x4096xbf16>, %a: tensor<16384x8192xbf16>, %b: tensor<8192x4096xbf16>)
    -> (tensor<16384x4096xbf16>, tensor<16384x4096xbf16>) {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<2048x4096xbf16>) -> tensor<16384x4096xbf16>
  %c = aten.mm %a, %b : (tensor<16384x8192xbf16>, tensor<8192x4096xbf16>) -> tensor<16384x4096xbf16>
  %y = aten.linear %g, %w : (tensor<16384x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<16384x4096xbf16>
  return %y, %c : tensor<16384x4096xbf16>, tensor<16384x4096xbf16>
}
