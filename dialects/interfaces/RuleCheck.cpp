// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/interfaces/RuleCheck.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace shardc {

namespace {
/// What one axis does to one tensor of an op.
struct AxisUse {
  bool partial = false;
  Reduction reduction = Reduction::Sum;
  /// The factor that the axis shards.
  std::optional<unsigned> factor;
  /// The dim that the axis shards, where some coordinates hold all of it and the others nothing:
  /// that does not say which of its factors.
  const DimFactors *allOrNothing = nullptr;

  bool shards() const { return factor || allOrNothing; }
};

/// One cut of a factor at one coordinate: `blocks` blocks of `size / blocks`, of each of which
/// `piece`.
struct Cut {
  unsigned axis;
  int64_t size, blocks;
  Run piece;
  bool operator==(const Cut &) const = default;
};

/// By factor: its cuts, outer to inner; nothing where the tensor does not have the factor.
using FactorCuts = std::vector<std::optional<std::vector<Cut>>>;

class Checker {
public:
  Checker(const ShardingRule &rule, std::span<const PlacedTensor> operands,
          std::span<const PlacedTensor> results)
      : rule(rule), operands(operands), results(results) {
    for (const Factor &f : rule.factors)
      sizes.push_back(f.size == kDynamic ? kStandIn : f.size);
  }

  std::vector<std::string> run() {
    if (!checkForm())
      return std::move(errors);
    const Mesh &mesh = tensor(0).layout.mesh;
    uses.assign(numTensors(), std::vector<AxisUse>(mesh.numAxes()));
    for (size_t t = 0; t < numTensors(); ++t)
      for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
        const Placement &p = tensor(t).layout.placements[axis];
        uses[t][axis].partial = p.isPartial();
        uses[t][axis].reduction = p.reduction;
      }
    for (int64_t position = 0; position < mesh.numDevices() && errors.empty(); ++position)
      checkCoordinate(mesh.coordinateOfPosition(position));
    for (unsigned axis = 0; axis < mesh.numAxes() && errors.empty(); ++axis)
      checkAxis(axis);
    return std::move(errors);
  }

private:
  /// Not a power of two, so that a chunk over an even number of devices is uneven.
  static constexpr int64_t kStandIn = 90;

  size_t numTensors() const { return operands.size() + results.size(); }
  const PlacedTensor &tensor(size_t t) const {
    return t < operands.size() ? operands[t] : results[t - operands.size()];
  }
  const TensorFactors &factorsOf(size_t t) const {
    return t < operands.size() ? rule.operands[t] : rule.results[t - operands.size()];
  }
  std::string name(size_t t) const {
    return t < operands.size() ? "operand " + std::to_string(t)
                               : "result " + std::to_string(t - operands.size());
  }
  void error(unsigned axis, const std::string &message) {
    errors.push_back("axis \"" + tensor(0).layout.mesh.axes[axis].name + "\": " + message);
  }

  bool checkForm() {
    std::vector<std::vector<int64_t>> in, out;
    for (const PlacedTensor &t : operands)
      in.push_back(t.shape);
    for (const PlacedTensor &t : results)
      out.push_back(t.shape);
    errors = rule.validate(in, out);
    for (size_t t = 0; t < numTensors(); ++t) {
      for (const std::string &problem : tensor(t).layout.validate(tensor(t).shape))
        errors.push_back(name(t) + ": " + problem);
      if (!(tensor(t).layout.mesh == tensor(0).layout.mesh))
        errors.push_back(name(t) + " has another mesh than " + name(0));
    }
    return errors.empty() && numTensors() > 0;
  }

  /// The factor of a dim that a split cuts, given what outer axes left of each factor; nothing
  /// where it cuts through several.
  std::optional<size_t> factorOfSplit(const AxisSplit &split, const DimFactors &dim,
                                      const std::vector<int64_t> &local) const {
    int64_t n = std::accumulate(local.begin(), local.end(), int64_t(1), std::multiplies<>());
    int64_t outer = 1, inner = n;
    for (size_t j = 0; j < dim.size(); outer *= local[j], ++j) {
      inner /= local[j];
      if (split.blocks % outer != 0 || local[j] % (split.blocks / outer) != 0)
        continue;
      bool whole = true;
      for (int64_t r = 0; r < split.count; ++r) {
        Run piece = split.pieceOfBlock(n / split.blocks, r);
        whole &= piece.begin % inner == 0 && piece.end % inner == 0;
      }
      if (whole)
        return j;
    }
    return std::nullopt;
  }

  /// Cuts of every factor of one tensor at a coordinate, outer to inner.
  void cutsOf(size_t t, const Coordinate &at, FactorCuts &cuts) {
    for (size_t d = 0; d < tensor(t).shape.size(); ++d) {
      const DimFactors &dim = factorsOf(t)[d];
      std::vector<int64_t> local;
      for (unsigned f : dim) {
        local.push_back(sizes[f]);
        cuts[f].emplace();
      }
      for (const AxisSplit &split : tensor(t).layout.splitOfDim(static_cast<int64_t>(d)).axes) {
        int64_t n = std::accumulate(local.begin(), local.end(), int64_t(1), std::multiplies<>());
        std::vector<int64_t> extents = split.extents(n);
        bool allOrNothing = std::all_of(extents.begin(), extents.end(),
                                        [&](int64_t extent) { return extent == 0 || extent == n; });
        if (allOrNothing && !dim.empty()) {
          uses[t][split.axis].allOrNothing = &dim;
          if (extents[at[split.axis]] == n && n != 0)
            continue;
          for (unsigned f : dim) // nothing is held here, and so nothing computed
            cuts[f].reset();
          break;
        }
        std::optional<size_t> j = factorOfSplit(split, dim, local);
        if (!j) {
          error(split.axis, name(t) + " dim " + std::to_string(d) + ": " +
                                tensor(t).layout.placements[split.axis].str() +
                                " cuts through factors of the op");
          return;
        }
        int64_t outer =
            std::accumulate(local.begin(), local.begin() + *j, int64_t(1), std::multiplies<>());
        int64_t inner = n / outer / local[*j];
        Run piece = split.pieceOfBlock(n / split.blocks, at[split.axis]);
        Cut cut{
            split.axis, local[*j], split.blocks / outer, {piece.begin / inner, piece.end / inner}};
        cuts[dim[*j]]->push_back(cut);
        local[*j] = cut.blocks * cut.piece.size();
        uses[t][split.axis].factor = dim[*j];
      }
    }
  }

  /// All tensors that have a factor must hold the same piece of it.
  void checkCoordinate(const Coordinate &at) {
    FactorCuts first(rule.factors.size());
    std::vector<size_t> firstTensor(rule.factors.size(), 0);
    for (size_t t = 0; t < numTensors(); ++t) {
      FactorCuts cuts(rule.factors.size());
      cutsOf(t, at, cuts);
      if (!errors.empty())
        return;
      for (unsigned f = 0; f < cuts.size(); ++f) {
        if (!cuts[f])
          continue;
        if (!first[f]) {
          first[f] = std::move(cuts[f]);
          firstTensor[f] = t;
          continue;
        }
        if (*first[f] == *cuts[f])
          continue;
        const std::vector<Cut> &some = first[f]->empty() ? *cuts[f] : *first[f];
        return error(some.front().axis, name(firstTensor[f]) + " and " + name(t) +
                                            " hold different pieces of factor " +
                                            std::to_string(f));
      }
    }
  }

  /// All tensors must agree on one factor for the axis, and the others be what it makes them.
  void checkAxis(unsigned axis) {
    std::set<unsigned> candidates;
    const DimFactors *any = nullptr;
    for (size_t t = 0; t < numTensors(); ++t) {
      const AxisUse &use = uses[t][axis];
      if (use.factor)
        candidates.insert(*use.factor);
      else if (use.allOrNothing)
        any = use.allOrNothing;
    }
    if (candidates.size() > 1)
      return error(axis, "shards factors " + std::to_string(*candidates.begin()) + " and " +
                             std::to_string(*candidates.rbegin()));
    if (candidates.empty() && !any)
      return checkPassThrough(axis);
    if (candidates.empty())
      candidates.insert(any->begin(), any->end());
    std::vector<std::string> firstErrors;
    for (unsigned factor : candidates) {
      size_t before = errors.size();
      checkAxisFactor(axis, factor);
      if (errors.size() == before)
        return;
      if (firstErrors.empty())
        firstErrors.assign(errors.begin() + static_cast<std::ptrdiff_t>(before), errors.end());
      errors.resize(before);
    }
    errors.insert(errors.end(), firstErrors.begin(), firstErrors.end());
  }

  bool hasFactor(size_t t, unsigned factor) const {
    return std::any_of(factorsOf(t).begin(), factorsOf(t).end(), [&](const DimFactors &dim) {
      return std::find(dim.begin(), dim.end(), factor) != dim.end();
    });
  }

  /// What tensors must be along an axis that shards `factor`.
  void checkAxisFactor(unsigned axis, unsigned factor) {
    const Factor &f = rule.factors[factor];
    if (!f.canShard())
      return error(axis,
                   "shards factor " + std::to_string(factor) + ", which the op needs replicated");
    for (size_t t = 0; t < numTensors(); ++t) {
      const AxisUse &use = uses[t][axis];
      if (use.shards() != hasFactor(t, factor)) {
        error(axis, name(t) + " is " + tensor(t).layout.placements[axis].str() + ", but factor " +
                        std::to_string(factor) + " is sharded");
        continue;
      }
      if (use.shards())
        continue;
      bool isResult = t >= operands.size(), reducing = f.kind == FactorKind::Reducing;
      bool mustBePartial = reducing && (isResult || rule.isAdditive(static_cast<unsigned>(t)));
      Reduction reduction = isResult ? f.reduction : Reduction::Sum;
      if (use.partial != mustBePartial || (mustBePartial && use.reduction != reduction))
        error(axis,
              name(t) + " is " + tensor(t).layout.placements[axis].str() + ", expected " +
                  (mustBePartial ? Placement::partial(reduction) : Placement::replicate()).str());
    }
  }

  /// Partial operands must be one of the sets that the op is linear in, and make all results
  /// partial.
  void checkPassThrough(unsigned axis) {
    std::set<unsigned> partial;
    std::optional<Reduction> reduction;
    bool same = true;
    for (size_t t = 0; t < numTensors(); ++t) {
      const AxisUse &use = uses[t][axis];
      if (!use.partial)
        continue;
      same &= !reduction || *reduction == use.reduction;
      reduction = use.reduction;
      if (t < operands.size())
        partial.insert(static_cast<unsigned>(t));
    }
    if (!reduction)
      return;
    bool linear = same && (*reduction == Reduction::Sum || *reduction == Reduction::Avg) &&
                  std::any_of(rule.linearIn.begin(), rule.linearIn.end(), [&](const auto &set) {
                    return std::set<unsigned>(set.begin(), set.end()) == partial;
                  });
    for (size_t t = operands.size(); t < numTensors(); ++t)
      linear &= uses[t][axis].partial;
    if (!linear)
      error(axis, "partial values do not pass through this op so");
  }

  const ShardingRule &rule;
  std::span<const PlacedTensor> operands, results;
  std::vector<int64_t> sizes;             ///< of factors
  std::vector<std::vector<AxisUse>> uses; ///< by tensor, then axis
  std::vector<std::string> errors;
};
} // namespace

std::vector<std::string> checkRule(const ShardingRule &rule, std::span<const PlacedTensor> operands,
                                   std::span<const PlacedTensor> results) {
  return Checker(rule, operands, results).run();
}

} // namespace shardc
