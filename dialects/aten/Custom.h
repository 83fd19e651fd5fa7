// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_CUSTOM_H
#define SHARDC_DIALECTS_ATEN_CUSTOM_H

#include "dialects/aten/Aten.h"
#include "dialects/aten/Rules.h"
#include "dialects/sharding/RuleText.h"

#define GET_OP_CLASSES
#include "dialects/aten/Custom.h.inc"

namespace shardc::aten {

/// The rule of an op that the verifier has nothing to say of.
RuleText ruleOf(CustomOp op);

/// What positions of windows with these sizes cover, beside `operand` itself: its padding. Null
/// where the size of a dim is not known that the mode of the padding needs.
mlir::Value buildWindowPadding(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value operand,
                               const std::vector<TextDim> &dims);
/// Whether a dim of an operand is of this name alone, so that the size follows from it.
bool givesSize(const RuleText &rule, llvm::StringRef name);
/// The rule of an op whose operands have their padding.
RuleText withoutPadding(RuleText rule);

// What each function of `backward` has.
inline constexpr llvm::StringLiteral kCustomRuleAttr = "rule";
inline constexpr llvm::StringLiteral kCustomSymbolAttr = "symbol";

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_CUSTOM_H
