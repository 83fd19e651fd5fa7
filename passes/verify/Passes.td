// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that change nothing and refuse modules that are not as they should be.

#ifndef SHARDC_PASSES_VERIFY_PASSES_TD
#define SHARDC_PASSES_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyStage : Pass<"dist-verify-stage", "::mlir::ModuleOp"> {
  let summary = "Checks that a module has the form that a stage promises";
  let description = [{
    Every pipeline runs this pass at each boundary between stages, in release builds too. All violations are
    reported, those with one message together, and the pass fails if there is one. It changes nothing.

    | stage | ops | what else must hold |
    |---|---|---|
    | `imported` | `aten`, `dist.constrain`, `arith` | no layouts, no futures |
    | `half-placed` | as placed, and `dist.constrain` | a tensor has a layout or none. The results of an op have layouts all or none; if they have, so have its operands (but for a `dist.redistribute`), and they satisfy its sharding rule |
    | `placed` | `aten`, `dist.redistribute`, `arith` | every tensor has a layout; the layouts of every op's operands and results satisfy its sharding rule |
    | `local` | `aten`, synchronous collectives, `dist.axis_index`, `dist.extent`, `arith` | no layouts, no futures; an argument has an extent that some rank has in its `dist.layout` |
    | `scheduled` | as local, asynchronous collectives, `dist.wait` | a future is waited for at most once, or returned; collectives stand in the function's own block, so that their order is one |
    | `specialized` | as local or scheduled | `dist.specializations` names every function, and a dim is dynamic only where the function has symbols |
    | `planned` | in entries: `exec` (buffers, launches, products, attention, collectives, tokens), views (`memref.reinterpret_cast`), `dist.axis_index`, `dist.extent`, `arith`; in kernels: `aten`, `arith`, `linalg`, `tensor`, `bufferization` | every buffer lies inside the arena; buffers in use at the same time lie apart, and those of a collective in flight are in use until its wait; nothing writes what a collective in flight reads, or touches what it writes; no op writes memory that another of its operands is; a token is waited for at most once; static views lie in their buffers |
    | `lowered` | `llvm`; in a `gpu.module` also `nvvm` | external functions are those of libm and memcpy, memmove, memset, and in a `gpu.module` those of libdevice |

    From `placed` to `scheduled`, no op, argument or result has a `dist.sharding`: `dist-place` takes it off.
    In the stages up to `scheduled`, the new value of a buffer has the buffer's type and layout: the next run starts from it.

    Where sizes depend on symbols, offsets are what the plan function computes. It is shown for all sizes that buffers lie apart
    and in the arena, and what cannot be shown is an error. What is not checked, and counted instead: that views whose sizes
    are not known stay in their buffers, and that two such views of one buffer lie apart where a collective in flight uses
    one of them.

    `--dist-verify-stage=placed` and `--dist-verify-stage=stage=placed` are the same.

    Refused, with `placed`:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #P = #dist.layout<#mesh, [P(sum)]>
    func.func @f(%x: tensor<8xf32, #P>) -> tensor<8xf32, #P> {
      // expected-error @+1 {{axis "tp": operand 0 is P(sum), but the op is not linear in it: reduce it first}}
      %y = aten.relu %x : (tensor<8xf32, #P>) -> tensor<8xf32, #P>
      return %y : tensor<8xf32, #P>
    }
    ```
  }];
  let options = [
    Option<"stage", "stage", "::shardc::Stage", "::shardc::Stage::Imported", "Which stage",
      [{::llvm::cl::values(
          clEnumValN(::shardc::Stage::Imported, "imported", "Global shapes, single-device semantics"),
          clEnumValN(::shardc::Stage::HalfPlaced, "half-placed", "Some tensors have layouts; the others are to be placed around them"),
          clEnumValN(::shardc::Stage::Placed, "placed", "Every tensor has a layout"),
          clEnumValN(::shardc::Stage::Local, "local", "One rank's program with collectives"),
          clEnumValN(::shardc::Stage::Scheduled, "scheduled", "Collectives are asynchronous, in one order"),
          clEnumValN(::shardc::Stage::Specialized, "specialized", "One function for each kind of rank"),
          clEnumValN(::shardc::Stage::Planned, "planned", "Buffers have places in the arena"),
          clEnumValN(::shardc::Stage::Lowered, "lowered", "LLVM"))}]>,
    Option<"orScheduled", "or-scheduled", "bool", "false",
           "With stage=local, checks a module with a collective in flight as scheduled. It is for passes that "
           "take one rank's program of either stage">,
  ];
  let statistics = [
    Statistic<"numOps", "ops-checked", "Operations looked at">,
    Statistic<"numUnproven", "views-unproven", "Views (and pairs of them) of which it cannot be shown here that they stay in their buffers (or lie apart)">,
    Statistic<"numRules", "rules-checked", "Distinct combinations of sharding rule and layouts">,
  ];
}

def VerifyKernels : Pass<"exec-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "Checks that kernels write each of their destinations exactly once";
  let description = [{
    A kernel over memory says with `exec.writes` which of its arguments it writes. This pass looks at what the body
    does, in every form from tensors with destinations over linalg and loops to LLVM's dialect, through views, loop
    bodies that became functions, and tasks for the runtime's threads. The pipelines run it after each change of form,
    in release builds too. It reports, all at once:

    - a destination that nothing writes, that is read before it is written, or that two ops write (what is computed
      from what was read there, as each step of a reduction, is an update and no second write);
    - a write to an argument that is no destination;
    - of a destination that is read as well (`exec.in_place`): an op that computes an element from another one of the old value, and
      one that reads the old value and may run behind the write (looked at while ops are `linalg` on tensors);
    - a buffer of the kernel's own that is read before anything is written to it;
    - a write in a parallel loop to a place that does not depend on the iteration;
    - an op that gets memory and does not say what it does with it.

    On a device (in a `gpu.launch`, or a `gpu.func` that is launched) several threads and ops write parts of one destination: those with
    whole vectors of it, say, and those at its end. Reported are also:

    - a launch that writes a destination that another launch before it has written, unless conditions of the host let only one of them
      run;
    - a write at a place that is the same for all threads of a block, for all blocks, or for all iterations of a loop, unless what
      guards it is not;
    - two ops that write one element in one thread: their positions are compared as sums of products, and they are no violation
      where the conditions around them exclude each other.

    Positions that cannot be compared so are counted, not reported.

    That *all* elements of a destination are written is not proved here: `shard-run --check` finds those that are not.

    Refused:
    ```mlir
    // expected-error @+1 {{kernel 'k' never writes argument 2: every destination is written exactly once}}
    func.func private @k(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>)
        attributes {exec.kernel, exec.writes = array<i64: 1, 2>} {
      linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    ```
  }];
  let statistics = [Statistic<"kernels", "kernels-checked", "Kernels looked at">,
                    Statistic<"unproven", "parts-unproven", "Writes of a launch of which it cannot be shown here that they are apart from "
                              "others of the same destination">];
}

#endif // SHARDC_PASSES_VERIFY_PASSES_TD
