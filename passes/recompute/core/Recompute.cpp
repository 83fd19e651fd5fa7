// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/recompute/core/Recompute.h"

#include "passes/recompute/core/CandidateTree.h"
#include "passes/recompute/core/PeakTree.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

using namespace shardc::recompute;

namespace {

/// Stands for the time of what costs nothing.
constexpr double kLeastUs = 1e-3;
/// How often a candidate that turned out to be worth less is put back: after that it is taken as it
/// is.
constexpr unsigned kMostReturns = 8;
/// What takes a step out of the search for the peak.
constexpr int64_t kOut = int64_t(1) << 60;
/// Percent of a peak that nothing lowers, down to which other steps are lowered.
constexpr int64_t kNearlyAsHigh = 85;

class Chooser {
public:
  Chooser(const Program &program, const Options &options)
      : program(program), options(options), uses(program.numStorages()), again(program.numOps()),
        profile(program.numOps()) {}

  Result run() {
    findUses();
    result.peakBefore = peakOf(uses);
    require();
    fillProfile(profile, uses);
    if (options.limit)
      meet(*options.limit);
    finish();
    return std::move(result);
  }

private:
  struct Uses {
    /// Steps. A storage without reads in the forward is last used where it is made.
    uint32_t lastEarly = 0, firstLate = none, lastLate = 0;
    bool again = false;
    bool isLate() const { return firstLate != none; }
    uint32_t last() const { return isLate() ? std::max(lastEarly, lastLate) : lastEarly; }
  };
  struct Change {
    uint32_t first, last;
    int64_t bytes;
  };
  /// What it would mean to compute an op again.
  struct Proposal {
    uint32_t step = none;
    double us = 0;
    std::vector<OpId> chain;
    std::vector<Change> changes;
    /// Storages that must exist at `step`, kept or computed again.
    std::vector<StorageId> needed;
    /// Ops that are computed again already, but later than at `step`.
    std::vector<OpId> earlier;

    int64_t area() const {
      int64_t sum = 0;
      for (const Change &c : changes)
        sum -= c.first <= c.last ? c.bytes * (int64_t(c.last) - c.first + 1) : 0;
      return sum;
    }
    double worth() const { return double(area()) / std::max(us, kLeastUs); }
  };

  void findUses() {
    for (OpId op = 0; op != program.numOps(); ++op) {
      for (StorageId storage : program.makes(op))
        uses[storage].lastEarly = op;
      for (StorageId storage : program.reads(op)) {
        bool between = program.info(op).late && !program.info(program.maker(storage)).late;
        if (between)
          noteLate(storage, op);
        else
          uses[storage].lastEarly = op;
      }
    }
  }

  void noteLate(StorageId storage, uint32_t step) {
    Uses &use = uses[storage];
    use.firstLate = std::min(use.firstLate, step);
    use.lastLate = std::max(use.lastLate, step);
  }

  //===---- memory ----===//

  void fillProfile(PeakTree &tree, const std::vector<Uses> &list) const {
    for (StorageId storage = 0; storage != program.numStorages(); ++storage) {
      OpId maker = program.maker(storage);
      if (program.isPinned(storage) || maker == none)
        continue;
      const Uses &use = list[storage];
      int64_t bytes = program.bytes(storage);
      tree.add(maker, use.again ? use.lastEarly : use.last(), bytes);
      if (use.again)
        tree.add(use.firstLate, use.lastLate, bytes);
    }
  }
  uint64_t peakOf(const std::vector<Uses> &list) const {
    PeakTree tree(program.numOps());
    fillProfile(tree, list);
    return program.constantBytes + tree.peak();
  }

  //===---- what is required ----===//

  /// The step before which the results of an op are needed late; `none` where they are not.
  uint32_t lateStepOf(OpId op) const {
    uint32_t step = none;
    for (StorageId storage : program.makes(op))
      step = std::min(step, uses[storage].firstLate);
    return step;
  }
  bool isPinned(OpId op) const {
    return std::ranges::any_of(program.makes(op),
                               [&](StorageId storage) { return program.isPinned(storage); });
  }
  void setAgain(OpId op, uint32_t step) {
    again[op] = true;
    for (StorageId storage : program.makes(op)) {
      noteLate(storage, step);
      uses[storage].again = true;
    }
  }

  /// Whoever reads something comes after its maker: from the last to the first, all reads are known
  /// by the time that the maker is looked at.
  void require() {
    // What the forward reads outside of the region, or not at all: a result of its module.
    std::vector<bool> leaves(program.numStorages()), isRead(program.numStorages());
    for (OpId op = 0; op != program.numOps(); ++op)
      if (!program.info(op).late)
        for (StorageId storage : program.reads(op)) {
          isRead[storage] = true;
          if (program.info(program.maker(storage)).region != program.info(op).region)
            leaves[storage] = true;
        }
    for (StorageId storage = 0; storage != program.numStorages(); ++storage)
      leaves[storage] = leaves[storage] || !isRead[storage];
    for (OpId op = program.numOps(); op-- > 0;) {
      const OpInfo &info = program.info(op);
      uint32_t step = info.choice == Choice::Required ? lateStepOf(op) : none;
      bool isKept = info.region != none &&
                    std::ranges::any_of(program.makes(op), [&](StorageId s) { return leaves[s]; });
      if (step == none || isKept || isPinned(op))
        continue;
      setAgain(op, step);
      result.reasons.push_back({op, true, 0, info.us});
      for (StorageId storage : program.reads(op))
        noteLate(storage, step);
    }
  }

  //===---- under a limit ----===//

  bool mayRepeat(OpId op) const {
    return program.info(op).choice != Choice::Never && !program.info(op).late && !isPinned(op);
  }

  void change(Proposal &p, uint32_t first, uint32_t last, int64_t bytes) const {
    if (first <= last)
      p.changes.push_back({first, last, bytes});
  }

  /// Makes sure that a storage exists at the step of the proposal. False where that cannot be.
  bool demand(Proposal &p, StorageId storage, uint64_t saved, std::vector<OpId> &work) const {
    const Uses &use = uses[storage];
    if (program.isPinned(storage))
      return true;
    int64_t bytes = program.bytes(storage);
    if (use.again) {
      if (use.lastLate < p.step)
        change(p, use.lastLate + 1, p.step, bytes);
      if (use.firstLate > p.step)
        p.earlier.push_back(program.maker(storage));
      p.needed.push_back(storage);
      return true;
    }
    if (use.last() >= p.step) {
      p.needed.push_back(storage);
      return true;
    }
    OpId maker = program.maker(storage);
    if (std::ranges::find(p.chain, maker) != p.chain.end())
      return true;
    bool repeatable = mayRepeat(maker);
    bool isSmall = program.bytes(storage) <= saved / kSmallOperand;
    if (isSmall && !(repeatable && program.info(maker).us == 0)) {
      change(p, use.last() + 1, p.step, bytes);
      p.needed.push_back(storage);
      return true;
    }
    if (!repeatable)
      return false;
    p.chain.push_back(maker);
    p.us += program.info(maker).us;
    for (StorageId made : program.makes(maker))
      change(p, p.step, p.step, program.bytes(made));
    work.push_back(maker);
    return p.chain.size() <= kMostInChain;
  }

  std::optional<Proposal> propose(OpId op) const {
    Proposal p;
    p.step = lateStepOf(op);
    if (p.step == none)
      return std::nullopt;
    p.us = program.info(op).us;
    uint64_t saved = 0;
    for (StorageId storage : program.makes(op)) {
      const Uses &use = uses[storage];
      int64_t bytes = program.bytes(storage);
      if (use.isLate()) {
        change(p, use.lastEarly + 1, p.step - 1, -bytes);
        saved += bytes;
      } else {
        change(p, p.step, p.step, bytes); // the second computation makes it too
      }
    }
    std::vector<OpId> work{op};
    while (!work.empty()) {
      OpId next = work.back();
      work.pop_back();
      for (StorageId storage : program.reads(next))
        if (!demand(p, storage, saved, work))
          return std::nullopt;
    }
    return demandEarlier(p) ? std::optional(std::move(p)) : std::nullopt;
  }

  /// Those that are computed again later than they are needed now come earlier, with all that they
  /// read.
  bool demandEarlier(Proposal &p) const {
    for (size_t i = 0; i != p.earlier.size(); ++i) {
      if (p.earlier.size() > kMostInChain)
        return false;
      OpId op = p.earlier[i];
      if (std::find(p.earlier.begin(), p.earlier.begin() + i, op) != p.earlier.begin() + i)
        continue;
      uint32_t old = lateStepOf(op);
      for (StorageId storage : program.makes(op))
        if (uses[storage].firstLate > p.step)
          change(p, p.step, uses[storage].firstLate - 1, program.bytes(storage));
      static const std::vector<OpId> nothing;
      auto found = chains.find(op);
      const std::vector<OpId> &chain = found == chains.end() ? nothing : found->second;
      // What is read was there at the later step, and so is kept, computed again or in the chain.
      auto demandReads = [&](OpId part) {
        for (StorageId storage : program.reads(part)) {
          if (program.isPinned(storage) ||
              std::ranges::find(chain, program.maker(storage)) != chain.end())
            continue;
          if (uses[storage].again && uses[storage].firstLate > p.step)
            p.earlier.push_back(program.maker(storage));
          p.needed.push_back(storage);
        }
      };
      demandReads(op);
      for (OpId part : chain) {
        demandReads(part);
        for (StorageId made : program.makes(part)) {
          change(p, old, old, -int64_t(program.bytes(made)));
          change(p, p.step, p.step, program.bytes(made));
        }
      }
    }
    return true;
  }

  void apply(const Proposal &p, int64_t sign) {
    for (const Change &c : p.changes) {
      profile.add(c.first, c.last, sign * c.bytes);
      searched.add(c.first, c.last, sign * c.bytes);
    }
  }

  void commit(OpId op, Proposal p) {
    uint64_t bytes = 0;
    for (StorageId storage : program.makes(op))
      bytes += uses[storage].isLate() ? program.bytes(storage) : 0;
    setAgain(op, p.step);
    for (StorageId storage : p.needed)
      noteLate(storage, p.step);
    for (OpId other : p.earlier)
      for (StorageId storage : program.makes(other))
        noteLate(storage, p.step);
    result.reasons.push_back({op, false, bytes, p.us});
    if (!p.chain.empty())
      chains[op] = std::move(p.chain);
  }

  CandidateTree candidates() const {
    std::vector<CandidateTree::Candidate> list;
    for (OpId op = 0; op != program.numOps(); ++op) {
      if (again[op] || !mayRepeat(op))
        continue;
      std::optional<Proposal> p = propose(op);
      if (p && p->area() > 0)
        list.push_back({op, beginOf(op), p->step, p->worth()});
    }
    return CandidateTree(std::move(list));
  }
  uint32_t beginOf(OpId op) const {
    uint32_t begin = none;
    for (StorageId storage : program.makes(op))
      if (uses[storage].isLate())
        begin = std::min(begin, uses[storage].lastEarly);
    return begin;
  }

  void meet(uint64_t limit) {
    if (program.constantBytes + profile.peak() <= limit)
      return;
    CandidateTree tree = candidates();
    std::unordered_map<OpId, unsigned> returns;
    int64_t nearlyAsHigh = 0;
    searched = profile;
    while (program.constantBytes + searched.peak() > limit && searched.peak() >= nearlyAsHigh) {
      uint32_t step = searched.peakStep();
      std::optional<uint32_t> best = tree.bestAt(step);
      if (!best) {
        // The limit is out of reach. Planned memory may have its peak at another step than this
        // estimate: those that are nearly as high are lowered, too.
        nearlyAsHigh = std::max(nearlyAsHigh, searched.peak() / 100 * kNearlyAsHigh);
        searched.add(step, step, -kOut);
        continue;
      }
      CandidateTree::Candidate candidate = tree.at(*best);
      std::optional<Proposal> p = propose(candidate.id);
      if (!p || p->area() <= 0) {
        tree.remove(*best);
        continue;
      }
      if (p->step != candidate.end) {
        tree.setEnd(*best, p->step);
        if (p->step <= step)
          continue;
      }
      if (p->worth() < candidate.worth * (1 - 1e-9) && returns[candidate.id]++ < kMostReturns) {
        tree.setWorth(*best, p->worth());
        continue;
      }
      tree.remove(*best);
      int64_t before = profile.peak(), searchedBefore = searched.peak();
      apply(*p, 1);
      if (profile.peak() > before || searched.peak() > searchedBefore)
        apply(*p, -1);
      else
        commit(candidate.id, std::move(*p));
    }
  }

  //===---- the result ----===//

  void finish() {
    std::ranges::sort(result.reasons, {}, &Reason::op);
    for (Reason &reason : result.reasons) {
      uint32_t step = lateStepOf(reason.op);
      result.again.push_back({reason.op, step, reason.op});
      if (auto chain = chains.find(reason.op); chain != chains.end())
        for (OpId part : chain->second)
          result.again.push_back({part, step, reason.op});
      result.addedUs += reason.us;
      if (reason.required)
        for (StorageId storage : program.makes(reason.op))
          reason.bytes += step > uses[storage].lastEarly + 1 ? program.bytes(storage) : 0;
    }
    std::ranges::sort(result.again, [](const Again &a, const Again &b) {
      return std::tuple(a.before, a.op, a.owner) < std::tuple(b.before, b.op, b.owner);
    });
    result.peakAfter = program.constantBytes + profile.peak();
  }

  const Program &program;
  const Options &options;
  std::vector<Uses> uses;  // by storage
  std::vector<bool> again; // by op; parts of chains are not
  /// Of those that have one.
  std::unordered_map<OpId, std::vector<OpId>> chains;
  /// The bytes at each step, and the same without the steps that nothing lowers.
  PeakTree profile, searched{0};
  Result result;
};

} // namespace

Result shardc::recompute::choose(const Program &program, const Options &options) {
  return Chooser(program, options).run();
}
