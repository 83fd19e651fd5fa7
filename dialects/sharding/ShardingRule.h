// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an op says about sharding, as a plain value: its iteration space as named factors, and how
// each dim of each operand and result is a product of them (as in einsum).
//
//   linear y[b,s,o] = sum_i x[b,s,i] w[o,i] + bias[o]
//     factors  b, s, o parallel; i reducing with sum
//     x (b)(s)(i)   w (o)(i)   bias (o)   ->   y (b)(s)(o)
//   view [4, 768] -> [4, 12, 64]
//     (b)(h d) -> (b)(h)(d)        h = 12, d = 64, both parallel
//
// A mesh axis shards an op by sharding one of its factors: operands and results that have the
// factor are sharded on it, the others are replicated over that axis. See FactorKind for what a
// result becomes. A dim of size 1 has no factors (it broadcasts), so nothing is said about sharding
// it.
#ifndef SHARDC_DIALECTS_SHARDING_SHARDINGRULE_H
#define SHARDC_DIALECTS_SHARDING_SHARDINGRULE_H

#include "dialects/sharding/Layout.h"

namespace shardc {

enum class FactorKind : uint8_t {
  /// Iterations are independent: sharded freely, as long as operands and results agree.
  Parallel,
  /// Contracted. Sharded, a result that lacks it, of which there is at least one, is
  /// Partial(reduction) over the axis; one that has it is sharded: the cotangent of attention's
  /// queries, beside those of its keys.
  Reducing,
  /// Sharded, ranks exchange a small amount inside the op (softmax, norms, variance over a sharded
  /// dim): `exchange` elements for every point of the op's other factors. Results that have the
  /// factor are sharded on it, the others are replicated.
  Cooperative,
  /// As Parallel, but a shard needs `haloBefore` and `haloAfter` elements of its neighbours. They
  /// count as elements of the first result, and are fractions where those are larger.
  Neighbouring,
  /// Cannot be sharded: operands and results must be replicated along it.
  NeedReplication,
};

struct Factor {
  int64_t size = 1; ///< kDynamic where unknown
  FactorKind kind = FactorKind::Parallel;
  Reduction reduction = Reduction::Sum; ///< Reducing
  /// Cooperative: see there. Of dims that are parts of a longer one, which a concatenation joins or
  /// a split or slice cuts: one more than where the first of them begins there (see partsOf).
  int64_t exchange = 0;
  /// Cooperative, Neighbouring: elements that go to other ranks once, whatever the number of ranks,
  /// for every point of the op's other factors (sorts, rows that go to their owners).
  int64_t moved = 0;
  double haloBefore = 0; ///< Neighbouring
  double haloAfter = 0;  ///< Neighbouring
  /// The op needs to know where a shard lies among the others (lookups, scans): each rank has one
  /// piece, never one of each of several blocks.
  bool inOnePiece = false;

  bool operator==(const Factor &) const = default;
  bool canShard() const { return kind != FactorKind::NeedReplication; }
  bool hasParts() const {
    return exchange != 0 && (kind == FactorKind::Parallel || kind == FactorKind::Neighbouring);
  }
};

/// The factors of one dim, outer to inner: its size is their product. (The operand dim of a
/// Neighbouring factor may have another size than the result dim.)
using DimFactors = std::vector<unsigned>;
/// One entry per dim.
using TensorFactors = std::vector<DimFactors>;

/// A dim that is elements [begin, begin + size) of the range of a factor, its innermost one: of the
/// longest dim that has the factor.
struct FactorPart {
  unsigned factor = 0;
  bool isResult = false;
  unsigned slot = 0; ///< number of the operand or result
  unsigned dim = 0;
  int64_t begin = 0;
  int64_t size = 0;
};

struct ShardingRule {
  std::vector<Factor> factors;
  std::vector<TensorFactors> operands;
  std::vector<TensorFactors> results;

  /// Sets of operands in which the op is linear jointly, the others held fixed: where every operand
  /// of one set is P(sum) (or every one P(avg)) over an axis, and all other operands are replicated
  /// over it, the results are partial likewise. mul, matmul: {0}, {1}. add, cat: {0, 1}. div: {0}.
  /// linear with bias: {0, 2}, {1, 2}. Empty: nothing passes through.
  std::vector<std::vector<unsigned>> linearIn;
  /// Operands that are added to a contraction (biases): where a reducing factor is sharded over an
  /// axis and such an operand does not have it, the operand must count once, as P(sum) (G1).
  std::vector<unsigned> additive;
  /// The op moves data and computes nothing (views, permutations, slices, copies): redistributing
  /// before or after it is the same work.
  bool movesDataOnly = false;

  bool operator==(const ShardingRule &) const = default;

  bool isAdditive(unsigned operand) const;
  /// All that is wrong with this rule for tensors of these shapes; empty when it is usable.
  std::vector<std::string> validate(std::span<const std::vector<int64_t>> operandShapes,
                                    std::span<const std::vector<int64_t>> resultShapes) const;
  size_t hash() const;
  /// `(b)(h d) -> (b)(h)(d), b = 4, h = 12, d = 64`, with letters in order of first use.
  std::string str() const;
};

/// The dims of an op that are parts of the range of a factor, or that whole range. They may be
/// sharded in blocks of any sizes of which none lies across the border of a part, and then no rank
/// needs what others have. (What the factors say, a halo or a factor of equal parts, is another
/// way.)
std::vector<FactorPart> partsOf(const ShardingRule &rule,
                                std::span<const std::vector<int64_t>> operandShapes,
                                std::span<const std::vector<int64_t>> resultShapes);

} // namespace shardc

#endif // SHARDC_DIALECTS_SHARDING_SHARDINGRULE_H
