// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves that are larger than the order of collectives: they change what is computed and sent where.

#ifndef SHARDC_PASSES_COLLECTIVES_MOVEPASSES_TD
#define SHARDC_PASSES_COLLECTIVES_MOVEPASSES_TD

include "mlir/Pass/PassBase.td"

/// How a schedule is found: of dist-schedule-collectives, and of what is judged by it.
class ScheduleOrder {
  list<Option> shared = [
    Option<"policy", "policy", "::shardc::collectives::SchedulingPolicy",
           "::shardc::collectives::SchedulingPolicy::Search", "How the order is found",
      [{::llvm::cl::values(
          clEnumValN(::shardc::collectives::SchedulingPolicy::Search, "search", "the best of many, by the cost model"),
          clEnumValN(::shardc::collectives::SchedulingPolicy::Defensive, "defensive",
                     "without estimates: the program's order, with starts as early and waits as late as data and "
                     "memory allow, and with `bucket`, buckets of 500 MB unless `caps` says otherwise"))}]>,
    Option<"robust", "robust", "double", "::shardc::collectives::defaultRobust",
           "From 0 to 1: how much slower networks, jittering kernels and late ranks count beside the times of the "
           "cost model, for which the step may be longer by this part of 1 %">
  ];
}
def OrderOptions : ScheduleOrder;

def MoveProducts : Pass<"dist-move-products", "::mlir::ModuleOp"> {
  let summary = "Computes products before gathers where that gathers less";
  let description = [{
    Form: local -> local, scheduled -> scheduled. A product of gathered rows with a weight that all ranks of the group hold alike
    can be computed by each rank for its own rows. Where its result has fewer bytes than what it reads, that is gathered
    instead: fewer bytes, and each rank computes its part of the product only. The gather must have no other user. Shares may be
    unequal. What follows is looked at again, so that a gather moves across several products.

    Before:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #tp = #dist.axes<#mesh, ["tp"]>
    func.func @forward(%x: tensor<4x64xf32>, %w: tensor<8x64xf32> {dist.global_type = tensor<8x64xf32>, dist.layout = #dist.layout<#mesh, [R]>}) -> tensor<16x8xf32> {
      %g = dist.all_gather over #tp %x dim 0 : (tensor<4x64xf32>) -> tensor<16x64xf32>
      %y = aten.linear %g, %w : (tensor<16x64xf32>, tensor<8x64xf32>) -> tensor<16x8xf32>
      return %y : tensor<16x8xf32>
    }
    ```
    After, in part:
    ```mlir
    %y = aten.linear %x, %w : (tensor<4x64xf32>, tensor<8x64xf32>) -> tensor<4x8xf32>
    %g = dist.all_gather over #tp %y dim 0 : (tensor<4x8xf32>) -> tensor<16x8xf32>
    ```
  }];
  let statistics = [Statistic<"numMoved", "moved", "Products that are computed before a gather">];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::shardc::dist::DistDialect"];
}

def ChunkCollectives : Pass<"dist-chunk-collectives", "::mlir::ModuleOp"> {
  let summary = "Takes collectives and the products beside them apart into pieces that overlap";
  let description = [{
    Form: local -> local, scheduled -> scheduled. An all-gather whose result goes into a product, or a reduce-scatter or
    all-reduce of what a product makes, exposes its time where nothing else can run. In pieces, one piece travels while
    another is computed. A *region* is such a collective, the products, and what lies between and behind them as far as
    each row is computed by itself: elementwise ops, norms over other dims, views, further collectives and products. A
    piece has some rows of every tensor of the region. Tensors from outside that have these rows are cut, others (weights)
    are taken whole, and what is read outside is put together from its pieces.

    The rows are those that the collectives gather and scatter, or those of another dim, such as the batch. In the
    first case a piece of a gathered tensor has rows of each rank's share.

    In a *ring*, the pieces are the ranks' shares. Piece t on the rank at position r of n is block (r - t) mod n: a gather becomes
    n - 1 permutes that send each block on to the next rank, so that the first piece waits for nothing, and a reduce-scatter sends on the
    sum of what arrived and the rank's own part; its own block comes last. What a ring cuts and joins lies at a place
    that depends on the rank. A ring begins at an all-gather or a product and ends at reduce-scatters, all over one group.

    With `chunks=auto`, regions are taken apart where the scheduled program is predicted to be at least 1 % better under the
    same memory limit, on nominal times and on slower networks (`robust`), in 2, 4 or 8 pieces, or as rings where the topology has a price for permutes: the prediction has the latencies and launches of all pieces,
    weights that are read once for each piece, and the copies that cuts and joins take.

    Every element is computed from the same numbers as before. Ranks add in the same order, but in rings: there block b is summed
    from rank b + 1 around to rank b, each sum rounded to the element type. Sums of f16 and bf16 over more than two ranks, which
    would lose what an f32 accumulator keeps, and reductions other than sums are not done by rings (`in-one-sum`). A kernel may still round a
    row differently where it lies elsewhere among its tiles: products of the CPU target differ in the last bit.

    Collectives with symbolic sizes or unequal shares stay as they are, and so do regions whose rows cannot be divided.

    Before, with `chunks=2`:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #tp = #dist.axes<#mesh, ["tp"]>
    func.func @forward(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>) -> tensor<16x8xf32> {
      %g = dist.all_gather over #tp %x dim 0 : (tensor<4x16xf32>) -> tensor<16x16xf32>
      %y = aten.linear %g, %w : (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<16x8xf32>
      return %y : tensor<16x8xf32>
    }
    ```
    After, in part:
    ```mlir
    %x0 = aten.slice %x dim 0 [0 : 2 : 1] : (tensor<4x16xf32>) -> tensor<2x16xf32>
    %g0 = dist.all_gather over #tp %x0 dim 0 : (tensor<2x16xf32>) -> tensor<8x16xf32>
    %y0 = aten.linear %g0, %w : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
    ```
  }];
  let options = !listconcat([
    Option<"chunks", "chunks", "std::string", "\"auto\"",
           "How many pieces: auto (what the cost model says), a number for every region whatever it takes, ring (every region "
           "that can be a ring is one), or off">,
    Option<"topology", "topology", "std::string", "std::string(::shardc::cost::kDefaultModel)",
           "Cost model: a built-in one (h100-8, h100-64, h200-8, cpu-local, sim-v1) or the file of a target "
           "description">,
    Option<"memoryLimit", "memory-limit", "std::string", "", "As for dist-schedule-collectives">,
    Option<"caps", "caps", "std::string", "\"auto\"", "As for dist-schedule-collectives">,
    Option<"bucket", "bucket", "bool", "false", "Whether the schedule may merge collectives">,
    Option<"mixedDtype", "mixed-dtype", "bool", "false", "As for dist-schedule-collectives">,
    Option<"flat", "flat", "bool", "false", "As for dist-schedule-collectives">,
    ListOption<"sizes", "sizes", "std::string", "What symbols are taken to be, as for dist-schedule-collectives">,
    Option<"remarks", "remarks", "bool", "false", "Emits a remark at the first op of each region that is taken apart">],
    OrderOptions.shared);
  let statistics = [
    Statistic<"numRegions", "regions", "Regions that were taken apart">,
    Statistic<"numRings", "rings", "Of these, rings">,
    Statistic<"numGathers", "gathers", "All-gathers in pieces">,
    Statistic<"numReduces", "reduces", "Reduce-scatters and all-reduces in pieces">,
    Statistic<"numProducts", "products", "Products in pieces">,
    Statistic<"numTooCostly", "too-costly", "Regions that can only take longer in pieces">,
    Statistic<"numIndivisible", "indivisible", "Regions whose rows cannot be divided into equal pieces">,
    Statistic<"numSymbolic", "symbolic", "Collectives that stay whole because a size is symbolic">,
    Statistic<"numUneven", "uneven", "Collectives that stay whole because ranks have unequal shares">,
    Statistic<"numInOneSum", "in-one-sum", "Reduce-scatters that stay whole because a ring would add otherwise (chunks=ring)">,
    Statistic<"stepBefore", "step-us-before", "The scheduled step without pieces, predicted (chunks=auto)">,
    Statistic<"stepAfter", "step-us-after", "The scheduled step with pieces, predicted (chunks=auto)">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::shardc::aten::AtenDialect",
                           "::shardc::dist::DistDialect"];
}

def SplitNodes : Pass<"dist-split-nodes", "::mlir::ModuleOp"> {
  let summary = "Takes collectives over several nodes apart into some within nodes and some between them";
  let description = [{
    Form: local -> local, scheduled -> scheduled. Ranks of one node (rank / `ranks_per_node` of the target) exchange data
    faster than ranks of different nodes. A collective over m nodes with k ranks on each becomes several, so that each rank
    sends only its share of what its node has over the slower network:

    | before | after |
    |---|---|
    | all-reduce | reduce-scatter within nodes, all-reduce between them, all-gather within |
    | reduce-scatter | reduce-scatter within nodes, reduce-scatter between them |
    | all-gather | all-gather between nodes, all-gather within them |

    Between nodes run groups of the ranks that have one place in their nodes. An all-reduce is cut along its first dim, or as a
    flat view where k does not divide that. Where the positions of a group go node by node, the blocks of a gather or scatter
    are columns of a matrix with a row for each node; where nodes alternate, they need no view. All groups of a
    collective have to lie alike on their nodes.

    With `mode=auto`, collectives are split where the scheduled program is predicted to be at least 1 % better under the
    same memory limit, on nominal times and on slower networks (`robust`). What runs within nodes and what runs between them has streams of its own, so that parts of one
    collective overlap with those of another. `mode=all` splits every one that can be split.

    Sums are formed within nodes first, so that floating-point results may differ in the last bits, and are rounded to the element
    type once more, between the two. Reductions that may overflow there although the whole does not (sums and products of f16 and
    shorter types), and averages of integers, stay as they are. All-to-all sends every byte only once either way, and stays.

    The target `h100-64` has eight ranks on each node.

    Before, with `mode=all topology=h100-64`:
    ```mlir
    #mesh = #dist.mesh<["dp" = 16]>
    #dp = #dist.axes<#mesh, ["dp"]>
    func.func @forward(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
      %y = dist.all_reduce sum over #dp %x : tensor<8x16xf32>
      return %y : tensor<8x16xf32>
    }
    ```
    After:
    ```mlir
    #within = #dist.groups<[[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]>
    #between = #dist.groups<[[0, 8], [1, 9], [2, 10], [3, 11], [4, 12], [5, 13], [6, 14], [7, 15]]>
    func.func @forward(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
      %s = dist.reduce_scatter sum over #within %x dim 0 : (tensor<8x16xf32>) -> tensor<1x16xf32>
      %r = dist.all_reduce sum over #between %s : tensor<1x16xf32>
      %y = dist.all_gather over #within %r dim 0 : (tensor<1x16xf32>) -> tensor<8x16xf32>
      return %y : tensor<8x16xf32>
    }
    ```
  }];
  let options = !listconcat([
    Option<"mode", "mode", "std::string", "\"auto\"",
           "Which collectives: auto (where the cost model says that it pays), all, or off">,
    Option<"topology", "topology", "std::string", "std::string(::shardc::cost::kDefaultModel)",
           "Cost model: a built-in one (h100-8, h100-64, h200-8, cpu-local) or the file of a target description; it "
           "says how many ranks a node has">,
    Option<"memoryLimit", "memory-limit", "std::string", "", "As for dist-schedule-collectives">,
    Option<"caps", "caps", "std::string", "\"auto\"", "As for dist-schedule-collectives">,
    Option<"bucket", "bucket", "bool", "false", "Whether the schedule may merge collectives">,
    Option<"mixedDtype", "mixed-dtype", "bool", "false", "As for dist-schedule-collectives">,
    Option<"flat", "flat", "bool", "false", "As for dist-schedule-collectives">,
    ListOption<"sizes", "sizes", "std::string", "What symbols are taken to be, as for dist-schedule-collectives">,
    Option<"remarks", "remarks", "bool", "false", "Emits a remark at each collective that is taken apart">],
    OrderOptions.shared);
  let statistics = [
    Statistic<"numGathers", "gathers", "All-gathers that were taken apart">,
    Statistic<"numReduces", "reduces", "Reduce-scatters and all-reduces that were taken apart">,
    Statistic<"numTooCostly", "too-costly", "Collectives that can only take longer in parts">,
    Statistic<"numOneNode", "one-node",
              "Collectives that stay whole because their ranks share a node, or have one each">,
    Statistic<"numUnequal", "unequal",
              "Collectives that stay whole because nodes hold unequal parts of a group, or not in order">,
    Statistic<"numUnknown", "unknown", "Collectives that stay whole because nobody says which ranks take part">,
    Statistic<"numSymbolic", "symbolic", "Collectives that stay whole because a size is symbolic">,
    Statistic<"numIndivisible", "indivisible",
              "Collectives that stay whole because the ranks of a node cannot have equal shares">,
    Statistic<"numInexact", "inexact",
              "Reductions that stay whole because what nodes make of them could overflow or be cut">,
    Statistic<"stepBefore", "step-us-before", "The scheduled step with all collectives whole, predicted (mode=auto)">,
    Statistic<"stepAfter", "step-us-after", "The scheduled step with collectives in parts, predicted (mode=auto)">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::shardc::aten::AtenDialect",
                           "::shardc::dist::DistDialect"];
}

def MergeExchanges : Pass<"dist-merge-exchanges", "::mlir::ModuleOp"> {
  let summary = "Sends what several exchanges move in one";
  let description = [{
    Form: local -> local, scheduled -> scheduled. Buckets take gathers and reductions. All-to-alls, by which ranks get borders of images,
    keys and values of neighbors, and parts of what others computed for them, are merged here: two over the same ranks and of one
    element type become one all-to-all of several tensors, of which nothing is copied together.

    The first one waits for the second. What depends on the first one moves behind both. So it is done where neither depends on the other, and where what the
    second one needs in between and its bytes take no longer than what one exchange less saves, by the cost model. Of two that
    send in opposite directions, a rank gets the one while it sends the other.

    Before:
    ```mlir
    #mesh = #dist.mesh<["h" = 2]>
    #h = #dist.axes<#mesh, ["h"]>
    func.func @forward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %a = dist.all_to_all over #h %x split 0 concat 0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %s = aten.sin %a : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %b = dist.all_to_all over #h %y split 0 concat 0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %r = aten.add %s, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      return %r : tensor<4x8xf32>
    }
    ```
    After, in part:
    ```mlir
    %ab:2 = dist.all_to_all over #h %x split 0 concat 0, %y split 0 concat 0 : tensor<4x8xf32>, tensor<4x8xf32>
    %s = aten.sin %ab#0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let options = [
    Option<"topology", "topology", "std::string", "std::string(::shardc::cost::kDefaultModel)",
           "Cost model: a built-in one (h100-8, h100-64, h200-8, cpu-local) or the file of a target description">,
    ListOption<"sizes", "sizes", "std::string", "What symbols are taken to be, as for dist-schedule-collectives">];
  let statistics = [Statistic<"numMerged", "merged", "Exchanges that another one took along">];
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

def SplitWindows : Pass<"dist-split-windows", "::mlir::ModuleOp"> {
  let summary = "Computes apart what a window makes of a rank's own rows, while rows of others arrive";
  let description = [{
    Form: local -> local, scheduled -> scheduled. The image under a window that slides over a sharded dim is put together from
    the rows that the rank has and a few that an exchange brings. Positions that cover own rows alone, the *interior*, need not wait for
    the exchange. The pass computes them by an op of their own, and the positions before and behind them by others, which take the
    rows that arrive and the few own ones beside them. It does so for convolutions, `aten.windows` and pools.

    Ranks may have any numbers of rows. Where a rank has no interior, its interior is empty, and all its positions are computed behind the exchange.
    A window is split where some rank has an interior, and sizes are known.

    Where the image is sharded along several dims, exchanges follow each other, and the interior of the last one is split again along
    the dim of the one before. It is cut in two there, so that there is something to compute during each exchange.

    With `mode=auto`, windows whose exchanges are waited for are split where the scheduled program is predicted to be at least 1 %
    better under the same memory limit, on nominal times and on slower networks (`robust`). The prediction has the launches of all parts, weights
    that are read once for each, and the copies that put rows and results together. `mode=all` splits every window that can be split.

    Every element is computed from the same numbers as before.

    Before, with `mode=all`:
    ```mlir
    #mesh = #dist.mesh<["h" = 2]>
    #h = #dist.axes<#mesh, ["h"]>
    func.func @forward(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x2x1xf32>) -> tensor<1x4x?x8xf32> {
      %first = aten.slice %x dim 2 [0 : 1 : 1] : (tensor<1x4x8x8xf32>) -> tensor<1x4x1x8xf32>
      %g = dist.permute over #h pairs [[1, 0]] %first : tensor<1x4x1x8xf32>
      %n = dist.extent #dist.extents<table [1, 0] over #mesh>
      %next = aten.slice %g dim 2 [0 : %n : 1] : (tensor<1x4x1x8xf32>) -> tensor<1x4x?x8xf32>
      %image = aten.cat %x, %next dim 2 : (tensor<1x4x8x8xf32>, tensor<1x4x?x8xf32>) -> tensor<1x4x?x8xf32>
      %y = aten.convolution %image, %w stride [1, 1] padding [0, 0] dilation [1, 1]
          : (tensor<1x4x?x8xf32>, tensor<4x4x2x1xf32>) -> tensor<1x4x?x8xf32>
      return %y : tensor<1x4x?x8xf32>
    }
    ```
    After, in part:
    ```mlir
    %i = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<1x4x8x8xf32>, tensor<4x4x2x1xf32>) -> tensor<1x4x7x8xf32>
    ```
  }];
  let options = !listconcat([
    Option<"mode", "mode", "std::string", "\"auto\"",
           "Which windows: auto (where the cost model says that it pays), all, or off">,
    Option<"topology", "topology", "std::string", "std::string(::shardc::cost::kDefaultModel)",
           "Cost model: a built-in one (h100-8, h100-64, h200-8, cpu-local) or the file of a target description">,
    Option<"memoryLimit", "memory-limit", "std::string", "", "As for dist-schedule-collectives">,
    Option<"caps", "caps", "std::string", "\"auto\"", "As for dist-schedule-collectives">,
    Option<"bucket", "bucket", "bool", "false", "Whether the schedule may merge collectives">,
    Option<"mixedDtype", "mixed-dtype", "bool", "false", "As for dist-schedule-collectives">,
    Option<"flat", "flat", "bool", "false", "As for dist-schedule-collectives">,
    ListOption<"sizes", "sizes", "std::string", "What symbols are taken to be, as for dist-schedule-collectives">,
    Option<"remarks", "remarks", "bool", "false", "Emits a remark at each window that is split">],
    OrderOptions.shared);
  let statistics = [
    Statistic<"numSplit", "split", "Windows whose interior is computed apart">,
    Statistic<"numWhole", "whole", "Windows that could be split and stay whole">,
    Statistic<"stepBefore", "step-us-before", "The scheduled step with all windows whole, predicted (mode=auto)">,
    Statistic<"stepAfter", "step-us-after", "The scheduled step with windows split, predicted (mode=auto)">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::shardc::aten::AtenDialect",
                           "::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_COLLECTIVES_MOVEPASSES_TD
