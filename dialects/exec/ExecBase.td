// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect itself: what it is for, and the base classes of its attributes, types and operations.

#ifndef SHARDC_DIALECTS_EXEC_EXECBASE_TD
#define SHARDC_DIALECTS_EXEC_EXECBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::shardc::exec";
  let summary = "Describes the program of one rank: buffers, launches of kernels, products, collectives";
  let description = [{
    A local function becomes a program of this dialect when its values get memory. The ops are of three kinds:

    - the host program allocates buffers of the arena, launches kernels, multiplies matrices and runs collectives. It is
      straight-line code in functions marked `exec.entry`. Each of its ops corresponds to one service of
      `runtime/abi/shardrt_program.h`, whatever the target;
    - plan functions (`exec.plan`) compute where buffers lie whose sizes depend on symbols;
    - kernels (`exec.kernel`) are leaf functions over memrefs, which the target compiles. No two arguments of a kernel share
      memory, unless neither is written.

    | attribute | stands on | says |
    |---|---|---|
    | `exec.entry` | function | it is the program of one rank |
    | `exec.kernel` | function | it is a kernel |
    | `exec.writes` | kernel | the numbers of the arguments that it writes, each of them whole and exactly once |
    | `exec.in_place` | kernel | the numbers of the written arguments that it reads as well, each element before it is written and at the same place |
    | `exec.in_place` | entry | (without a value) outputs that are new values of parameters are in the memory of these |
    | `exec.outlined` | kernel | it has its binary interface |
    | `exec.messages` | function of a device | the messages that it may record as the failure of the run, by number |
    | `exec.shared_bytes` | function of a device | dynamic shared memory of each of its blocks, in bytes |
    | `exec.argument` | argument of an entry | an `#exec.argument`: whether it is an input, a parameter or an output |
    | `exec.index` | argument of an entry | its number among those of its kind, where it is not the order of the arguments |
    | `exec.extents` | argument of an entry | the size of each dim as `#dist.extents`, where one is dynamic |
    | `exec.updates` | argument of an entry | of an output: the number of the parameter whose new value it is |
    | `exec.arena_bytes` | entry | the size of its arena, where it is known |
    | `exec.plan` | entry | the plan function, where the size of the arena depends on symbols |
    | `exec.plan` | function | (without a value) it is a plan function |
    | `exec.slots` | entry | how many offsets its plan function computes |
    | `exec.memory` | entry | what one rank needs memory for (`exec-account-memory`) |
    | `exec.name` | call | the name that traces and messages have for a kernel that is called |
    | `exec.program` | module | what the manifest says about the program (`exec-describe-program`) |
    | `exec.groups`, `exec.collectives`, `exec.ops`, `exec.uses_blas` | module | the tables of the artifact |
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

class Exec_Attr<string name, string mnemonicName> : AttrDef<Exec_Dialect, name> {
  let mnemonic = mnemonicName;
}

class Exec_Type<string name, string mnemonicName> : TypeDef<Exec_Dialect, name> {
  let mnemonic = mnemonicName;
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

#endif // SHARDC_DIALECTS_EXEC_EXECBASE_TD
