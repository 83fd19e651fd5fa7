// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/lib/PrintShardingRules.h"

#include "dialects/interfaces/OpInterfaces.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace shardc {
namespace {

std::vector<std::vector<int64_t>> shapesOf(TypeRange types) {
  std::vector<std::vector<int64_t>> shapes;
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    shapes.push_back(tensor ? std::vector<int64_t>(tensor.getShape()) : std::vector<int64_t>());
  }
  return shapes;
}

template <typename T> llvm::json::Value toJson(const std::vector<T> &list) {
  llvm::json::Array array;
  for (const T &item : list)
    if constexpr (std::is_integral_v<T>)
      array.push_back(static_cast<int64_t>(item));
    else
      array.push_back(toJson(item));
  return array;
}

llvm::json::Object toJson(const ShardingRule &rule) {
  constexpr StringLiteral kinds[] = {"parallel", "reducing", "cooperative", "neighbouring",
                                     "replicated"};
  llvm::json::Array factors;
  for (const Factor &factor : rule.factors)
    factors.push_back(
        llvm::json::Object{{"size", factor.size},
                           {"kind", kinds[static_cast<unsigned>(factor.kind)]},
                           {"reduction", StringRef(reductionName(factor.reduction))}});
  return llvm::json::Object{{"factors", std::move(factors)},
                            {"operands", toJson(rule.operands)},
                            {"results", toJson(rule.results)},
                            {"linearIn", toJson(rule.linearIn)},
                            {"additive", toJson(rule.additive)}};
}

struct PrintShardingRules : PassWrapper<PrintShardingRules, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintShardingRules)
  PrintShardingRules() = default;
  PrintShardingRules(const PrintShardingRules &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-print-sharding-rules"; }
  StringRef getDescription() const final {
    return "Say how each op may be sharded; an error for a rule that does not fit its op";
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      print(function);
  }

  void print(func::FuncOp function) {
    llvm::json::Array rules;
    function.walk([&](ShardingRuleOpInterface op) {
      ShardingRule rule = op.getShardingRule();
      for (const std::string &error :
           rule.validate(shapesOf(op->getOperandTypes()), shapesOf(op->getResultTypes()))) {
        op->emitOpError("has a wrong sharding rule: ") << error;
        signalPassFailure();
      }
      if (!json)
        op->emitRemark(rule.str());
      rules.push_back(toJson(rule));
    });
    if (json)
      llvm::outs() << llvm::json::Value(llvm::json::Object{{"function", function.getName()},
                                                           {"rules", std::move(rules)}})
                   << "\n";
  }

  Option<bool> json{*this, "json", llvm::cl::desc("Print JSON instead of remarks")};
};

} // namespace

void registerPrintShardingRulesPass() { PassRegistration<PrintShardingRules>(); }

} // namespace shardc
