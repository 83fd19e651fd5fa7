// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COLLECTIVES_ATTENTIONPASSES_TD
#define SHARDC_PASSES_COLLECTIVES_ATTENTIONPASSES_TD

include "passes/collectives/MovePasses.td"

def RingAttention : Pass<"dist-ring-attention", "::mlir::ModuleOp"> {
  let summary = "Lets blocks of keys and values go around a ring of ranks instead of gathering them";
  let description = [{
    Form: local -> local, scheduled -> scheduled. Where a sequence is sharded, each rank has some queries, and gathers the keys and values of
    all ranks. In a ring of n ranks it has one block of them at a time: at step t that of the rank t positions before it, which it sends
    to the next rank (`dist.permute`) while it computes with it. The results of the blocks are combined by their logsumexp: each
    counts as much as its part of the sum by which the softmax of all keys divides, which is exact up to rounding. They are formed in the type of sums
    (f32 for shorter types), and rounded once, at the end.

    In the backward each rank makes cotangents of its queries, which it adds up, and of the block that it has. The latter go around with
    the block, one step behind it, and each rank adds its own; the block's owner adds its part last. This takes the place
    of the gathers and the reduce-scatters. The sums that travel have the type of sums, too: in f16 and bf16 they take twice the bytes
    of a reduce-scatter, and lose nothing at each hop.

    Causal attention computes nothing of a block whose keys no query of the rank sees: the rank takes no keys of it. Then the last rank has
    most to do and the first one least, and at each step some rank has a whole block. In the *balanced* form the sequence is cut into 2 n
    chunks, and the rank at position p works on the chunks p and 2 n - 1 - p, whose queries, keys and values it gets from their
    owners. At each step it then computes two products of chunks, on every rank: those of its higher chunk with the lower one of the block, and those of
    both lower ones, where the block's owner is before it, or of both higher ones. Outputs and cotangents go back to the owners.

    What is found is an attention (or its backward) whose keys and values come from all-gathers over one group along their sequence. Views and casts may stand between
    them, and are made of each block. A mask is cut into the columns of the blocks. Shares may be unequal; the balanced form needs
    equal ones of an even number of rows. Statistics count what stays as it is.

    With `mode=auto`, all such attention becomes a ring, balanced or not, where the scheduled program is predicted to be at least 1 % better under the
    same memory limit, on nominal times and on slower networks (`robust`), and where it does not fit into the memory limit as it is and rings do.
    Programs of more than 4,096 steps of rings in a function are not compared, and stay as they are.
    `mode=all` makes rings of all that can be, and `mode=balanced` balanced ones where that is possible.

    Before, with `mode=all`:
    ```mlir
    #mesh = #dist.mesh<["sp" = 2]>
    #sp = #dist.axes<#mesh, ["sp"]>
    func.func @forward(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
      %keys = dist.all_gather over #sp %k dim 2 : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
      %values = dist.all_gather over #sp %v dim 2 : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
      %y = aten.scaled_dot_product_attention %q, %keys, %values
          : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
      return %y : tensor<1x2x4x8xf32>
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["sp" = 2]>
    #sp = #dist.axes<#mesh, ["sp"]>
    func.func @forward(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
      %b:2 = dist.permute over #sp pairs [[0, 1], [1, 0]] %k, %v : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
      %o0, %l0 = aten.scaled_dot_product_flash_attention %q, %k, %v partial
          : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
      %o1, %l1 = aten.scaled_dot_product_flash_attention %q, %b#0, %b#1 partial
          : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
      %none = aten.constant dense<0xFF800000> : tensor<f32>
      %zero = aten.constant dense<0.000000e+00> : tensor<f32>
      %most = aten.maximum %l0, %l1 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
      %unseen = aten.eq %most, %none : (tensor<1x2x4xf32>, tensor<f32>) -> tensor<1x2x4xi1>
      %shift = aten.where %unseen, %zero, %most : (tensor<1x2x4xi1>, tensor<f32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
      %s0 = aten.sub %l0, %shift : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
      %e0 = aten.exp %s0 : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
      %s1 = aten.sub %l1, %shift : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
      %e1 = aten.exp %s1 : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
      %sum = aten.add %e0, %e1 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
      %one = aten.constant dense<1.000000e+00> : tensor<f32>
      %total = aten.maximum %sum, %one : (tensor<1x2x4xf32>, tensor<f32>) -> tensor<1x2x4xf32>
      %p0 = aten.div %e0, %total : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
      %w0 = aten.unsqueeze %p0 dim 3 : (tensor<1x2x4xf32>) -> tensor<1x2x4x1xf32>
      %y0 = aten.mul %o0, %w0 : (tensor<1x2x4x8xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x4x8xf32>
      %p1 = aten.div %e1, %total : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
      %w1 = aten.unsqueeze %p1 dim 3 : (tensor<1x2x4xf32>) -> tensor<1x2x4x1xf32>
      %y1 = aten.mul %o1, %w1 : (tensor<1x2x4x8xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x4x8xf32>
      %y = aten.add %y0, %y1 : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
      return %y : tensor<1x2x4x8xf32>
    }
    ```
  }];
  let options = !listconcat([
    Option<"mode", "mode", "std::string", "\"auto\"",
           "Which attention becomes a ring: auto (where it does not fit otherwise, or the cost model says that it pays), all that "
           "can, balanced (all, and causal attention with the same work on all ranks where that is possible), or off">,
    Option<"topology", "topology", "std::string", "std::string(::shardc::cost::kDefaultModel)",
           "Cost model: a built-in one (h100-8, h100-64, h200-8, cpu-local) or the file of a target description">,
    Option<"memoryLimit", "memory-limit", "std::string", "", "As for dist-schedule-collectives">,
    Option<"caps", "caps", "std::string", "\"auto\"", "As for dist-schedule-collectives">,
    Option<"bucket", "bucket", "bool", "false", "Whether the schedule may merge collectives">,
    Option<"mixedDtype", "mixed-dtype", "bool", "false", "As for dist-schedule-collectives">,
    Option<"flat", "flat", "bool", "false", "As for dist-schedule-collectives">,
    ListOption<"sizes", "sizes", "std::string", "What symbols are taken to be, as for dist-schedule-collectives">,
    Option<"remarks", "remarks", "bool", "false", "Emits a remark at each attention that becomes a ring">],
    OrderOptions.shared);
  let statistics = [
    Statistic<"numRings", "rings", "Attention that became a ring, forward or backward">,
    Statistic<"numBalanced", "balanced", "Of these, causal ones in which all ranks have the same work">,
    Statistic<"numGathered", "gathered", "Attention that could be a ring and gathers its keys and values">,
    Statistic<"numUntried", "untried",
              "Of these, attention whose rings have too many steps to be compared: 4,096 in a function (mode=auto)">,
    Statistic<"numUnknown", "unknown",
              "Attention over gathered keys that stays as it is because sizes or ranks are not known, or what it makes is used otherwise">,
    Statistic<"numUnaligned", "unaligned",
              "Causal attention that stays as it is because ranks have other queries than keys">,
    Statistic<"mostPairs", "most-pairs",
              "Pairs of a query and a key that it sees, of one head, on the rank that has most, over all that could be a ring">,
    Statistic<"meanPairs", "mean-pairs", "The same, the mean of all ranks">,
    Statistic<"stepBefore", "step-us-before", "The scheduled step with all keys gathered, predicted (mode=auto)">,
    Statistic<"stepAfter", "step-us-after", "The scheduled step with rings, predicted (mode=auto)">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::shardc::aten::AtenDialect",
                           "::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_COLLECTIVES_ATTENTIONPASSES_TD
