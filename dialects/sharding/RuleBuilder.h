// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds sharding rules from shapes, in a few words per family of ops.
//
//   RuleBuilder({a, b}, {c}).pointwise().linearJointly({0, 1})            add
//   RuleBuilder({a, b}, {c}).pointwise().linear(0).linear(1)              mul
//   RuleBuilder({x}, {y}).reduce({1}, Reduction::Sum).linear(0)           sum over dim 1
//   RuleBuilder({x, w, bias}, {y}).einsum({"bsi", "oi", "o"}, {"bso"})
//       .linearJointly({0, 2}).linearJointly({1, 2}).additive(2)          linear on a 3-d input
//   RuleBuilder({x}, {y}).view()                                          view, also linear
//
// Each call adds to the rule; build() returns it. Misuse (a dim or operand that does not exist,
// sizes that do not fit) never crashes: it leaves a rule that replicates what it could not
// describe, and ShardingRule::validate() or errors() says what was wrong.
#ifndef SHARDC_DIALECTS_SHARDING_RULEBUILDER_H
#define SHARDC_DIALECTS_SHARDING_RULEBUILDER_H

#include "dialects/sharding/ShardingRule.h"

#include <map>

namespace shardc {

/// Size of a dim as coefficient x product of symbols. Symbols are numbers that the caller assigns:
/// equal numbers are equal sizes. An integer converts; kDynamic is a size that nothing is known of.
struct DimSize {
  int64_t coefficient = 1;  ///< kDynamic: unknown
  std::vector<int> symbols; ///< sorted

  DimSize(int64_t size = 1) : coefficient(size) {}
  DimSize(int64_t coefficient, std::vector<int> symbols);
  static DimSize symbol(int id) { return DimSize(1, {id}); }

  bool operator==(const DimSize &) const = default;
  bool isUnknown() const { return coefficient == kDynamic; }
  bool isOne() const { return coefficient == 1 && symbols.empty(); }
  /// The size as an integer: kDynamic unless it is a known number.
  int64_t fixed() const { return symbols.empty() ? coefficient : kDynamic; }
};

class RuleBuilder {
public:
  using Shape = std::vector<DimSize>;

  RuleBuilder(std::vector<Shape> operandShapes, std::vector<Shape> resultShapes);
  /// From shapes as MLIR's ranked types give them.
  static RuleBuilder ofShapes(const std::vector<std::vector<int64_t>> &operandShapes,
                              const std::vector<std::vector<int64_t>> &resultShapes);

  // Families.

  /// Results are elementwise functions of the operands, which broadcast from the last dim: one
  /// parallel factor per result dim.
  RuleBuilder &pointwise();
  /// One letter per dim for each operand and result; equal letters are one factor. Letters that no
  /// result has are reducing with `reduction`. A dim of size 1 takes no part. A dim that is a
  /// product is written in parentheses, outer to inner, e.g. grouped-query attention
  /// `einsum({"b(kg)sd", "bktd", "bkte"}, {"b(kg)se"})`: at most one letter of a product may have a
  /// size that no other dim gives.
  RuleBuilder &einsum(const std::vector<std::string> &operandDims,
                      const std::vector<std::string> &resultDims,
                      Reduction reduction = Reduction::Sum);
  /// torch.matmul of operands 0 and 1: vectors, matrices and broadcast batches. Linear in each.
  RuleBuilder &matmul();
  /// Changes the kind of a letter of the preceding einsum.
  RuleBuilder &letter(char name, FactorKind kind, int64_t exchange = 0);
  /// Operand 0 reduced over `dims` (none: over all) to every result; the kept dims of the results
  /// line up with or without the reduced ones as size 1 (told by rank).
  RuleBuilder &reduce(std::vector<int64_t> dims, Reduction reduction);
  /// As reduce or pointwise of operand 0, where ranks must talk inside the op along `dims`:
  /// softmax, norms, variance. `exchange`: elements exchanged for each point of the other factors.
  /// Further operands (weight, bias) line up with operand 0 from the last dim. Results of full rank
  /// have the factors of `dims` unless they are of size 1 there.
  RuleBuilder &cooperative(std::vector<int64_t> dims, int64_t exchange);
  /// Row-major reshape of operand 0 to result 0: common factors of the two shapes, outer to inner.
  RuleBuilder &view();
  /// Result dim i is operand dim `permutation[i]`.
  RuleBuilder &permute(std::vector<int64_t> permutation);
  /// Result 0 is operand 0 with size-1 dims repeated, and new dims in front.
  RuleBuilder &expand();
  /// Operands joined along `dim`: equal sizes are (block, inner) with only inner shardable;
  /// otherwise the dim needs replication.
  RuleBuilder &concat(int64_t dim);
  /// Operand 0 cut along `dim` into the results, or into equal pieces of which the results are
  /// some: the reverse of concat.
  RuleBuilder &split(int64_t dim);
  /// Elements [start, start + length) of `dim`, step 1: shardable inside where the piece is one of
  /// the equal blocks of the dim. For other steps pass `start` = -1: the dim needs replication.
  RuleBuilder &slice(int64_t dim, int64_t start);
  /// Result 0 is made from nothing, or from operands that are all replicated (arange, full,
  /// random).
  RuleBuilder &create();
  /// Nothing may be sharded.
  RuleBuilder &replicateAll();

  // Single facts.

  unsigned factor(DimSize size, FactorKind kind = FactorKind::Parallel);
  RuleBuilder &operandDim(unsigned operand, int64_t dim, DimFactors factors);
  RuleBuilder &resultDim(unsigned result, int64_t dim, DimFactors factors);
  Factor &at(unsigned factor) { return rule.factors[factor]; }
  /// The factors of operand dim (d may count from the end) become `kind`.
  RuleBuilder &operandDimKind(unsigned operand, int64_t dim, FactorKind kind);
  /// The factors of operand dim are cut into one piece for each rank, not in blocks.
  RuleBuilder &operandDimInOnePiece(unsigned operand, int64_t dim);

  RuleBuilder &linear(unsigned operand) { return linearJointly({operand}); }
  RuleBuilder &linearJointly(std::vector<unsigned> operands);
  RuleBuilder &additive(unsigned operand);
  RuleBuilder &movesDataOnly();

  /// Dims that nobody described get needs-replication factors of their own.
  ShardingRule build();
  const std::vector<std::string> &errors() const { return problems; }

private:
  bool checkDim(const Shape &shape, int64_t &dim);
  bool checkTensors(size_t operands, size_t results);
  DimFactors factorOfDim(const DimSize &size, FactorKind kind = FactorKind::Parallel);
  void alignTrailing(bool isResult, unsigned index, const TensorFactors &factors);
  void setDim(bool isResult, unsigned index, int64_t dim, DimFactors factors);
  void blocksOfDim(bool join, int64_t dim, const DimSize &whole, const DimSize &piece,
                   int64_t start = 0);

  std::vector<Shape> operandShapes, resultShapes;
  ShardingRule rule;
  std::vector<std::vector<bool>> operandSet, resultSet; ///< which dims are described
  std::map<char, unsigned> letters;                     ///< of the last einsum
  std::vector<std::string> problems;
};

} // namespace shardc

#endif // SHARDC_DIALECTS_SHARDING_RULEBUILDER_H
