// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-schedule-collectives="policy=defensive memory-limit=1000000000" --dist-verify-schedule --dist-verify-stage=scheduled %s | FileCheck %s --check-prefix=DEFENSIVE
// RUN: shard-opt --dist-schedule-collectives="policy=defensive bucket memory-limit=1000000000" --dist-verify-schedule --dist-verify-stage=scheduled %s | FileCheck %s --check-prefix=MERGED
// RUN: shard-opt --dist-schedule-collectives="policy=defensive memory-limit=6500000" --dist-verify-schedule --dist-verify-stage=scheduled %s | FileCheck %s --check-prefix=TIGHT
// Without a limit there is room for two of them, which makes the step a percent shorter.
// RUN: shard-opt --dist-schedule-collectives="policy=defensive" --dist-verify-schedule %s | FileCheck %s --check-prefix=DEFENSIVE
// RUN: shard-opt --dist-schedule-collectives="memory-limit=1000000000 robust=0" --dist-verify-schedule %s | FileCheck %s --check-prefix=NOMINAL
// RUN: not shard-opt --dist-schedule-collectives=robust=1.5 %s 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not shard-opt --dist-schedule-collectives=robust=-1 %s 2>&1 | FileCheck %s --check-prefix=BELOW
// RUN: not shard-opt --dist-schedule-collectives=policy=lucky %s 2>&1 | FileCheck %s --check-prefix=POLICY
// RUN: not shard-opt --dist-schedule-collectives="policy=defensive memory-limit=1000" %s 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s --tolerance 0 -- --dist-schedule-collectives="policy=defensive bucket" %}

#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>

// Every gather starts before the first kernel, in the order of the program, and is waited for right before its use.
// DEFENSIVE-LABEL: func.func @layers(
// DEFENSIVE-NEXT: %[[A:.*]] = dist.all_gather over #dp %arg1
// DEFENSIVE-NEXT: %[[B:.*]] = dist.all_gather over #dp %arg2
// DEFENSIVE-NEXT: %[[WA:.*]] = dist.wait %[[A]]
// DEFENSIVE-NEXT: aten.linear %arg0, %[[WA]]
// DEFENSIVE-NEXT: %[[WB:.*]] = dist.wait %[[B]]
// DEFENSIVE-NEXT: aten.linear %{{.*}}, %[[WB]]
// With buckets, both are one collective.
// MERGED-LABEL: func.func @layers(
// MERGED-NEXT: %[[F:.*]]:2 = dist.all_gather over #dp %arg1 dim 0, %arg2 dim 0 {dist.bucket = {{.*}}cap_bytes = 500000000
// MERGED-NEXT: dist.wait %[[F]]#0, %[[F]]#1
// Both gathered weights do not fit in what the program takes.
// TIGHT-LABEL: func.func @layers(
// TIGHT-NEXT: dist.all_gather over #dp %arg1
// TIGHT-NEXT: dist.wait
// TIGHT-NEXT: aten.linear
// TIGHT-NEXT: dist.all_gather over #dp %arg2
// NOMINAL-LABEL: func.func @layers(
// NOMINAL: dist.wait
// RANGE: robust: 1.5 is not from 0 (only the times of the cost model count) to 1
// BELOW: robust: -1 is not from 0 (only the times of the cost model count) to 1
// POLICY: Cannot find option named 'lucky'
// LIMIT: the memory limit of 1000 bytes cannot be met
func.func @layers(%x: tensor<8x1024xf32>, %a: tensor<256x1024xf32>, %b: tensor<256x1024xf32>) -> tensor<8x1024xf32> {
  %wa = dist.all_gather over #dp %a dim 0 : (tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %0 = aten.linear %x, %wa : (tensor<8x1024xf32>, tensor<1024x1024xf32>) -> tensor<8x1024xf32>
  %wb = dist.all_gather over #dp %b dim 0 : (tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %1 = aten.linear %0, %wb : (tensor<8x1024xf32>, tensor<1024x1024xf32>) -> tensor<8x1024xf32>
  return %1 : tensor<8x1024xf32>
}
