// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rings or split collectives, by the cost model.
// RUN: shard-opt --dist-chunk-collectives="topology=h100-8 memory-limit=60GB remarks" %s 2>&1 | FileCheck %s
// Without a price for permutes, there is no ring to choose.
// RUN: shard-opt --dist-chunk-collectives="topology=sim-v1 memory-limit=60GB robust=0 remarks" %s 2>&1 | FileCheck --check-prefix=SPLIT %s
// Two pieces save 1.2 % there, but on a network that is twice as slow their latencies cost 0.9 %.
// RUN: shard-opt --dist-chunk-collectives="topology=sim-v1 memory-limit=60GB remarks" %s 2>&1 | FileCheck --check-prefix=WHOLE %s
// WHOLE-NOT: remark
// RUN: not shard-opt --dist-chunk-collectives=robust=2 %s 2>&1 | FileCheck --check-prefix=RANGE %s
// RUN: not shard-opt --dist-split-nodes="topology=h100-64 robust=2" %s 2>&1 | FileCheck --check-prefix=RANGE %s
// RANGE: robust: 2 is not from 0 (only the times of the cost model count) to 1
// SPLIT: remark: in {{[248]}} pieces from here on
// SPLIT-NOT: dist.permute

// CHECK: remark: in 8 pieces from here on: 1 collectives and 1 products
// CHECK: remark: as a ring, in 4 pieces from here on: 1 collectives and 1 products

#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>

// 326 us on the link, and 556 us of arithmetic: the copies of a ring's join take longer than what it saves.
// CHECK-LABEL: func.func @wide(
// CHECK-NOT: dist.permute
// CHECK-COUNT-8: dist.all_gather
func.func @wide(%x: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<16384x4096xbf16> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<4096x4096xbf16>) -> tensor<16384x4096xbf16>
  %y = aten.linear %g, %w : (tensor<16384x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<16384x4096xbf16>
  return %y : tensor<16384x4096xbf16>
}

// 480 us on the link, more than the arithmetic takes: a rank's own block is not sent, and computed meanwhile.
// CHECK-LABEL: func.func @narrow(
// CHECK-NOT: dist.all_gather
// CHECK-COUNT-3: dist.permute
// CHECK-NOT: dist.all_gather
func.func @narrow(%x: tensor<4096x8192xbf16>, %w: tensor<1024x8192xbf16>) -> tensor<16384x1024xbf16> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<4096x8192xbf16>) -> tensor<16384x8192xbf16>
  %y = aten.linear %g, %w : (tensor<16384x8192xbf16>, tensor<1024x8192xbf16>) -> tensor<16384x1024xbf16>
  return %y : tensor<16384x1024xbf16>
}
