// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/analysis/ProgramGraph.h"

#include "passes/collectives/analysis/Transfers.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::collectives;

namespace {

/// Moves ops to the end of the block one by one, in the order of a plan, and replaces collectives
/// and waits on the way. What is replaced is erased last.
class PlanApplier {
public:
  PlanApplier(func::FuncOp function, const ProgramGraph &program, const Plan &plan, PlanForm form)
      : program(program), graph(program.graph), plan(plan), form(form),
        terminator(function.getBody().front().getTerminator()), builder(terminator),
        partOf(graph.numNodes()), bucketOf(graph.numNodes(), none), left(plan.buckets.size()) {
    for (auto [id, members] : llvm::enumerate(plan.buckets)) {
      left[id] = members.size();
      for (NodeId member : members)
        bucketOf[member] = id;
    }
  }

  std::vector<Operation *> run() {
    for (NodeId node : nodeOrder(graph, plan))
      visit(node);
    for (Operation *op : llvm::reverse(replaced)) {
      op->dropAllUses();
      op->erase();
    }
    sinkWaits(); // what was replaced stood where it no longer matters
    return std::move(partOf);
  }

private:
  void visit(NodeId node) {
    Operation *op = program.opOf[node];
    switch (graph.classOf(node)) {
    case NodeClass::Collective:
      start(node, cast<CollectiveOpInterface>(op));
      return;
    case NodeClass::Wait:
      if (auto wait = dyn_cast<WaitOp>(op))
        waitFor(node, wait);
      else
        deliver(op);
      return;
    default:
      op->moveBefore(terminator);
    }
  }

  //===---- starts ----===//

  void start(NodeId node, CollectiveOpInterface op) {
    BucketId bucket = bucketOf[node];
    bool async = op.isAsync() || form == PlanForm::Scheduled;
    if (bucket == none) {
      partOf[node] = op;
      if (async == op.isAsync()) {
        op->moveBefore(terminator);
        return;
      }
      CollectiveOpInterface made = buildCollective(builder, op.getLoc(), op, op.getGroup(),
                                                   getTransfers(op), /*async=*/true);
      made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
      partOf[node] = made;
      handOver(op, made->getResults());
      return;
    }
    if (--left[bucket] == 0) // all that its members need is there
      startBucket(bucket);
  }

  void startBucket(BucketId bucket) {
    SmallVector<Transfer> transfers;
    SmallVector<Location> locations;
    bool async = form == PlanForm::Scheduled;
    for (NodeId member : plan.buckets[bucket]) {
      auto op = cast<CollectiveOpInterface>(program.opOf[member]);
      llvm::append_range(transfers, getTransfers(op));
      locations.push_back(op.getLoc());
      async |= op.isAsync();
    }
    auto like = cast<CollectiveOpInterface>(program.opOf[plan.buckets[bucket].front()]);
    CollectiveOpInterface merged = buildCollective(builder, builder.getFusedLoc(locations), like,
                                                   like.getGroup(), transfers, async);
    ResultRange results = merged->getResults();
    for (NodeId member : plan.buckets[bucket]) {
      Operation *op = program.opOf[member];
      partOf[member] = merged;
      handOver(op, results.take_front(op->getNumResults()));
      results = results.drop_front(op->getNumResults());
    }
  }

  /// `results` are what `op` delivers from here on: futures, or the tensors themselves.
  void handOver(Operation *op, ResultRange results) {
    for (auto [old, result] : llvm::zip_equal(op->getResults(), results)) {
      if (old.getType() == result.getType())
        old.replaceAllUsesWith(result);
      else
        futureOf[old] = result;
    }
    replaced.push_back(op);
  }

  //===---- waits ----===//

  /// Makes one wait for all futures of the collective that a future is of. What it delivers is
  /// remembered by future.
  void waitForAll(Value future) {
    if (delivered.contains(future))
      return;
    SmallVector<Value> futures{future};
    Location location = future.getLoc();
    if (Operation *collective = future.getDefiningOp()) {
      // Those that are returned in flight are nobody's to wait for.
      futures.clear();
      for (Value result : collective->getResults())
        if (!returned(result))
          futures.push_back(result);
      location = collective->getLoc();
    }
    auto wait = WaitOp::create(builder, location, futures);
    waits.push_back(wait);
    for (auto [each, tensor] : llvm::zip_equal(futures, wait.getResults()))
      delivered[each] = tensor;
  }

  /// A plan waits for what should have ended long ago, to free the operands of the collective.
  /// Where these are arguments nothing is freed, and the wait goes to the first use of what it
  /// delivers: a link may be slower than the cost model thinks.
  void sinkWaits() {
    Block *block = terminator->getBlock();
    std::vector<Operation *> targets; // found before anything moves, which renumbers the block
    for (WaitOp wait : waits) {
      Operation *first = terminator;
      for (Operation *user : wait->getUsers())
        if (Operation *here = block->findAncestorOpInBlock(*user); here->isBeforeInBlock(first))
          first = here;
      bool stays = llvm::any_of(wait.getFutures(), [&](Value future) {
        Operation *collective = future.getDefiningOp();
        return collective &&
               (collective == wait->getPrevNode() ||
                !llvm::all_of(collective->getOperands(), llvm::IsaPred<BlockArgument>));
      });
      targets.push_back(stays ? nullptr : first);
    }
    for (auto [wait, target] : llvm::zip_equal(waits, targets))
      if (target)
        wait->moveBefore(target);
  }

  bool returned(Value future) const {
    return llvm::any_of(future.getUsers(), [&](Operation *user) { return user == terminator; });
  }

  /// A collective that was synchronous.
  void deliver(Operation *op) {
    for (Value old : op->getResults()) {
      auto it = futureOf.find(old);
      if (it == futureOf.end())
        return; // it still is, or has become part of a synchronous bucket
      waitForAll(it->second);
      old.replaceAllUsesWith(delivered.lookup(it->second));
    }
  }

  /// One of the collectives that a dist.wait waits for.
  void waitFor(NodeId node, WaitOp op) {
    for (unsigned i : program.waitedFor.find(node)->second) {
      // By now the operand is the future of what its collective has become.
      Value future = op.getFutures()[i];
      waitForAll(future);
      op.getResults()[i].replaceAllUsesWith(delivered.lookup(future));
    }
    if (replacedWaits.insert(op).second)
      replaced.push_back(op);
  }

  const ProgramGraph &program;
  const Graph &graph;
  const Plan &plan;
  PlanForm form;
  Operation *terminator;
  OpBuilder builder;
  std::vector<Operation *> partOf;
  std::vector<BucketId> bucketOf;
  std::vector<size_t> left;
  std::vector<Operation *> replaced;
  std::vector<WaitOp> waits;
  llvm::DenseSet<Operation *> replacedWaits;
  llvm::DenseMap<Value, Value> futureOf, delivered;
};

} // namespace

std::vector<Operation *> shardc::applyPlan(func::FuncOp function, const ProgramGraph &program,
                                           const Plan &plan, PlanForm form) {
  return PlanApplier(function, program, plan, form).run();
}
