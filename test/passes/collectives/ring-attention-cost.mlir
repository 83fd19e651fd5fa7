// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which form is chosen: by the predicted step, and where gathered keys do not fit.
// RUN: shard-opt %s --dist-ring-attention="topology=h100-8" | FileCheck %s
// RUN: shard-opt %s --dist-ring-attention="topology=h100-8" --pass-statistics -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// STATS-DAG: 1 balanced
// STATS-DAG: 2 gathered
// STATS-DAG: 1 rings
// STATS-DAG: {{[0-9]+}} step-us-after
// STATS-DAG: {{[0-9]+}} step-us-before
//
// With room for two blocks of keys and values, and not for all of them.
// RUN: shard-opt %s --dist-ring-attention="topology=h100-8 memory-limit=8MB" | FileCheck --check-prefix=LIMIT %s
// Work per rank: the last one has almost twice the mean where blocks go around in the order of the sequence.
// RUN: shard-opt %s --dist-ring-attention=mode=all --pass-statistics -o /dev/null 2>&1 | FileCheck --check-prefix=ALL %s
// ALL-DAG: 268636224 mean-pairs
// ALL-DAG: 503574592 most-pairs
// RUN: shard-opt %s --dist-ring-attention=mode=balanced --pass-statistics -o /dev/null 2>&1 | FileCheck --check-prefix=EQUAL %s
// EQUAL-DAG: 268636224 mean-pairs
// EQUAL-DAG: 268636224 most-pairs
// No price for permutes.
// RUN: shard-opt %s --dist-ring-attention="topology=sim-v1" | FileCheck --check-prefix=FLAT %s
// FLAT-NOT: dist.permute

#mesh = #dist.mesh<["sp" = 8]>
#sp = #dist.axes<#mesh, ["sp"]>

// CHECK-LABEL: func.func @long(
// CHECK-NOT: dist.all_gather
// CHECK: aten.scaled_dot_product_flash_attention {{.*}} causal partial : (tensor<1x16x8192x128xbf16>
// CHECK: aten.scaled_dot_product_flash_attention {{.*}} partial : (tensor<1x16x4096x128xbf16>
func.func @long(%q: tensor<1x16x8192x128xbf16>, %k: tensor<1x16x8192x128xbf16>, %v: tensor<1x16x8192x128xbf16>) -> tensor<1x16x8192x128xbf16> {
  %keys = dist.all_gather over #sp %k dim 2 : (tensor<1x16x8192x128xbf16>) -> tensor<1x16x65536x128xbf16>
  %values = dist.all_gather over #sp %v dim 2 : (tensor<1x16x8192x128xbf16>) -> tensor<1x16x65536x128xbf16>
  %first = dist.extent #dist.extents<table [0, 8192, 16384, 24576, 32768, 40960, 49152, 57344] over #mesh>
  %y = aten.scaled_dot_product_attention %q, %keys, %values causal first %first
      : (tensor<1x16x8192x128xbf16>, tensor<1x16x65536x128xbf16>, tensor<1x16x65536x128xbf16>, index) -> tensor<1x16x8192x128xbf16>
  return %y : tensor<1x16x8192x128xbf16>
}

// CHECK-LABEL: func.func @short(
// CHECK: dist.all_gather
// CHECK-NOT: dist.permute
// LIMIT-LABEL: func.func @short(
// LIMIT-NOT: dist.all_gather
// LIMIT: dist.permute
func.func @short(%q: tensor<1x16x128x128xbf16>, %k: tensor<1x16x128x128xbf16>, %v: tensor<1x16x128x128xbf16>) -> tensor<1x16x128x128xbf16> {
  %keys = dist.all_gather over #sp %k dim 2 : (tensor<1x16x128x128xbf16>) -> tensor<1x16x1024x128xbf16>
  %values = dist.all_gather over #sp %v dim 2 : (tensor<1x16x128x128xbf16>) -> tensor<1x16x1024x128xbf16>
  %first = dist.extent #dist.extents<table [0, 128, 256, 384, 512, 640, 768, 896] over #mesh>
  %y = aten.scaled_dot_product_attention %q, %keys, %values causal first %first
      : (tensor<1x16x128x128xbf16>, tensor<1x16x1024x128xbf16>, tensor<1x16x1024x128xbf16>, index) -> tensor<1x16x128x128xbf16>
  return %y : tensor<1x16x128x128xbf16>
}

// CHECK-LABEL: func.func @all(
// CHECK: dist.all_gather
func.func @all(%q: tensor<1x16x128x128xbf16>, %k: tensor<1x16x128x128xbf16>, %v: tensor<1x16x128x128xbf16>) -> tensor<1x16x128x128xbf16> {
  %keys = dist.all_gather over #sp %k dim 2 : (tensor<1x16x128x128xbf16>) -> tensor<1x16x1024x128xbf16>
  %values = dist.all_gather over #sp %v dim 2 : (tensor<1x16x128x128xbf16>) -> tensor<1x16x1024x128xbf16>
  %y = aten.scaled_dot_product_attention %q, %keys, %values
      : (tensor<1x16x128x128xbf16>, tensor<1x16x1024x128xbf16>, tensor<1x16x1024x128xbf16>) -> tensor<1x16x128x128xbf16>
  return %y : tensor<1x16x128x128xbf16>
}
