// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_ARTIFACT_PASSES_TD
#define SHARDC_LOWERING_ARTIFACT_PASSES_TD

include "mlir/Pass/PassBase.td"

def DescribeProgram : Pass<"exec-describe-program", "::mlir::ModuleOp"> {
  let summary = "Notes at the module what the artifact's manifest says about the program";
  let description = [{
    Form: specialized -> the same, before buffers are assigned, which forgets it. `exec.program` has the mesh, symbols
    and constraints, the parameters (with `exec.index` at the arguments, which numbers them through all entries), and
    for each entry its inputs and outputs, its functions, which rank runs which, and what a call is predicted to take.
    What the runtime cannot hold (an element type, a dynamic size without a name, two inputs of one name) is an error;
    all are reported.

    Before:
    ```mlir
    func.func @f(%x: tensor<8xf32> {dist.kind = "input", dist.name = "x"}, %w: tensor<8xf32> {dist.kind = "parameter", dist.name = "w"})
        -> (tensor<8xf32> {dist.name = "y"}) {
      %y = aten.add %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      return %y : tensor<8xf32>
    }
    ```

    After, in part:
    ```mlir
    module attributes {exec.program = {constraints = [], entries = [{inputs = [{kind = "user", layout = "[]", names = ["x"], shape = [8], type = 1 : i32...name = "f", ...parameters = [{constant = false, ...names = ["w"], ...
    func.func @f(...dist.name = "w", exec.index = 0 : i64})...
    ```
  }];
  let statistics = [Statistic<"numEntries", "entries", "Entries described">,
                    Statistic<"numParameters", "parameters", "Parameters described">];
}

def CheckMemory : Pass<"exec-check-memory", "::mlir::ModuleOp"> {
  let summary = "Refuses a program that needs more memory on some rank than a limit";
  let description = [{
    After `exec-account-memory`, of a module that `exec-describe-program` has described. Where a rank's slices of
    parameters, inputs, outputs and arena take more than `limit` in all, the error says what takes them: the modules
    whose parameters and intermediate results take most, the largest parameters, and the buffers that live at the peak. It changes nothing.

    Refused, with `limit=4KiB`:
    ```mlir
    module attributes {exec.program = {
        constraints = [], mesh = {}, parameters = [], sequences = "", symbols = [], world_size = 1 : i64,
        entries = [{name = "f", inputs = [], outputs = [], variants = ["f"], variant_of_rank = array<i32: 0>} ]}} {
      // expected-error @+5 {{'f' needs 6720 bytes (6.6 KiB) on rank 0, the limit is 4096 bytes (4.0 KiB)}}
      // expected-note @unknown {{4096 bytes (4.0 KiB): up, intermediate results}}
      // expected-note @unknown {{arena of intermediate results: 4096 bytes (4.0 KiB); most of it at once for}}
      // expected-note @unknown {{slices of 2 parameters: 2112 bytes (2.1 KiB)}}
      // expected-note @unknown {{inputs and outputs: 512 bytes}}
      func.func @f() attributes {exec.entry, exec.memory = {
          parameters = array<i64: 2048, 64>, caller = 512 : i64, arena = 4096 : i64, peak = [[4096 : i64, "up (model.py:8)"]],
          modules = [[4096 : i64, "up"]]}} {
        return
      }
    }
    ```
  }];
  let options = [
    Option<"limit", "limit", "std::string", "", "The most bytes that one rank may need, e.g. 2GiB; without: no limit">,
  ];
  let statistics = [Statistic<"numChecked", "checked", "Entries held against the limit">];
}

#endif // SHARDC_LOWERING_ARTIFACT_PASSES_TD
