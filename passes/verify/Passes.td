// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that change nothing and refuse what must not be.

#ifndef SHARDC_PASSES_VERIFY_PASSES_TD
#define SHARDC_PASSES_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyStage : Pass<"dist-verify-stage", "::mlir::ModuleOp"> {
  let summary = "Checks that a module has the form that a stage promises";
  let description = [{
    Every pipeline runs this at each boundary between stages, in release builds too. All violations are
    reported, those with one message together, and the pass fails if there is one. It changes nothing.

    | stage | ops | what else must hold |
    |---|---|---|
    | `imported` | `aten`, `dist.constrain`, `arith` | no layouts, no futures |
    | `placed` | `aten`, `dist.redistribute`, `arith` | every tensor has a layout; the layouts of every op's operands and results satisfy its sharding rule |
    | `local` | `aten`, synchronous collectives, `dist.axis_index`, `dist.extent`, `arith` | no layouts, no futures; an argument has an extent that some rank has in its `dist.layout` |
    | `scheduled` | as local, asynchronous collectives, `dist.wait` | a future is waited for at most once, or returned; collectives stand in the function's own block, so that their order is one |
    | `lowered` | `llvm` | external functions are those of libm and memcpy, memmove, memset |

    In all stages but `imported`, no op, argument or result has a `dist.sharding`: `dist-place` takes it off.
    In all stages but `lowered`, the new value of a buffer has the buffer's type and layout: the next run starts from it.

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
          clEnumValN(::shardc::Stage::Placed, "placed", "Every tensor has a layout"),
          clEnumValN(::shardc::Stage::Local, "local", "One rank's program with collectives"),
          clEnumValN(::shardc::Stage::Scheduled, "scheduled", "Collectives are asynchronous, in one order"),
          clEnumValN(::shardc::Stage::Lowered, "lowered", "LLVM"))}]>,
    Option<"orScheduled", "or-scheduled", "bool", "false",
           "With stage=local: a module in which anything is in flight is checked as scheduled. For passes that "
           "take one rank's program, whoever made its collectives">,
  ];
  let statistics = [
    Statistic<"numOps", "ops-checked", "Operations looked at">,
    Statistic<"numRules", "rules-checked", "Distinct combinations of sharding rule and layouts">,
  ];
}

#endif // SHARDC_PASSES_VERIFY_PASSES_TD
