// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code for real chips, where ptxas is installed: machine code for each chip, and PTX of the highest.
// REQUIRES: ptxas
// RUN: rm -rf %t && mkdir -p %t
// RUN: shardc compile %s --mesh tp=1 --target=cuda:sm_90,sm_80 -o %t/m.so
// RUN: shard-run --manifest %t/m.so | FileCheck %s --check-prefix=MANIFEST
// MANIFEST: "chips":["sm_80","sm_90"],"cpu":"x86-64","emulated":false,"features":[],"kind":"cuda"
// RUN: llvm-objcopy -O binary --only-section=.nv_fatbin --set-section-flags .nv_fatbin=alloc %t/m.so %t/images
// RUN: llvm-strings %t/images | FileCheck %s
// CHECK-DAG: .nv.info.
// CHECK-DAG: .target sm_90
// The runtime reads there which drivers take the code.
// CHECK-DAG: Cuda compilation tools, release
// CHECK-DAG: .maxntid
// Denormals are kept, products and sums become one instruction, and what is only read is loaded as vectors by the read-only path.
// RUN: llvm-strings %t/images | FileCheck %s --check-prefix=CODE
// CODE: .visible .entry
// CODE-NOT: .ftz.f32
// CODE: ld.global.nc.v4.b32
// CODE-NOT: .ftz.f32
// CODE: fma.rn.f32

// No machine code of these two runs on sm_90: it gets the PTX of sm_80.
// RUN: shardc compile %s --mesh tp=1 --target=cuda:sm_80,sm_100 -o %t/gap.so
// RUN: llvm-objcopy -O binary --only-section=.nv_fatbin --set-section-flags .nv_fatbin=alloc %t/gap.so %t/images
// RUN: llvm-strings %t/images | FileCheck %s --check-prefix=GAP
// GAP-DAG: .target sm_80
// GAP-DAG: .target sm_100

// A program that needs libdevice is refused by the names of its kernels where there is none; this one needs none.
// RUN: env SHARDC_LIBDEVICE=%t/nothing shardc compile %s --mesh tp=1 --target=cuda:sm_90 -o %t/m.so
// RUN: sed 's/aten.mul %x, %w/aten.pow %x, %w/' %s > %t/pow.mlir
// RUN: env SHARDC_LIBDEVICE=%t/nothing not shardc compile %t/pow.mlir --mesh tp=1 --target=cuda:sm_90 -o %t/n.so 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: these kernels need functions of NVIDIA's libdevice, but SHARDC_LIBDEVICE is '{{.*}}nothing', which does not exist: kernel '{{[a-z_]*}}': __nv_powf. Install the CUDA toolkit, or run '{{.*}}/.venv/bin/pip install --no-deps nvidia-cuda-nvcc=={{[0-9.]+}} nvidia-nvvm=={{[0-9.]+}}', or name the file
func.func @forward(%x: tensor<64x4096xf32>, %w: tensor<64x4096xf32>) -> tensor<64x4096xf32> {
  %0 = aten.mul %x, %w : (tensor<64x4096xf32>, tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %1 = aten.add %0, %x : (tensor<64x4096xf32>, tensor<64x4096xf32>) -> tensor<64x4096xf32>
  return %1 : tensor<64x4096xf32>
}
