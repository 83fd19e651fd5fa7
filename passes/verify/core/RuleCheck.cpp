// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/verify/core/RuleCheck.h"

#include "passes/verify/core/FactorSets.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace shardc {

namespace {
class Checker {
public:
  Checker(const ShardingRule &rule, std::span<const PlacedTensor> operands,
          std::span<const PlacedTensor> results);

  std::vector<std::string> run();

private:
  struct Tensor {
    const PlacedTensor *placed;
    const TensorFactors *factors;
    std::string name;
    bool isResult;
    unsigned index; ///< among operands or results
    /// For each dim with factors, their sets; empty where the dim has no legal split.
    std::vector<std::vector<FactorSets>> sets;

    const Placement &on(unsigned axis) const { return placed->layout->placements[axis]; }
    bool has(unsigned factor) const;
  };

  bool checkMeshes();
  void findParts();
  void readSets(Tensor &tensor);
  void readDim(Tensor &tensor, size_t dim);
  std::pair<int64_t, std::vector<int64_t>> sizesOf(const Tensor &tensor, size_t dim) const;
  bool splitsWholeFactor(const DimFactors &factors, const std::vector<FactorSets> &sets) const;
  /// All tensors that share a factor hold the same of it.
  void checkFactor(unsigned factor);
  /// What one axis does: shards one factor (or several, of one kind) in every tensor that has it,
  /// or passes partial operands through, or nothing.
  void checkAxis(unsigned axis);
  void checkShardedAxis(unsigned axis, const std::set<unsigned> &sharded);
  void checkUnshardedAxis(unsigned axis);
  std::vector<std::set<unsigned>> shardedFactors(unsigned axis) const;
  const FactorSets *find(const Tensor &tensor, unsigned factor) const;
  std::string factorName(unsigned factor) const;
  void error(unsigned axis, const Tensor &tensor, const std::string &what) {
    errors.push_back("axis \"" + mesh->axes[axis].name + "\": " + tensor.name + " is " +
                     tensor.on(axis).str() + ", " + what);
  }

  const ShardingRule &rule;
  std::vector<Tensor> tensors;
  const Mesh *mesh = nullptr;
  std::vector<int64_t> factorSizes;
  std::set<unsigned> inParts; ///< factors of whose range a tensor is a part in unequal blocks
  std::vector<std::string> errors;
};
} // namespace

bool Checker::Tensor::has(unsigned factor) const {
  return std::any_of(factors->begin(), factors->end(), [&](const DimFactors &dim) {
    return std::find(dim.begin(), dim.end(), factor) != dim.end();
  });
}

Checker::Checker(const ShardingRule &rule, std::span<const PlacedTensor> operands,
                 std::span<const PlacedTensor> results)
    : rule(rule) {
  auto add = [&](std::span<const PlacedTensor> placed, const std::vector<TensorFactors> &factors,
                 const char *name, bool isResult) {
    for (unsigned i = 0; i < placed.size() && i < factors.size(); ++i)
      if (placed[i].layout)
        tensors.push_back({&placed[i], &factors[i], name + std::to_string(i), isResult, i, {}});
  };
  add(operands, rule.operands, "operand ", false);
  add(results, rule.results, "result ", true);
  for (const Factor &factor : rule.factors)
    factorSizes.push_back(factor.size);
}

bool Checker::checkMeshes() {
  for (const Tensor &tensor : tensors) {
    if (!mesh)
      mesh = &tensor.placed->layout->mesh;
    if (tensor.placed->layout->mesh == *mesh)
      continue;
    errors.push_back(tensor.name + " is on mesh " + tensor.placed->layout->mesh.str() + ", but " +
                     tensors.front().name + " on " + mesh->str());
    return false;
  }
  return mesh != nullptr;
}

std::string Checker::factorName(unsigned factor) const {
  for (const Tensor &tensor : tensors)
    for (size_t d = 0; d < tensor.factors->size(); ++d) {
      const DimFactors &dim = (*tensor.factors)[d];
      if (std::find(dim.begin(), dim.end(), factor) == dim.end())
        continue;
      std::string where = "dim " + std::to_string(d) + " of " + tensor.name;
      if (dim.size() == 1)
        return where;
      return "the factor of " + std::to_string(factorSizes[factor]) + " in " + where;
    }
  return "a factor";
}

//===------------------------------------------------------------------------------------------===//
// What is held
//===------------------------------------------------------------------------------------------===//

/// The size of a dim, and those of its factors.
std::pair<int64_t, std::vector<int64_t>> Checker::sizesOf(const Tensor &tensor, size_t dim) const {
  std::vector<int64_t> sizes;
  int64_t size = 1;
  for (unsigned factor : (*tensor.factors)[dim]) {
    sizes.push_back(factorSizes[factor]);
    size *= factorSizes[factor];
  }
  // A neighbouring factor may have another size in each tensor.
  int64_t whole = tensor.placed->shape[dim];
  const DimFactors &factors = (*tensor.factors)[dim];
  for (size_t i = 0; i < factors.size(); ++i)
    if (whole != kDynamic && size != whole &&
        (sizes.size() == 1 || rule.factors[factors[i]].kind == FactorKind::Neighbouring)) {
      int64_t others = 1;
      for (size_t j = 0; j < sizes.size(); ++j)
        others *= j == i ? 1 : sizes[j];
      sizes[i] = others == 0 ? 0 : whole / others;
      size = whole;
    }
  return {size, sizes};
}

void Checker::readDim(Tensor &tensor, size_t dim) {
  const DimFactors &factors = (*tensor.factors)[dim];
  DimSplit split = tensor.placed->layout->splitOfDim(static_cast<int64_t>(dim));
  std::erase_if(split.axes, [](const AxisSplit &axis) { return axis.count == 1; });
  if (factors.empty()) {
    if (!split.empty() && tensor.placed->shape[dim] != 0)
      error(split.axes.front().axis, tensor,
            "but the op can not be sharded along dim " + std::to_string(dim));
    return;
  }
  auto [size, sizes] = sizesOf(tensor, dim);
  tensor.sets[dim] = factorSetsOfDim(split, size, sizes, *mesh);
  if (inParts.count(factors.back())) {
    // What a rank lacks of its part comes from others, whatever the blocks are.
    if (tensor.sets[dim].empty() || splitsWholeFactor(factors, tensor.sets[dim])) {
      tensor.sets[dim].assign(factors.size() - 1, FactorSets::all(1));
      const int64_t whole[] = {size};
      tensor.sets[dim].push_back(factorSetsOfDim(split, size, whole, *mesh).front());
    }
    return;
  }
  if (tensor.sets[dim].empty())
    error(
        split.axes.back().axis, tensor,
        "which cuts dim " + std::to_string(dim) + " of " + std::to_string(size) +
            " inside a unit that the op needs as a whole (its factors are " +
            [&] {
              std::string text;
              for (int64_t s : sizes)
                text += (text.empty() ? "" : " x ") + std::to_string(s);
              return text;
            }() +
            ")");
  auto isOnePiece = [](const IndexSet &set) { return set.size() <= 1; };
  for (size_t i = 0; i < tensor.sets[dim].size(); ++i)
    if (rule.factors[factors[i]].inOnePiece &&
        !std::ranges::all_of(tensor.sets[dim][i].sets, isOnePiece))
      error(split.axes.back().axis, tensor,
            "which gives a rank several pieces of dim " + std::to_string(dim) +
                ", but the op needs one piece on each");
}

/// Whether a rank lacks elements along a factor of which the op needs all.
bool Checker::splitsWholeFactor(const DimFactors &factors,
                                const std::vector<FactorSets> &sets) const {
  for (size_t i = 0; i < sets.size(); ++i)
    for (unsigned axis = 0; axis < mesh->axes.size(); ++axis)
      if (!rule.factors[factors[i]].canShard() && sets[i].dependsOn(axis))
        return true;
  return false;
}

void Checker::findParts() {
  for (const Tensor &tensor : tensors)
    for (size_t dim = 0; dim < tensor.factors->size(); ++dim) {
      const DimFactors &factors = (*tensor.factors)[dim];
      if (factors.empty() || !rule.factors[factors.back()].hasParts())
        continue;
      DimSplit split = tensor.placed->layout->splitOfDim(static_cast<int64_t>(dim));
      auto has = [&](auto what) { return std::any_of(split.axes.begin(), split.axes.end(), what); };
      bool isInParts = has([](const AxisSplit &axis) { return axis.isUnequal(); });
      // One block for each rank is a size for each.
      if (!isInParts && has([](const AxisSplit &axis) { return !axis.sizes.empty(); })) {
        auto [size, sizes] = sizesOf(tensor, dim);
        std::vector<FactorSets> sets = factorSetsOfDim(split, size, sizes, *mesh);
        isInParts = sets.empty() || splitsWholeFactor(factors, sets);
      }
      if (isInParts)
        inParts.insert(factors.back());
    }
}

void Checker::readSets(Tensor &tensor) {
  tensor.sets.assign(tensor.factors->size(), {});
  for (size_t dim = 0; dim < tensor.factors->size(); ++dim)
    readDim(tensor, dim);
}

const FactorSets *Checker::find(const Tensor &tensor, unsigned factor) const {
  for (size_t dim = 0; dim < tensor.factors->size(); ++dim) {
    const DimFactors &factors = (*tensor.factors)[dim];
    auto position = std::find(factors.begin(), factors.end(), factor);
    if (position != factors.end() && !tensor.sets[dim].empty())
      return &tensor.sets[dim][position - factors.begin()];
  }
  return nullptr;
}

void Checker::checkFactor(unsigned factor) {
  const Tensor *first = nullptr;
  for (const Tensor &tensor : tensors) {
    const FactorSets *sets = find(tensor, factor);
    if (!sets)
      continue;
    if (!first) {
      first = &tensor;
      continue;
    }
    // Elements of a halo are counted by extents, which differ between operand and result.
    if (rule.factors[factor].kind == FactorKind::Neighbouring || inParts.count(factor))
      continue;
    if (!sameSets(*find(*first, factor), *sets, *mesh))
      errors.push_back(tensor.name + " is " + tensor.placed->layout->str() + " and " + first->name +
                       " is " + first->placed->layout->str() + ": they hold different parts of " +
                       factorName(factor));
  }
}

//===------------------------------------------------------------------------------------------===//
// What an axis does
//===------------------------------------------------------------------------------------------===//

/// The factors that an axis shards: one set, or several of which each may be meant. Where one shard
/// of a dim has everything and the others nothing, any factor of the dim may be what is split.
std::vector<std::set<unsigned>> Checker::shardedFactors(unsigned axis) const {
  std::set<unsigned> known;
  std::vector<const DimFactors *> undetermined;
  for (const Tensor &tensor : tensors)
    for (size_t dim = 0; dim < tensor.factors->size(); ++dim) {
      const DimFactors &factors = (*tensor.factors)[dim];
      bool isKnown = false;
      for (size_t i = 0; i < tensor.sets[dim].size(); ++i)
        if (tensor.sets[dim][i].dependsOn(axis)) {
          known.insert(factors[i]);
          isKnown = true;
        }
      if (!isKnown && !tensor.sets[dim].empty() && tensor.sets[dim].front().isUndeterminedOn(axis))
        undetermined.push_back(&factors);
    }
  std::vector<std::set<unsigned>> readings{known};
  for (const DimFactors *factors : undetermined) {
    std::vector<std::set<unsigned>> next;
    auto add = [&](const std::set<unsigned> &reading) {
      if (std::find(next.begin(), next.end(), reading) == next.end())
        next.push_back(reading);
    };
    for (const std::set<unsigned> &reading : readings) {
      auto isIn = [&](unsigned factor) { return reading.count(factor) != 0; };
      auto canShard = [&](unsigned factor) { return rule.factors[factor].canShard(); };
      if (std::any_of(factors->begin(), factors->end(), isIn)) {
        add(reading);
        continue;
      }
      bool isPossible = std::any_of(factors->begin(), factors->end(), canShard);
      for (unsigned factor : *factors) {
        if (isPossible && !canShard(factor))
          continue;
        std::set<unsigned> with = reading;
        with.insert(factor);
        add(with);
      }
    }
    readings = std::move(next);
  }
  return readings;
}

void Checker::checkShardedAxis(unsigned axis, const std::set<unsigned> &sharded) {
  const Factor *reducing = nullptr;
  for (unsigned f : sharded) {
    if (!rule.factors[f].canShard())
      errors.push_back("axis \"" + mesh->axes[axis].name + "\" shards " + factorName(f) +
                       ", along which the op needs all elements");
    if (rule.factors[f].kind == FactorKind::Reducing)
      reducing = &rule.factors[f];
  }
  for (const Tensor &tensor : tensors) {
    if (std::any_of(sharded.begin(), sharded.end(), [&](unsigned f) { return tensor.has(f); })) {
      if (!tensor.on(axis).isShard())
        error(axis, tensor, "but must be sharded along " + factorName(*sharded.begin()));
      continue;
    }
    Placement wanted = Placement::replicate();
    const char *why = "the axis shards a dim that it does not have";
    if (reducing && tensor.isResult) {
      wanted = Placement::partial(reducing->reduction);
      why = "the axis shards what the op reduces over";
    } else if (reducing && rule.isAdditive(tensor.index)) {
      wanted = Placement::partial(Reduction::Sum);
      why = "it must be added only once to a sum over the axis";
    }
    if (tensor.on(axis) != wanted)
      error(axis, tensor, "but must be " + wanted.str() + ": " + why);
  }
}

void Checker::checkUnshardedAxis(unsigned axis) {
  std::vector<unsigned> partial;
  std::optional<Reduction> reduction;
  for (const Tensor &tensor : tensors) {
    if (tensor.isResult || !tensor.on(axis).isPartial())
      continue;
    partial.push_back(tensor.index);
    if (reduction && *reduction != tensor.on(axis).reduction)
      return error(axis, tensor, "but another operand is " + Placement::partial(*reduction).str());
    reduction = tensor.on(axis).reduction;
  }
  if (!partial.empty()) {
    bool passes = std::any_of(rule.linearIn.begin(), rule.linearIn.end(), [&](auto set) {
      std::sort(set.begin(), set.end());
      return set == partial;
    });
    bool linear = *reduction == Reduction::Sum || *reduction == Reduction::Avg;
    if (!passes || (!linear && !rule.movesDataOnly)) {
      for (const Tensor &tensor : tensors)
        if (!tensor.isResult && tensor.on(axis).isPartial())
          error(axis, tensor, "but the op is not linear in it: reduce it first");
      return;
    }
  }
  Placement wanted = partial.empty() ? Placement::replicate() : Placement::partial(*reduction);
  for (const Tensor &tensor : tensors)
    if (tensor.isResult && tensor.on(axis) != wanted && !tensor.on(axis).isShard())
      error(axis, tensor, "but comes out as " + wanted.str());
}

void Checker::checkAxis(unsigned axis) {
  if (mesh->axes[axis].size == 1)
    return;
  // The layouts are legal if they are so by one reading. Errors are those of the first, in which
  // outer factors are split.
  std::vector<std::string> others = std::move(errors), first;
  bool isFirst = true;
  for (const std::set<unsigned> &sharded : shardedFactors(axis)) {
    errors.clear();
    if (sharded.empty())
      checkUnshardedAxis(axis);
    else
      checkShardedAxis(axis, sharded);
    if (errors.empty()) {
      first.clear();
      break;
    }
    if (isFirst)
      first = std::move(errors);
    isFirst = false;
  }
  errors = std::move(others);
  errors.insert(errors.end(), first.begin(), first.end());
}

std::vector<std::string> Checker::run() {
  if (!checkMeshes())
    return errors;
  findParts();
  for (Tensor &tensor : tensors)
    readSets(tensor);
  if (!errors.empty())
    return errors;
  for (unsigned axis = 0; axis < mesh->numAxes(); ++axis)
    checkAxis(axis);
  if (!errors.empty())
    return errors;
  for (unsigned factor = 0; factor < rule.factors.size(); ++factor)
    checkFactor(factor);
  return errors;
}

//===------------------------------------------------------------------------------------------===//
// Sizes that are not static
//===------------------------------------------------------------------------------------------===//

/// What a dim with dynamic factors must be a multiple of for all splits of these tensors.
static int64_t unitOf(std::span<const PlacedTensor> operands,
                      std::span<const PlacedTensor> results) {
  int64_t unit = 1;
  for (std::span<const PlacedTensor> list : {operands, results})
    for (const PlacedTensor &tensor : list) {
      if (!tensor.layout)
        continue;
      for (const Placement &placement : tensor.layout->placements)
        if (!placement.isUnequal()) // of a dim of known size
          unit = std::lcm(unit, placement.blocks * placement.granule);
    }
  return unit;
}

std::vector<std::string> checkRule(const ShardingRule &rule, std::span<const PlacedTensor> operands,
                                   std::span<const PlacedTensor> results) {
  bool isStatic = std::none_of(rule.factors.begin(), rule.factors.end(),
                               [](const Factor &factor) { return factor.size == kDynamic; });
  if (isStatic)
    return Checker(rule, operands, results).run();
  // Two functions of a size that agree on sizes below, at and above that of the mesh agree on all:
  // chunks are fixed by their quotient and remainder.
  int64_t unit = unitOf(operands, results);
  for (int64_t multiple : {1, 2, 3, 5, 16, 33}) {
    ShardingRule concrete = rule;
    for (Factor &factor : concrete.factors)
      if (factor.size == kDynamic)
        factor.size = unit * multiple;
    std::vector<std::string> errors = Checker(concrete, operands, results).run();
    if (!errors.empty())
      return errors;
  }
  return {};
}

} // namespace shardc
