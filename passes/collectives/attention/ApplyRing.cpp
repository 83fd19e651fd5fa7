// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/attention/ApplyRing.h"

#include "passes/collectives/attention/RingSteps.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

class Ring : RingSteps {
public:
  using RingSteps::RingSteps;

  void run(function_ref<void(Operation *)> erased) {
    begin();
    site.isBackward ? backward() : forward();
    erase(erased);
  }

private:
  /// One block, as attention reads it.
  struct Block {
    Value key, value, mask;
  };

  void begin() {
    travelling = {site.key.shard()};
    dims = {site.key.chain.sourceDim};
    if (site.value.gather != site.key.gather) {
      travelling.push_back(site.value.shard());
      dims.push_back(site.value.chain.sourceDim);
    }
    for (int64_t extent : site.extents)
      begins.push_back(begins.back() + extent);
  }

  bool hasHops(int64_t step) const { return step + 1 < site.size(); }

  DeviceTable lengthAt(int64_t step) const {
    return tableOf(step, [&](int64_t, int64_t block) { return site.extents[block]; });
  }

  /// Of a block, what some query of the rank sees.
  DeviceTable seenAt(int64_t step) const {
    return site.isCausal ? site.seen[step] : lengthAt(step);
  }

  Block blockAt(int64_t step) {
    DeviceTable length = lengthAt(step), seen = seenAt(step), zero(length.size(), 0);
    auto read = [&](const RingTensor &tensor, Value block) {
      Value value = tensor.chain.apply(builder, block, build(length), fixedOf(length));
      return rows(value, rowsDim(value), zero, seen, length);
    };
    Block made{read(site.key, travelling.front()), read(site.value, travelling.back()), {}};
    Value mask = site.mask;
    int64_t columns = mask ? rankOf(mask) - 1 : 0;
    if (mask && cast<RankedTensorType>(mask.getType()).getDimSize(columns) != 1) {
      DeviceTable from = tableOf(step, [&](int64_t, int64_t block) { return begins[block]; });
      DeviceTable to = tableOf(step, [&](int64_t, int64_t block) { return begins[block + 1]; });
      mask = rows(mask, columns, from, to, DeviceTable(from.size(), begins.back()));
    }
    made.mask = mask;
    return made;
  }

  void forward() {
    RingPart sum;
    for (int64_t step = 0; step < site.size(); ++step) {
      Block block = blockAt(step);
      if (hasHops(step))
        travelling = hop(travelling, dims, step);
      RingPart part =
          attend(site.query(), block.key, block.value, block.mask, site.isCausal && step == 0);
      sum = step == 0 ? part : merge(sum, part);
    }
    finish(sum);
  }

  /// What a rank makes for a block goes on with what the ranks before have made for it, and its
  /// owner adds its own part last.
  void backward() {
    ValueRange operands = site.op->getOperands();
    Value sum, ownKey, ownValue;
    SmallVector<Value> arrived;
    for (int64_t step = 0; step < site.size(); ++step) {
      Block block = blockAt(step);
      if (hasHops(step))
        travelling = hop(travelling, dims, step);
      RingGradients part =
          differentiate(operands[0], operands[1], block.key, block.value, operands[4], operands[5],
                        block.mask, site.isCausal && step == 0);
      sum = step == 0 ? part.query : emit.add(sum, part.query);
      if (step == 0) {
        // A rank without queries sees none of its own keys.
        ownKey = beyondSeen(part.key, step);
        ownValue = beyondSeen(part.value, step);
        continue;
      }
      SmallVector<Value> sent;
      SmallVector<int64_t> sentDims;
      auto send = [&](const RingTensor &tensor, Value gradient) {
        if (!tensor.scatter)
          return;
        Value whole = beyondSeen(gradient, step);
        if (!arrived.empty())
          whole = emit.add(arrived[sent.size()], whole);
        sentDims.push_back(rowsDim(gradient));
        sent.push_back(whole);
      };
      send(site.key, part.key);
      send(site.value, part.value);
      if (!sent.empty())
        arrived = hop(sent, sentDims, step);
    }
    unused.push_back(narrow(sum));
    replace(site.op->getResult(0), unused.back());
    size_t next = 0;
    if (site.key.scatter)
      replaceScattered(site.key, emit.add(arrived[next++], ownKey));
    if (site.value.scatter)
      replaceScattered(site.value, emit.add(arrived[next], ownValue));
  }

  /// With zeros for the keys of the block that no query of the rank sees.
  Value beyondSeen(Value gradient, int64_t step) {
    DeviceTable length = lengthAt(step), seen = seenAt(step), rest;
    for (auto [all, some] : llvm::zip_equal(length, seen))
      rest.push_back(all - some);
    if (seen == length)
      return gradient;
    int64_t dim = rowsDim(gradient);
    return join({gradient, zerosLike(gradient, dim, rest)}, dim, fixedOf(length));
  }

  /// What the rank before has sent, in the order in which it was gathered.
  SmallVector<Value> travelling;
  SmallVector<int64_t> dims;
  SmallVector<int64_t> begins{0}; ///< of blocks among all keys
};

} // namespace

void shardc::applyRing(const RingSite &site, RankValues &ranks,
                       function_ref<void(Operation *)> erased) {
  Ring(site, ranks).run(erased);
}
