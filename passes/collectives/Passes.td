// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the local to the scheduled stage: fewer, larger and earlier collectives. Rules B1 to B9 and S1 to S4 are
// stated in docs/semantics.md.

#ifndef SHARDC_PASSES_COLLECTIVES_PASSES_TD
#define SHARDC_PASSES_COLLECTIVES_PASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/collectives/AttentionPasses.td"
include "passes/collectives/MovePasses.td"

def SimplifyCollectives : Pass<"dist-simplify-collectives", "::mlir::ModuleOp"> {
  let summary = "Removes, merges and strengthens collectives by algebra";
  let description = [{
    Form: local -> local, scheduled -> scheduled. The pass works on collectives of one tensor, wherever they come from,
    so run it before collectives are bucketed. Every rule treats a start and its wait as one collective. The result of a
    rule is again a start, in the same place, and a wait before its first use. Collectives that no rule changes stay
    where they were, and a future that is returned is left alone. The rules know the slice that each rank takes (`dist.extent`,
    `dist.axis_index` and arithmetic on them are evaluated for every rank), and which values are the same on all ranks of
    a group: replicated arguments, constants, the results of reductions and gathers, and values that are
    computed from these alone.

    | rule | before | after |
    |---|---|---|
    | `gather-slices` | own slice of an all-gather | the operand of the all-gather |
    | `gathers-of-replicated` | all-gather of a replicated value | copies side by side |
    | `reduces-of-replicated` | sum over n ranks of a replicated value | n times the value |
    | `scattered` | own slices of an all-reduce | reduce-scatter |
    | `narrowed` | all-reduce, then a narrower type | reduce-scatter, cast, all-gather, where cheaper |
    | `sums` | sum of reduces (siblings, micro-batches) | one reduce of the sum |
    | `averages` | sum over n ranks, divided by n | average |
    | `chains` | all-reduce over one axis, then another | one all-reduce over both |
    | `casts` | gather, then narrow; widen, then gather | gather in the narrow type |
    | `views` | all-gather of a transposed, reshaped or repeated shard | the view of the all-gather |
    | `permutes` | permute of a permute | one permute |
    | `duplicates` | the same collective of the same value twice | one collective |

    No rule reduces in a narrower type than the program asks for. The example adds the partial input gradients
    of two sibling column-parallel layers.

    Before:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #tp = #dist.axes<#mesh, ["tp"]>
    func.func @backward(%dq: tensor<8x64xf32>, %dk: tensor<8x64xf32>) -> tensor<8x64xf32> {
      %a = dist.all_reduce sum over #tp %dq : tensor<8x64xf32>
      %b = dist.all_reduce sum over #tp %dk : tensor<8x64xf32>
      %g = aten.add %a, %b : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
      return %g : tensor<8x64xf32>
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #tp = #dist.axes<#mesh, ["tp"]>
    func.func @backward(%dq: tensor<8x64xf32>, %dk: tensor<8x64xf32>) -> tensor<8x64xf32> {
      %s = aten.add %dq, %dk : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
      %g = dist.all_reduce sum over #tp %s : tensor<8x64xf32>
      return %g : tensor<8x64xf32>
    }
    ```
  }];
  let options = [
    Option<"topology", "topology", "std::string", "std::string(::shardc::cost::kDefaultModel)",
           "Cost model that says what is cheaper: a built-in one (h100-8, h100-64, h200-8, cpu-local) or "
           "the file of a target description">,
  ];
  let statistics = [
    Statistic<"numGatherSlices", "gather-slices", "Own slices of all-gathers that became the gathered operand">,
    Statistic<"numGatherReplicated", "gathers-of-replicated", "All-gathers of replicated values that were removed">,
    Statistic<"numReduceReplicated", "reduces-of-replicated", "Reductions of replicated values that were removed">,
    Statistic<"numScattered", "scattered", "All-reduces that became reduce-scatters">,
    Statistic<"numNarrowed", "narrowed", "All-reduces whose gathering half was made to move a narrower type">,
    Statistic<"numSums", "sums", "Sums of two reduces that became one reduce">,
    Statistic<"numAverages", "averages", "Divisions by the number of ranks that became part of a reduction">,
    Statistic<"numCasts", "casts", "Casts that were moved to the other side of a collective">,
    Statistic<"numViews", "views", "Views that were moved to the other side of an all-gather">,
    Statistic<"numPermutes", "permutes", "Permutes that were merged with the one before">,
    Statistic<"numChains", "chains", "All-reduces that were merged with the one before">,
    Statistic<"numDuplicates", "duplicates", "Tensors that an earlier collective had delivered already">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::shardc::aten::AtenDialect",
                           "::shardc::dist::DistDialect"];
}

class OptimizerOptions {
  list<Option> shared = [
    Option<"topology", "topology", "std::string", "std::string(::shardc::cost::kDefaultModel)",
           "Cost model: a built-in one (h100-8, h100-64, h200-8, cpu-local, sim-v1) or the file of a target "
           "description">,
    Option<"memoryLimit", "memory-limit", "std::string", "",
           "Bytes that one rank may hold at once, e.g. 2GiB; without: what the program takes now, and 2 % more (and "
           "room for what is in flight, where the pass schedules)">,
    ListOption<"sizes", "sizes", "std::string",
               "What symbols are taken to be, e.g. sizes=batch=8,sequence=128 (others: what the module notes, else "
               "128, or the nearest in their range)">,
    Option<"mixedDtype", "mixed-dtype", "bool", "false",
           "Lets gathers of different element types share a bucket (B5)">,
    Option<"bestEffort", "best-effort", "bool", "false",
           "Keeps the program's order where no order meets the memory limit, instead of failing. It is for pipelines "
           "in which a later pass compares memory with the limit">,
    Option<"scaleHalf", "scale-half", "bool", "false",
           "Turns averages of f16 into sums between two scalings, for transports that add in f16 (B5); libshardrt "
           "adds in f32 and does not need it">,
    Option<"flat", "flat", "bool", "false",
           "Assumes that operands of a bucket lie side by side in memory and that results are used in place, without copies">,
    Option<"remarks", "remarks", "bool", "false",
           "Emits a remark at each bucket, and at each collective that is in none">,
  ];
}
def SharedOptions : OptimizerOptions;

def BucketCollectives : Pass<"dist-bucket-collectives", "::mlir::ModuleOp"> {
  let summary = "Merges collectives of one kind, group, element type and reduction up to a size";
  let description = [{
    Form: local -> local. The order of kernels stays that of the program. Collectives are delayed until a
    result is needed or their bucket is full, and gathers are moved up where few ops need to move with them. A
    bucket is one collective of several tensors; the lowering decides how its bytes are packed.
    Collectives that depend on each other, directly or through other buckets, never share one (B3); one
    that comes too late for a bucket starts the next (B4). Dims, extents, empty shards and group
    lists are kept tensor by tensor (B1, B5, B7). The pass keeps to the memory limit (B9).

    Before, with `memory-limit=100000`:
    ```mlir
    #mesh = #dist.mesh<["dp" = 4]>
    #dp = #dist.axes<#mesh, ["dp"]>
    func.func @forward(%x: tensor<4x64xf32>, %wa: tensor<2x64xf32>, %wb: tensor<8x2xf32>) -> tensor<4x8xf32> {
      %a = dist.all_gather over #dp %wa dim 0 : (tensor<2x64xf32>) -> tensor<8x64xf32>
      %y = aten.linear %x, %a : (tensor<4x64xf32>, tensor<8x64xf32>) -> tensor<4x8xf32>
      %b = dist.all_gather over #dp %wb dim 1 : (tensor<8x2xf32>) -> tensor<8x8xf32>
      %z = aten.linear %y, %b : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      return %z : tensor<4x8xf32>
    }
    ```
    After, in part:
    ```mlir
    %b:2 = dist.all_gather over #dp %wa dim 0, %wb dim 1 {dist.bucket = ...} : (tensor<2x64xf32>, tensor<8x2xf32>) -> (tensor<8x64xf32>, tensor<8x8xf32>)
    %y = aten.linear %x, %b#0 : (tensor<4x64xf32>, tensor<8x64xf32>) -> tensor<4x8xf32>
    %z = aten.linear %y, %b#1 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    ```

    `dist.bucket` on a bucket says why it took no more members (complete, cap, dependence, cycle, memory), and
    `dist.alone` on any other collective says why it is in none.
  }];
  let options = !listconcat([
    Option<"caps", "caps", "std::string", "\"1,25\"",
           "Largest size of a bucket in MiB: one number, a list by bucket of a key (the last number holds for all "
           "that follow), or auto, which closes a bucket when more bytes save no more latency (B2)">,
    Option<"gatherOrder", "gather-order", "::shardc::collectives::BucketOrder",
           "::shardc::collectives::BucketOrder::FirstUse", "The order in which gathers join buckets (B8)",
      [{::llvm::cl::values(
          clEnumValN(::shardc::collectives::BucketOrder::FirstUse, "first-use", "the order of their first use"),
          clEnumValN(::shardc::collectives::BucketOrder::Production, "production", "the order of the program"))}]>,
    Option<"reduceOrder", "reduce-order", "::shardc::collectives::BucketOrder",
           "::shardc::collectives::BucketOrder::Production", "The order in which reduces join buckets (B8)",
      [{::llvm::cl::values(
          clEnumValN(::shardc::collectives::BucketOrder::FirstUse, "first-use", "the order of their first use"),
          clEnumValN(::shardc::collectives::BucketOrder::Production, "production", "the order of the program"))}]>],
    SharedOptions.shared);
  let statistics = [
    Statistic<"numBuckets", "buckets", "Buckets of two or more collectives">,
    Statistic<"numMembers", "bucketed", "Collectives in buckets">,
    Statistic<"numAlone", "alone", "Collectives in no bucket">,
    Statistic<"numScaled", "scaled", "Averages of f16 that became scaled sums">,
    Statistic<"peakBefore", "peak-bytes-before", "Peak memory of a rank before, predicted">,
    Statistic<"peakAfter", "peak-bytes-after", "Peak memory of a rank after, predicted">,
  ];
}

def ScheduleCollectives : Pass<"dist-schedule-collectives", "::mlir::ModuleOp"> {
  let summary = "Makes collectives asynchronous, starts them early and waits late";
  let description = [{
    Form: local -> scheduled. Every collective becomes a start and a `dist.wait` (S1), and ops are put in the
    order that the cost model predicts to be the fastest, with one stream for compute and one for each group (S2).
    The order is a function of the program and the options, and the same on all ranks. With `bucket`,
    merges and order are decided together: a merge is made only if it is predicted to reduce exposed time (S3).

    Before:
    ```mlir
    #mesh = #dist.mesh<["dp" = 4]>
    #dp = #dist.axes<#mesh, ["dp"]>
    func.func @forward(%x: tensor<4x64xf32>, %w: tensor<2x64xf32>) -> tensor<4x8xf32> {
      %r = aten.relu %x : (tensor<4x64xf32>) -> tensor<4x64xf32>
      %g = dist.all_gather over #dp %w dim 0 : (tensor<2x64xf32>) -> tensor<8x64xf32>
      %y = aten.linear %r, %g : (tensor<4x64xf32>, tensor<8x64xf32>) -> tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    ```
    After, in part:
    ```mlir
    %f = dist.all_gather over #dp %w dim 0 {...} : (tensor<2x64xf32>) -> !dist.future<tensor<8x64xf32>>
    %r = aten.relu %x : (tensor<4x64xf32>) -> tensor<4x64xf32>
    %g = dist.wait %f : !dist.future<tensor<8x64xf32>>
    %y = aten.linear %r, %g : (tensor<4x64xf32>, tensor<8x64xf32>) -> tensor<4x8xf32>
    ```

    Without `memory-limit` the program may hold what it takes now plus 2 %. It may also hold the two largest
    of its collectives, if the step is 1 % shorter for it. (Otherwise a program that gathers each parameter right
    before its use has no room for the next one, so that nothing could overlap.)

    Times are estimates. Where memory allows, collectives start earlier and are waited for later than the cost model
    asks for, and of orders that are about as fast, the one that also does well on slower networks, with kernels that
    take more or less time, and with late ranks is chosen (`robust`).

    `dist.predicted` of the function has the step, the exposed communication and the peak memory of a
    rank, before and after, and the shortest and the longest step over these times.
  }];
  let options = !listconcat([
    Option<"bucket", "bucket", "bool", "false", "Merges collectives where that is predicted to shorten the step (S3)">,
    Option<"reorder", "reorder", "bool", "true",
           "Moves ops; if false, every wait stands right behind its start">,
    Option<"caps", "caps", "std::string", "\"auto\"", "Largest sizes of buckets, as for dist-bucket-collectives">],
    OrderOptions.shared, SharedOptions.shared);
  let statistics = [
    Statistic<"numStarts", "starts", "Asynchronous collectives">,
    Statistic<"numScaled", "scaled", "Averages of f16 that became scaled sums">,
    Statistic<"numBuckets", "buckets", "Buckets of two or more collectives">,
    Statistic<"numMembers", "bucketed", "Collectives in buckets">,
    Statistic<"exposedBefore", "exposed-us-before", "Exposed communication before, predicted">,
    Statistic<"exposedAfter", "exposed-us-after", "Exposed communication after, predicted">,
    Statistic<"peakBefore", "peak-bytes-before", "Peak memory of a rank before, predicted">,
    Statistic<"peakAfter", "peak-bytes-after", "Peak memory of a rank after, predicted">,
  ];
}

def PredictTimeline : Pass<"dist-predict-timeline", "::mlir::ModuleOp"> {
  let summary = "Notes at each function what a cost model expects of one call";
  let description = [{
    Form: local or scheduled -> the same, before `dist-specialize`. Simulates each function in the order in which it
    stands; sizes are those of the rank that has most to do. `dist.timeline` of the function has the cost model, the
    step, the exposed communication and the peak memory, and name, place, stream, begin and duration of everything
    that takes time (docs/manifest.md says what a run compares with it). A function that cannot be simulated is a
    warning.

    Before, with `topology=sim-v1`:
    ```mlir
    #mesh = #dist.mesh<["dp" = 4]>
    func.func @f(%w: tensor<262144xf32>) -> tensor<1048576xf32> {
      %g = dist.all_gather over #dist.axes<#mesh, ["dp"]> %w dim 0 : (tensor<262144xf32>) -> tensor<1048576xf32>
      return %g : tensor<1048576xf32>
    }
    ```

    After, in part:
    ```mlir
    func.func @f(...) -> tensor<1048576xf32> attributes {dist.timeline = {cost_model = "sim-v1", durations_us = array<f64: 24.248..., 24.248...>, exposed_us = 24.248... : f64, names = [...], peak_bytes = 5242880 : i64, ...}} {
    ```
  }];
  let options = [
    Option<"topology", "topology", "std::string", "std::string(::shardc::cost::kDefaultModel)",
           "Cost model: a built-in one (h100-8, h100-64, h200-8, cpu-local, sim-v1) or the file of a target "
           "description">,
    ListOption<"sizes", "sizes", "std::string",
               "What symbols are taken to be (others: what the module notes, else 128, or the nearest in their "
               "range)">,
  ];
  let statistics = [Statistic<"numPredicted", "predicted", "Functions with a timeline">];
}

def VerifySchedule : Pass<"dist-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Proves that all ranks issue the same collectives in the same order";
  let description = [{
    Form: local or scheduled -> the same, before or after `dist-specialize`. In each function, no
    collective may be under control flow (the error says whether the control flow depends on the rank), and every future is
    waited for or returned exactly once. Functions that `dist-specialize` has made for different ranks must have the same sequence
    of kinds, groups, reductions, roots, dims and element types. On the ranks of one group, element
    counts and extents must agree, and each rank must hold the extent of its position in the group.

    Refused:
    ```mlir
    #mesh = #dist.mesh<["tp" = 2]>
    #tp = #dist.axes<#mesh, ["tp"]>
    module attributes {dist.mesh = #mesh, dist.specializations = {forward = #dist.variants<[@forward_v0, @forward_v1], [0, 1]>}} {
      func.func @forward_v0(%a: tensor<4xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
        // expected-error @+1 {{is collective 0 of rank 0: all_reduce sum over #dist.groups<[[0, 1]]> of f32}}
        %f = dist.all_reduce sum over #tp %a : tensor<4xf32>
        %g = dist.all_gather over #tp %b dim 0 : (tensor<2xf32>) -> tensor<4xf32>
        return %f, %g : tensor<4xf32>, tensor<4xf32>
      }
      func.func @forward_v1(%a: tensor<4xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
        // expected-note @+1 {{rank 1 has there: all_gather over #dist.groups<[[0, 1]]> of f32 along 0}}
        %g = dist.all_gather over #tp %b dim 0 : (tensor<2xf32>) -> tensor<4xf32>
        %f = dist.all_reduce sum over #tp %a : tensor<4xf32>
        return %f, %g : tensor<4xf32>, tensor<4xf32>
      }
    }
    ```

    The pass writes the hash of the sequence to the function as `dist.sequence_hash`; a later run refuses a program
    with another sequence. The hash goes into the artifact, and all ranks compare it before their first collective.
  }];
  let statistics = [Statistic<"numCollectives", "collectives", "Collectives in verified sequences">];
}

#endif // SHARDC_PASSES_COLLECTIVES_PASSES_TD
