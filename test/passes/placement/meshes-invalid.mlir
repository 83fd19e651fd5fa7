// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: printf 'mesh: {tp: 2}\nmeshes:\n  readers: {io: 2, devices: [4, 5]}\n  twice: {io: 2, devices: [4, 4]}\n  S(0): {io: 2}\ninputs:\n  x: {mesh: writers, io: S(0)}\n  0: {mesh: readers, tp: S(0)}\n  "*": {mesh: readers, io: S(7)}\nmodules: {fc: {mesh: readers}}\nparameters: {w: {mesh: readers, io: S(0)}}\n' > %t.yaml
// RUN: not shard-opt %s --dist-apply-plan=plan=%t.yaml 2>&1 | FileCheck %s --check-prefix=READ
// RUN: not shard-opt %s "--dist-apply-plan=mesh=tp=2 other-mesh={{readers:io=2,devices=[4,5]}} place={{input:x=mesh:writers,io:S(0)},{input:0=mesh:readers,tp:S(0)},{output:0=mesh:readers,io:S(7)}}" 2>&1 | FileCheck %s --check-prefix=FIT
// RUN: not shard-opt %s "--dist-apply-plan=mesh=tp=2 other-mesh={{readers:io=2,devices=[4,5]}} place={{input:x=tp:S(0)},{input:0=mesh:readers}}" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not shard-opt %s "--dist-apply-plan=mesh=tp=2 place=input:x=mesh:readers" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not shard-opt %s "--dist-apply-plan=mesh=tp=2,devices=[0,1,2] other-mesh={{far:io=2,devices=[0,70000]},{io=2}}" 2>&1 | FileCheck %s --check-prefix=DEVICES

// All mistakes at once.
// READ: error: {{.*}}.yaml:4: mesh 'twice': {{.*}}4
// READ: error: {{.*}}.yaml:5: 'S(0):io=2' is not NAME:AXIS=SIZE; e.g. readers:io=2,devices=[4,5]
// READ: error: {{.*}}.yaml:10: 'mesh:readers' for 'fc': only inputs and outputs may be on another mesh; modules compute, and their parameters are, on the mesh of the program
// READ: error: {{.*}}.yaml:11: 'mesh:readers' for 'w': only inputs and outputs

// FIT: error: --place input:x=mesh:writers,io:S(0): there is no mesh 'writers'; the meshes are readers
// FIT: error: --place input:0=mesh:readers,tp:S(0): the mesh 'readers' has no axis 'tp'; it has io
// FIT: error: --place output:0=mesh:readers,io:S(7): io:S(7) does not fit 'y'

// BOTH: error: --place input:0=mesh:readers: '0' puts 'x' on the mesh 'readers', but 'x' (--place input:x=tp:S(0)) on the mesh of the program

// NONE: error: --place input:x=mesh:readers: there is no mesh 'readers'; name it in the plan (meshes: {readers: {io: 2, devices: [4, 5]}}) or on the command line (--other-mesh readers:io=2,devices=[4,5])

// DEVICES: error: mesh: {{.*}}3
// DEVICES: error: --other-mesh far:io=2,devices=[0,70000]: mesh 'far': rank 70000 is outside of every world: ranks are 0 to 65535
// DEVICES: error: --other-mesh io=2: 'io=2' is not NAME:AXIS=SIZE

func.func @forward(%x: tensor<8x6xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<4x6xf32> {dist.kind = "parameter", dist.name = "w"}) -> (tensor<8x4xf32> {dist.name = "y"}) {
  %y = aten.linear %x, %w : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32> loc("fc")
  return %y : tensor<8x4xf32>
}
