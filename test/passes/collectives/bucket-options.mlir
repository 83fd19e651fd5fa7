// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-bucket-collectives="caps=1 memory-limit=1000000000" %s | FileCheck --check-prefix=ONE %s
// RUN: shard-opt --dist-bucket-collectives="caps=0.5,2 memory-limit=1000000000" %s | FileCheck --check-prefix=LIST %s
// RUN: shard-opt --dist-bucket-collectives="topology=h100-64 caps=auto memory-limit=1000000000" %s | FileCheck --check-prefix=AUTO %s
// RUN: shard-opt --dist-bucket-collectives="topology=h100-64 caps=auto mixed-dtype memory-limit=1000000000" %s | FileCheck --check-prefix=MIXED %s
// RUN: shard-opt --dist-bucket-collectives="topology=h100-64 caps=auto gather-order=production memory-limit=1000000000" %s | FileCheck --check-prefix=PRODUCTION %s
// RUN: shard-opt --dist-bucket-collectives="topology=h100-64 caps=auto memory-limit=4500000" %s | FileCheck --check-prefix=MEMORY %s
// RUN: not shard-opt --dist-bucket-collectives="memory-limit=1000" %s 2>&1 | FileCheck --check-prefix=MISFIT %s
// RUN: not shard-opt --dist-bucket-collectives="caps=big topology=nowhere" %s 2>&1 | FileCheck --check-prefix=ERRORS %s
// RUN: shard-opt --dist-bucket-collectives="caps=1 remarks memory-limit=1000000000" %s -o /dev/null 2>&1 | FileCheck --check-prefix=REMARKS %s

// ERRORS: bucket cap 'big' is not 'auto', a number of MiB, or a list of them such as '1,25'
// ERRORS: topology: no target named 'nowhere' and no such file; built-in targets: sim-v1 h100-8
// MISFIT: the memory limit of 1000 bytes cannot be met in the order of the program, which takes 3353600 bytes at its peak; allow at least that much, or a new order

#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>

// Four gradients of 0.4 MiB, in order of production: two fit under 1 MiB; under 0.5 one, then up to 2 MiB three.
// ONE-LABEL: func.func @caps(
// ONE: dist.all_reduce sum over #dp %arg0, %arg1 {dist.bucket = {bytes = 838400 : i64, cap_bytes = 1048576 : i64, closed = "cap"
// ONE: dist.all_reduce sum over #dp %arg2, %arg3 {dist.bucket = {bytes = 838400 : i64, cap_bytes = 1048576 : i64, closed = "complete"
// LIST-LABEL: func.func @caps(
// LIST: dist.all_reduce sum over #dp %arg0 {dist.alone = {{.*}}reason = "the next collective does not fit under the bucket cap with it"
// LIST: dist.all_reduce sum over #dp %arg1, %arg2, %arg3 {{.*}}cap_bytes = 2097152
// AUTO-LABEL: func.func @caps(
// AUTO: dist.all_reduce sum over #dp %arg0, %arg1, %arg2, %arg3 {{.*}}cap_bytes = 14160896
// Results and arguments take 3353600 bytes; 4500000 leave room to pack two, not four (B9).
// MEMORY-LABEL: func.func @caps(
// MEMORY-SAME: peak_before_bytes = 3353600 : i64, peak_bytes = 4192000
// MEMORY-NEXT: {{.*}} = dist.all_reduce sum over #dp %arg0, %arg1 {{.*}}closed = "memory"
// MEMORY-NEXT: {{.*}} = dist.all_reduce sum over #dp %arg2 {dist.alone{{.*}}reason = "a bucket would have exceeded the memory limit"
// REMARKS: remark: a bucket of 2 collectives, 838400 bytes, closed by: cap
func.func @caps(%a: tensor<104800xf32>, %b: tensor<104800xf32>, %c: tensor<104800xf32>, %d: tensor<104800xf32>)
    -> (tensor<104800xf32>, tensor<104800xf32>, tensor<104800xf32>, tensor<104800xf32>) {
  %0 = dist.all_reduce sum over #dp %a : tensor<104800xf32>
  %1 = dist.all_reduce sum over #dp %b : tensor<104800xf32>
  %2 = dist.all_reduce sum over #dp %c : tensor<104800xf32>
  %3 = dist.all_reduce sum over #dp %d : tensor<104800xf32>
  return %0, %1, %2, %3 : tensor<104800xf32>, tensor<104800xf32>, tensor<104800xf32>, tensor<104800xf32>
}

// The size of a gather is that of its result: four times that of its operand. One above the cap stands alone.
// ONE-LABEL: func.func @gather_size(
// ONE-DAG: dist.all_gather over #dp %arg0 dim 0 {{.*}}reason = "it is larger than the bucket cap"
// ONE-DAG: dist.all_gather over #dp %arg1 dim 0, %arg2 dim 0 {
// REMARKS: remark: left alone: it is larger than the bucket cap
func.func @gather_size(%a: tensor<104800xf32>, %b: tensor<26200xf32>, %c: tensor<26200xf32>)
    -> (tensor<419200xf32>, tensor<104800xf32>, tensor<104800xf32>) {
  %0 = dist.all_gather over #dp %a dim 0 : (tensor<104800xf32>) -> tensor<419200xf32>
  %1 = dist.all_gather over #dp %b dim 0 : (tensor<26200xf32>) -> tensor<104800xf32>
  %2 = dist.all_gather over #dp %c dim 0 : (tensor<26200xf32>) -> tensor<104800xf32>
  return %0, %1, %2 : tensor<419200xf32>, tensor<104800xf32>, tensor<104800xf32>
}

// Bytes are bytes, for those who ask for it (B5).
// MEMORY-LABEL: func.func @element_types(
// AUTO-LABEL: func.func @element_types(
// AUTO-COUNT-2: dist.all_gather
// MIXED-LABEL: func.func @element_types(
// MIXED: dist.all_gather over #dp %arg0 dim 0, %arg1 dim 0 {{.*}} : (tensor<3xf32>, tensor<5xbf16>) -> (tensor<12xf32>, tensor<20xbf16>)
// MIXED: dist.all_reduce
// MIXED: dist.all_reduce
func.func @element_types(%a: tensor<3xf32>, %b: tensor<5xbf16>) -> (tensor<12xf32>, tensor<20xbf16>, tensor<3xf32>, tensor<5xbf16>) {
  %0 = dist.all_gather over #dp %a dim 0 : (tensor<3xf32>) -> tensor<12xf32>
  %1 = dist.all_gather over #dp %b dim 0 : (tensor<5xbf16>) -> tensor<20xbf16>
  %2 = dist.all_reduce sum over #dp %a : tensor<3xf32>
  %3 = dist.all_reduce sum over #dp %b : tensor<5xbf16>
  return %0, %1, %2, %3 : tensor<12xf32>, tensor<20xbf16>, tensor<3xf32>, tensor<5xbf16>
}

// Gathers come in order of first use: what its weight is cast from is an argument, so the second is moved up. In order
// of production it comes too late for the first.
// AUTO-LABEL: func.func @first_use(
// AUTO: aten.to_copy %arg1
// AUTO: aten.to_copy %arg2
// AUTO: dist.all_gather over #dp %{{.*}} dim 0, %{{.*}} dim 0 {
// AUTO: aten.linear
// PRODUCTION-LABEL: func.func @first_use(
// PRODUCTION: dist.all_gather over #dp %{{.*}} dim 0 {dist.alone
// PRODUCTION: aten.linear
// PRODUCTION: dist.all_gather over #dp %{{.*}} dim 0 {dist.alone
func.func @first_use(%x: tensor<4x8xbf16>, %a: tensor<2x8xf32>, %b: tensor<2x8xf32>) -> tensor<4x8xbf16> {
  %ca = aten.to_copy %a to bf16 : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  %wa = dist.all_gather over #dp %ca dim 0 : (tensor<2x8xbf16>) -> tensor<8x8xbf16>
  %y = aten.linear %x, %wa : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  %cb = aten.to_copy %b to bf16 : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  %wb = dist.all_gather over #dp %cb dim 0 : (tensor<2x8xbf16>) -> tensor<8x8xbf16>
  %z = aten.linear %y, %wb : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  return %z : tensor<4x8xbf16>
}
