// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// MLIR's own options, from shardc.

// RUN: shardc compile %s --mesh tp=2 --place "param:w=tp:S(0)" --place "output:y=tp:R" -o %t.so --mlir-print-ir-after=dist-place 2>&1 | FileCheck %s --check-prefix=AFTER
// AFTER: IR Dump After PlaceTensors (dist-place)
// AFTER: dist.redistribute
// AFTER-NOT: IR Dump
// RUN: shardc explain %s --mesh tp=2 --place "param:w=tp:S(0)" --place "output:y=tp:R" -o %t.txt --mlir-print-ir-before-all --mlir-disable-threading --mlir-print-ir-module-scope 2>&1 | FileCheck %s --check-prefix=BEFORE
// BEFORE: IR Dump Before VerifyStage (dist-verify-stage)
// BEFORE: IR Dump Before Specialize (dist-specialize)
// BEFORE: {{^}}module attributes
// RUN: shardc compile %s --mesh tp=2 --place "param:w=tp:S(0)" --place "output:y=tp:R" -o %t.so --mlir-timing --mlir-timing-display=list 2>&1 | FileCheck %s --check-prefix=TIMING
// TIMING: Execution time report
// TIMING: Total
// RUN: shardc compile %s --mesh tp=2 --place "param:w=tp:S(0)" --place "output:y=tp:R" -o %t.so --mlir-pass-statistics 2>&1 | FileCheck %s --check-prefix=STATISTICS
// RUN: shardc compile %s --mesh tp=2 --place "param:w=tp:S(0)" --place "output:y=tp:R" -o %t.so --pass-statistics 2>&1 | FileCheck %s --check-prefix=STATISTICS
// RUN: shard-opt %s --shardc-place="mesh=tp=2 place=param:w=tp:S(0),output:y=tp:R" -o %t.mlir --mlir-pass-statistics 2>&1 | FileCheck %s --check-prefix=STATISTICS
// STATISTICS: dist-place
// STATISTICS-NEXT: (S) 1 redistributions - Redistributions inserted

// Without any of them it is silent.
// RUN: shardc compile %s --mesh tp=2 --place "param:w=tp:S(0)" --place "output:y=tp:R" -o %t.so 2>&1 | count 0

// What fails can be run again by itself, from the beginning or from where it fails.
// RUN: not shardc compile %s --mesh dp=1,tp=2 --place "param:w=dp:R,tp:S(0)" --place "output:y=tp:R" --memory-limit 100B -o %t.so --mlir-pass-pipeline-crash-reproducer=%t.again.mlir 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not shard-opt --run-reproducer %t.again.mlir 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not shardc compile %s --mesh tp=2 --place "param:w=tp:S(0)" --place "output:y=tp:R" --memory-limit 100B -o %t.so --mlir-disable-threading --mlir-pass-pipeline-crash-reproducer=%t.local.mlir --mlir-pass-pipeline-local-reproducer 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: FileCheck %s --check-prefix=LOCAL --input-file %t.local.mlir
// RUN: not shard-opt --run-reproducer %t.local.mlir 2>&1 | FileCheck %s --check-prefix=LIMIT
// LIMIT: error: 'forward' needs {{[0-9]+}} bytes on rank 0 and 1 more, the limit is 100 bytes
// LOCAL: pipeline: "builtin.module(exec-check-memory{limit=100B})"

// The op of an error, for those who ask.
// RUN: not shardc compile %s --mesh tp=2 --place "param:w=tp:S(0)" --place "output:y=tp:R" --memory-limit 100B -o %t.so --mlir-print-op-on-diagnostic --size n=3 2>&1 | FileCheck %s --check-prefix=OP
// OP: error: no symbol is named 'n'
// OP: note: see current operation:
// RUN: not shardc compile %s --mesh tp=2 --place "param:w=tp:S(0)" --place "output:y=tp:R" -o %t.so --size n=3 2>&1 | FileCheck %s --check-prefix=NO-OP
// NO-OP-NOT: see current operation

// Help lists them apart from those of the command, and only where there are passes.
// RUN: shardc simulate --help | FileCheck %s --check-prefix=HELP
// RUN: shardc compile --help | FileCheck %s --check-prefix=HELP
// HELP: Options of MLIR:
// HELP: --mlir-pass-pipeline-crash-reproducer
// HELP: --mlir-print-ir-after=<pass-arg>
// HELP: --mlir-timing
// HELP: Options of shardc
// RUN: shardc --help | FileCheck %s --check-prefix=NO-HELP
// RUN: shardc export --help | FileCheck %s --check-prefix=NO-HELP
// NO-HELP-NOT: {{^}}  --mlir-

func.func @forward(%x: tensor<3x4xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<8x4xf32> {dist.kind = "parameter", dist.name = "w"}) -> (tensor<3x8xf32> {dist.name = "y"}) {
  %0 = aten.linear %x, %w : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
  %1 = aten.relu %0 : (tensor<3x8xf32>) -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}
