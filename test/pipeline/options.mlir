// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stages one by one, the whole way at once, and mistakes in options of pipelines.

// Each step leaves what the whole way leaves there. (With locations, from which predictions have their names.)
// RUN: shard-opt --mlir-print-debuginfo %s --shardc-place="mesh=tp=2 place={{param:w=tp:S(0)},{output:0=tp:R}}" -o %t.placed
// RUN: shard-opt --mlir-print-debuginfo %s --shardc-compile="to=placed mesh=tp=2 place={{param:w=tp:S(0)},{output:0=tp:R}}" | diff %t.placed -
// RUN: shard-opt --mlir-print-debuginfo %t.placed --shardc-localize -o %t.local
// RUN: shard-opt --mlir-print-debuginfo %s --shardc-compile="to=local mesh=tp=2 place={{param:w=tp:S(0)},{output:0=tp:R}}" | diff %t.local -
// RUN: shard-opt --mlir-print-debuginfo %t.local --shardc-optimize-collectives -o %t.scheduled
// RUN: shard-opt --mlir-print-debuginfo %t.placed --shardc-compile="from=placed to=scheduled" | diff %t.scheduled -
// RUN: shard-opt --mlir-print-debuginfo %t.scheduled --shardc-specialize -o %t.specialized
// RUN: shard-opt --mlir-print-debuginfo %t.local --shardc-compile="from=local to=specialized" | diff %t.specialized -
// RUN: shard-opt --mlir-print-debuginfo %t.specialized --shardc-lower -o %t.lowered
// RUN: shard-opt --mlir-print-debuginfo %t.scheduled --shardc-compile="from=scheduled" | diff %t.lowered -
// RUN: shard-opt --mlir-print-debuginfo %s --shardc-compile="mesh=tp=2 place={{param:w=tp:S(0)},{output:0=tp:R}}" | diff %t.lowered -
// From a stage to itself it is verified.
// RUN: shard-opt --mlir-print-debuginfo %t.local --shardc-compile="from=local to=local" | diff %t.local -
// RUN: not shard-opt %t.local --shardc-compile="from=placed to=placed" 2>&1 | FileCheck %s --check-prefix=STAGE
// STAGE: error: {{.*}}a tensor without a layout

// Text with commas stands in braces; a pipeline is printed as it is read.
// RUN: shard-opt %s --shardc-place="mesh=dp=2,tp=2 place={{param:w=dp:S(0),tp:S(1)}}" | FileCheck %s --check-prefix=BOTH
// RUN: shard-opt %s --shardc-place="mesh=dp=2,tp=2 place={{param:w=dp:S(0),tp:S(1)}}" --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=DUMP
// BOTH: tensor<8x4xf32, #{{.*}}> {dist.kind = "parameter", dist.name = "w"}
// DUMP: dist-apply-plan{mesh=dp=2,tp=2 place={{[{][{]}}param:w=dp:S(0),tp:S(1){{[}][}]}} plan= random={{ *[}]}}

// A step takes only what it heeds.
// RUN: not shard-opt %s --shardc-localize=topology=h100-8 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: no such option topology
// RUN: not shard-opt %s --shardc-compile="from=local to=placed" 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: shardc-compile: the stage 'placed' comes before 'local'
// RUN: not shard-opt %t.local --shardc-optimize-collectives="memory-limit=much bucket-caps=big size=n=2" 2>&1 | FileCheck %s --check-prefix=SIZES
// SIZES: error: no symbol is named 'n'
// RUN: not shard-opt %t.local --shardc-optimize-collectives="memory-limit=much bucket-caps=big simplify=false" 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: bucket cap 'big' is not 'auto'
// WRONG: error: memory-limit: 'much' is not a number of bytes, e.g. 2GiB

func.func @forward(%x: tensor<3x4xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<8x4xf32> {dist.kind = "parameter", dist.name = "w"}) -> (tensor<3x8xf32> {dist.name = "y"}) {
  %0 = aten.linear %x, %w : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
  %1 = aten.relu %0 : (tensor<3x8xf32>) -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}
