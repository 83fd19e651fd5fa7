// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text between the two passes is the whole of what dist-place reads: written, re-written by a person's hand (other
// names, other forms) or as bytecode, and read again, it gives the program that comes of both passes in one run.

// RUN: shard-opt %S/place.mlir "--dist-apply-plan=mesh=dp=2,tp=4 place=input:0=dp:S(0) place=module:up=colwise" --dist-propagate --mlir-print-debuginfo -o %t.0
// RUN: shard-opt %t.0 --dist-place -o %t.0.apart
// RUN: shard-opt %S/place.mlir "--dist-apply-plan=mesh=dp=2,tp=4 place=input:0=dp:S(0) place=module:up=colwise" --dist-propagate --dist-place -o %t.0.together
// RUN: diff %t.0.apart %t.0.together
// RUN: shard-opt %t.0 --mlir-print-op-generic -o %t.0.generic
// RUN: shard-opt %t.0.generic --dist-place | diff - %t.0.together
// RUN: shard-opt %t.0 --emit-bytecode -o %t.0.bc
// RUN: shard-opt %t.0.bc --dist-place | diff - %t.0.together
// RUN: sed -e 's/#sharding_/#mine_/g' -e 's/%%\([0-9]\)/%%value\1/g' %t.0 > %t.0.edited
// RUN: shard-opt %t.0.edited --dist-place | diff - %t.0.together
// RUN: shard-opt %S/invariant.mlir "--dist-apply-plan=mesh=tp=4 place=output:0=tp:S(1)" --dist-propagate --mlir-print-debuginfo -o %t.1
// RUN: shard-opt %t.1 --dist-place -o %t.1.apart
// RUN: shard-opt %S/invariant.mlir "--dist-apply-plan=mesh=tp=4 place=output:0=tp:S(1)" --dist-propagate --dist-place -o %t.1.together
// RUN: diff %t.1.apart %t.1.together
// RUN: shard-opt %t.1 --mlir-print-op-generic -o %t.1.generic
// RUN: shard-opt %t.1.generic --dist-place | diff - %t.1.together
// RUN: shard-opt %t.1 --emit-bytecode -o %t.1.bc
// RUN: shard-opt %t.1.bc --dist-place | diff - %t.1.together
// RUN: sed -e 's/#sharding_/#mine_/g' -e 's/%%\([0-9]\)/%%value\1/g' %t.1 > %t.1.edited
// RUN: shard-opt %t.1.edited --dist-place | diff - %t.1.together
// RUN: shard-opt %S/propagate/directions.mlir --dist-propagate 2>/dev/null | shard-opt --dist-place -o %t.directions 2>/dev/null
// RUN: shard-opt %S/propagate/directions.mlir --dist-propagate --dist-place 2>/dev/null | diff - %t.directions
// RUN: shard-opt %S/propagate/priorities.mlir --dist-propagate 2>/dev/null | shard-opt --dist-place -o %t.priorities 2>/dev/null
// RUN: shard-opt %S/propagate/priorities.mlir --dist-propagate --dist-place 2>/dev/null | diff - %t.priorities
// RUN: shard-opt %S/propagate/conflicts.mlir --dist-propagate 2>/dev/null | shard-opt --dist-place -o %t.conflicts 2>/dev/null
// RUN: shard-opt %S/propagate/conflicts.mlir --dist-propagate --dist-place 2>/dev/null | diff - %t.conflicts
// RUN: shard-opt %S/propagate/ties.mlir --dist-propagate 2>/dev/null | shard-opt --dist-place -o %t.ties 2>/dev/null
// RUN: shard-opt %S/propagate/ties.mlir --dist-propagate --dist-place 2>/dev/null | diff - %t.ties
// RUN: shard-opt %S/propagate/storage.mlir --dist-propagate 2>/dev/null | shard-opt --dist-place -o %t.storage 2>/dev/null
// RUN: shard-opt %S/propagate/storage.mlir --dist-propagate --dist-place 2>/dev/null | diff - %t.storage
// RUN: shard-opt %S/propagate/partial.mlir --dist-propagate 2>/dev/null | shard-opt --dist-place -o %t.partial 2>/dev/null
// RUN: shard-opt %S/propagate/partial.mlir --dist-propagate --dist-place 2>/dev/null | diff - %t.partial
// RUN: shard-opt %S/propagate/granules.mlir --dist-propagate 2>/dev/null | shard-opt --dist-place -o %t.granules 2>/dev/null
// RUN: shard-opt %S/propagate/granules.mlir --dist-propagate --dist-place 2>/dev/null | diff - %t.granules
// RUN: shard-opt %S/propagate/axes.mlir --dist-propagate 2>/dev/null | shard-opt --dist-place -o %t.axes 2>/dev/null
// RUN: shard-opt %S/propagate/axes.mlir --dist-propagate --dist-place 2>/dev/null | diff - %t.axes
// RUN: shard-opt %S/propagate/constraints.mlir --dist-propagate 2>/dev/null | shard-opt --dist-place -o %t.constraints 2>/dev/null
// RUN: shard-opt %S/propagate/constraints.mlir --dist-propagate --dist-place 2>/dev/null | diff - %t.constraints
// RUN: shard-opt %S/propagate/invariant.mlir --dist-propagate 2>/dev/null | shard-opt --dist-place -o %t.invariant 2>/dev/null
// RUN: shard-opt %S/propagate/invariant.mlir --dist-propagate --dist-place 2>/dev/null | diff - %t.invariant

// Not all were empty.
// RUN: FileCheck %s --input-file %t.0.together
// RUN: FileCheck %s --input-file %t.storage
// CHECK: dist.redistribute
