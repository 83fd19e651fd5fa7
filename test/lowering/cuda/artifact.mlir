// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a program to an artifact for devices.
// RUN: rm -rf %t && mkdir -p %t
// RUN: shardc compile %s --mesh tp=1 --target=cuda:emulated -o %t/emulated.so
// RUN: shard-run --manifest %t/emulated.so | FileCheck %s --check-prefix=MANIFEST
// MANIFEST: "parameters":[{"layout":"[R]","mutable":false,"names":["constant:constant"],"shape":[4],"source":"constant","type":"f32"}]
// MANIFEST-SAME: "target":{"chips":[],"cpu":"x86-64","emulated":true,"features":[],"kind":"cuda"
// RUN: llvm-nm -D --defined-only %t/emulated.so | FileCheck %s --check-prefix=SYMBOLS
// SYMBOLS: T shardrt_query
// SYMBOLS-NOT: {{[^[:space:]]}}

// The image is LLVM IR for the device, in which functions of libdevice are calls. Memory that is only read says so, and whole
// vectors are moved where they are aligned.
// RUN: llvm-objcopy -O binary --only-section=.nv_fatbin --set-section-flags .nv_fatbin=alloc %t/emulated.so %t/kernels.bc
// RUN: llvm-dis %t/kernels.bc -o - | FileCheck %s --check-prefix=BITCODE
// BITCODE: target triple = "nvptx64-nvidia-cuda"
// BITCODE: declare float @__nv_expf(float)
// BITCODE: define ptx_kernel void @{{[a-z_]*}}(ptr {{[^,]*}}%0, i32 %1, ptr noalias readonly {{[^,]*}}%2
// BITCODE: load <4 x float>, ptr %{{.*}}, align 16
// BITCODE: "nvvm.maxntid"=

// The same bytes every time.
// RUN: mkdir %t/again && shardc compile %s --mesh tp=1 --target=cuda:emulated -o %t/again/emulated.so
// RUN: cmp %t/emulated.so %t/again/emulated.so

// Chips that there are none of, and a toolkit that is not where it is said to be.
// RUN: not shardc compile %s --mesh tp=1 --target=cuda:sm_91,gfx942 -o %t/m.so 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: target 'cuda': 'sm_91' is no chip that kernels are compiled for; did you mean sm_90?; 'gfx942' is no chip that kernels are compiled for (use sm_80, sm_90, sm_100 or emulated, chips also as a list with commas)
// RUN: env SHARDC_PTXAS=%t/nothing not shardc compile %s --mesh tp=1 --target=cuda -o %t/m.so 2>&1 | FileCheck %s --check-prefix=PTXAS
// PTXAS: error: --target: SHARDC_PTXAS is '{{.*}}nothing', which is no program that can be run

// It is missing before anything is compiled, and told with what else is wrong.
// RUN: env SHARDC_PTXAS=%t/nothing not shardc compile %t/no-model.mlir --mesh tp=1 --target=cuda:sm_80 -o %t/no-folder/m.so 2>&1 | FileCheck %s --check-prefix=FIRST
// FIRST: error: --target: SHARDC_PTXAS is '{{.*}}nothing', which is no program that can be run
// FIRST-NEXT: error: cannot write '{{.*}}no-folder/m.so': there is no folder
// RUN: env SHARDC_PTXAS=%t/nothing shardc compile %s --mesh tp=1 --target=cuda:emulated -o %t/m.so
func.func @forward(%x: tensor<64x4096xf32>, %z: tensor<4xf32>) -> (tensor<64x4096xf32>, tensor<4xf32>) {
  %0 = aten.relu %x : (tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %1 = aten.exp %0 : (tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %c = aten.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %2 = aten.add %z, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<64x4096xf32>, tensor<4xf32>
}
