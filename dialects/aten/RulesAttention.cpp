// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention: how its letters go over the dims of query, key, value and what belongs to them.
#include "dialects/aten/Aten.h"
#include "dialects/aten/Rules.h"

using namespace mlir;

namespace shardc::aten {
namespace {

/// The dims in front of the last two, one word each. With grouped queries a query head is (key
/// head, position in its group), in this order.
struct Heads {
  SmallVector<std::string> query, key;

  /// None where the letters do not suffice.
  static std::optional<Heads> create(size_t rank, bool isGrouped) {
    std::optional<std::string> batch = leadingLetters(rank - 2);
    if (!batch)
      return std::nullopt;
    Heads heads;
    for (char letter : *batch)
      heads.query.push_back(std::string(1, letter));
    heads.key = heads.query;
    if (isGrouped) {
      heads.query.back() = "(kg)";
      heads.key.back() = "k";
    }
    return heads;
  }
};

/// All operands line up from the last dim; those with fewer dims are broadcast.
std::string dimsOf(Value value, ArrayRef<std::string> heads, StringRef last) {
  SmallVector<std::string> dims(heads);
  for (char letter : last)
    dims.push_back(std::string(1, letter));
  std::string text;
  for (const std::string &dim : ArrayRef(dims).take_back(rankOf(value)))
    text += dim;
  return text;
}

template <typename OpT> bool isOfOneRank(OpT op, size_t rank) {
  return rankOf(op.getQuery()) == rank && rankOf(op.getKey()) == rank &&
         rankOf(op.getValue()) == rank;
}

template <typename OpT> std::optional<RuleBuilder> forwardRule(OpT op) {
  size_t rank = rankOf(op->getResult(0));
  std::optional<Heads> heads = Heads::create(rank, op.getEnableGqa());
  if (!heads || (op.getEnableGqa() && !isOfOneRank(op, rank)))
    return std::nullopt;
  std::vector<std::string> operands = {dimsOf(op.getQuery(), heads->query, "le"),
                                       dimsOf(op.getKey(), heads->key, "se"),
                                       dimsOf(op.getValue(), heads->key, "sf")};
  if (Value mask = op.getAttnMask())
    operands.push_back(dimsOf(mask, heads->query, "ls"));
  if (op.getFirst())
    operands.emplace_back(); // an index
  std::vector<std::string> results = {dimsOf(op->getResult(0), heads->query, "lf")};
  if (op->getNumResults() == 2)
    results.push_back(dimsOf(op->getResult(1), heads->query, "l"));
  RuleBuilder builder = ruleBuilder(op);
  // The softmax is over whole rows of scores.
  builder.einsum(operands, results)
      .letter('e', FactorKind::NeedReplication)
      .letter('s', FactorKind::NeedReplication);
  return builder;
}

} // namespace

ShardingRule attentionRule(Operation *op) {
  std::optional<RuleBuilder> builder = forwardRule(cast<ScaledDotProductAttentionOp>(op));
  return builder ? builder->linear(2).build() : ruleBuilder(op).replicateAll().build();
}

/// Not linear in the value, and the value's columns are whole: the logsumexp does not depend on
/// them.
ShardingRule flashAttentionRule(Operation *op) {
  std::optional<RuleBuilder> builder = forwardRule(cast<ScaledDotProductFlashAttentionOp>(op));
  return builder ? builder->letter('f', FactorKind::NeedReplication).build()
                 : ruleBuilder(op).replicateAll().build();
}

/// Batch, heads of keys, and queries: over these the cotangents of key and value are sums, and
/// that of the query is sharded. Groups of queries stay whole.
ShardingRule flashAttentionBackwardRule(Operation *op) {
  auto backward = cast<ScaledDotProductFlashAttentionBackwardOp>(op);
  size_t rank = rankOf(backward.getQuery());
  std::optional<Heads> heads = Heads::create(rank, backward.getEnableGqa());
  RuleBuilder builder = ruleBuilder(op);
  if (!heads)
    return builder.replicateAll().build();
  auto ofQuery = [&](Value value, StringRef last) { return dimsOf(value, heads->query, last); };
  auto ofKey = [&](Value value, StringRef last) { return dimsOf(value, heads->key, last); };
  std::vector<std::string> operands = {
      ofQuery(backward.getGradOut(), "lf"), ofQuery(backward.getQuery(), "le"),
      ofKey(backward.getKey(), "se"),       ofKey(backward.getValue(), "sf"),
      ofQuery(backward.getOut(), "lf"),     ofQuery(backward.getLogsumexp(), "l")};
  if (Value mask = backward.getAttnMask())
    operands.push_back(ofQuery(mask, "ls"));
  if (backward.getFirst())
    operands.emplace_back(); // an index
  builder.einsum(operands,
                 {ofQuery(backward.getGradQuery(), "le"), ofKey(backward.getGradKey(), "se"),
                  ofKey(backward.getGradValue(), "sf")});
  for (char letter : {'e', 'f', 's', 'g'})
    builder.letter(letter, FactorKind::NeedReplication);
  builder.letter('l', FactorKind::Reducing);
  return builder.linear(0).build();
}

} // namespace shardc::aten
