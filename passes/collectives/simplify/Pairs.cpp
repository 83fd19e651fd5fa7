// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/simplify/Pairs.h"

#include "mlir/IR/Builders.h"

#include <limits>
#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// The wait of a future, if nothing else looks at it and someone looks at what it delivers.
static WaitOp onlyWait(OpResult future) {
  if (!future.hasOneUse())
    return {};
  auto wait = dyn_cast<WaitOp>(*future.user_begin());
  return wait && wait->getBlock() == future.getOwner()->getBlock() ? wait : WaitOp();
}

static Value deliveredBy(OpResult future) {
  return onlyWait(future).getResult(future.use_begin()->getOperandNumber());
}

static bool canJoin(CollectiveOpInterface op) {
  return op.isAsync() && llvm::all_of(op->getResults(), onlyWait) &&
         llvm::any_of(op->getResults(), [](OpResult r) { return !deliveredBy(r).use_empty(); });
}

void AsyncPairs::join() {
  SmallVector<CollectiveOpInterface> starts;
  unsigned next = 0;
  for (Block &block : region)
    for (Operation &op : block) {
      numbers[&op] = next++;
      auto collective = dyn_cast<CollectiveOpInterface>(op);
      if (!collective)
        continue;
      if (canJoin(collective))
        starts.push_back(collective);
      else if (!collective.isAsync())
        synchronous.insert(&op);
    }
  any = !starts.empty();
  SmallVector<WaitOp> waits;
  for (CollectiveOpInterface start : starts)
    for (OpResult result : start->getResults()) {
      WaitOp wait = onlyWait(result);
      joined[start].push_back({numbers[wait], wait.getLoc()});
      deliveredBy(result).replaceAllUsesWith(result);
      waits.push_back(wait);
    }
  // Only now, since a wait may deliver several.
  for (CollectiveOpInterface start : starts)
    for (OpResult result : start->getResults())
      result.setType(getDeliveredType(result.getType()));
  for (WaitOp wait : waits) {
    if (!numbers.contains(wait))
      continue; // seen, of several results
    SmallVector<Value> rest, kept;
    for (auto [future, result] : llvm::zip_equal(wait.getFutures(), wait.getResults()))
      if (isa<FutureType>(future.getType())) {
        rest.push_back(future);
        kept.push_back(result);
      }
    if (!rest.empty()) {
      OpBuilder builder(wait);
      auto left = WaitOp::create(builder, wait.getLoc(), rest);
      for (auto [old, now] : llvm::zip_equal(kept, left.getResults()))
        old.replaceAllUsesWith(now);
      numbers[left] = numbers[wait];
    }
    numbers.erase(wait);
    wait.erase();
  }
}

void AsyncPairs::forget(Operation *op) {
  numbers.erase(op);
  joined.erase(op);
  synchronous.erase(op);
}

/// Walks a block and puts waits where they belong.
class AsyncPairs::Splitter {
public:
  Splitter(AsyncPairs &pairs, Block &block) : pairs(pairs), block(block) {}

  void run() {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      // Values that are still in flight here are waited for.
      op.walk([&](Operation *user) {
        for (Value operand : user->getOperands())
          if (auto place = placeOf.find(operand); place != placeOf.end())
            waitFor(pending.find(place->second), &op);
      });
      auto number = pairs.numbers.find(&op);
      while (number != pairs.numbers.end() && !pending.empty() &&
             pending.begin()->first.first < number->second)
        waitFor(pending.begin(), &op);
      while (op.hasTrait<OpTrait::IsTerminator>() && !pending.empty())
        waitFor(pending.begin(), &op);
      if (auto collective = dyn_cast<CollectiveOpInterface>(op))
        start(collective);
    }
  }

private:
  /// The number of the wait as it was; for what rules made, one of its own after all those.
  using Place = std::pair<unsigned, unsigned>;
  struct Results {
    Location location;
    SmallVector<OpResult> values;
  };
  using Pending = std::map<Place, Results>;

  void start(CollectiveOpInterface op) {
    if (op.isAsync() || op->getNumResults() == 0 || pairs.synchronous.contains(op))
      return;
    auto known = pairs.joined.find(op);
    Place made{std::numeric_limits<unsigned>::max(), serial++};
    for (OpResult result : op->getResults()) {
      Place place = made;
      Location location = op.getLoc();
      if (known != pairs.joined.end()) {
        place = {known->second[result.getResultNumber()].number, 0};
        location = known->second[result.getResultNumber()].location;
      }
      pending.try_emplace(place, Results{location, {}}).first->second.values.push_back(result);
      placeOf[result] = place;
    }
  }

  void waitFor(Pending::iterator at, Operation *before) {
    Results results = std::move(at->second);
    pending.erase(at);
    SmallVector<Value> futures;
    for (OpResult result : results.values) {
      placeOf.erase(result);
      result.setType(FutureType::get(cast<RankedTensorType>(result.getType())));
      futures.push_back(result);
    }
    OpBuilder builder(before);
    auto wait = WaitOp::create(builder, results.location, futures);
    for (auto [future, value] : llvm::zip_equal(results.values, wait.getResults()))
      future.replaceAllUsesExcept(value, wait);
  }

  AsyncPairs &pairs;
  Block &block;
  Pending pending;
  llvm::DenseMap<Value, Place> placeOf;
  unsigned serial = 0;
};

void AsyncPairs::split() {
  if (any)
    for (Block &block : region)
      Splitter(*this, block).run();
}
