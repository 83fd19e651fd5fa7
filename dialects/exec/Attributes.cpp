// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text form of the kinds: a keyword, which must be one of the kind's own.

#include "dialects/exec/Internal.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::exec;

/// Parses the keyword of one of `values`; says which there are where it is none.
template <typename Enum>
static FailureOr<Enum> parseOneOf(AsmParser &parser, StringRef what, ArrayRef<Enum> values,
                                  llvm::function_ref<StringRef(Enum)> nameOf) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (failed(parser.parseOptionalKeyword(&word)))
    word = "";
  for (Enum value : values)
    if (nameOf(value) == word)
      return value;
  InFlightDiagnostic error = parser.emitError(loc);
  if (word.empty())
    error << "expected " << what << ": one of ";
  else
    error << "'" << word << "' is no " << what << ": expected one of ";
  llvm::interleaveComma(values, error, [&](Enum value) { error << nameOf(value); });
  return failure();
}

static FailureOr<CollectiveKind> parseCollectiveKeyword(AsmParser &parser) {
  using enum CollectiveKind;
  return parseOneOf<CollectiveKind>(
      parser, "kind of collective",
      {AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, Permute},
      [](CollectiveKind kind) -> StringRef { return nameOf(kind); });
}

static FailureOr<ArgumentKind> parseArgumentKeyword(AsmParser &parser) {
  using enum ArgumentKind;
  return parseOneOf<ArgumentKind>(parser, "kind of argument", {Input, Parameter, Output},
                                  stringifyArgumentKind);
}

Attribute CollectiveKindAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<CollectiveKind> kind = parseCollectiveKeyword(parser);
  if (failed(kind) || parser.parseGreater())
    return {};
  return get(parser.getContext(), *kind);
}

void CollectiveKindAttr::print(AsmPrinter &printer) const {
  printer << "<" << nameOf(getValue()) << ">";
}

Attribute ArgumentKindAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<ArgumentKind> kind = parseArgumentKeyword(parser);
  if (failed(kind) || parser.parseGreater())
    return {};
  return get(parser.getContext(), *kind);
}

void ArgumentKindAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyArgumentKind(getValue()) << ">";
}

bool exec::reduces(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
}

ParseResult exec::parseCollectiveKind(OpAsmParser &parser, CollectiveKindAttr &kind,
                                      dist::ReductionAttr &reduction) {
  FailureOr<CollectiveKind> value = parseCollectiveKeyword(parser);
  if (failed(value))
    return failure();
  kind = CollectiveKindAttr::get(parser.getContext(), *value);
  if (!reduces(*value))
    return success();
  using enum Reduction;
  FailureOr<Reduction> combine =
      parseOneOf<Reduction>(parser, "reduction", {Sum, Avg, Min, Max, Prod},
                            [](Reduction value) -> StringRef { return reductionName(value); });
  if (failed(combine))
    return failure();
  reduction = dist::ReductionAttr::get(parser.getContext(), *combine);
  return success();
}

void exec::printCollectiveKind(OpAsmPrinter &printer, Operation *, CollectiveKindAttr kind,
                               dist::ReductionAttr reduction) {
  printer << nameOf(kind.getValue());
  if (reduction)
    printer << ' ' << reductionName(reduction.getValue());
}

ParseResult exec::parseKind(OpAsmParser &parser, ArgumentKindAttr &kind) {
  FailureOr<ArgumentKind> value = parseArgumentKeyword(parser);
  if (failed(value))
    return failure();
  kind = ArgumentKindAttr::get(parser.getContext(), *value);
  return success();
}

void exec::printKind(OpAsmPrinter &printer, Operation *, ArgumentKindAttr kind) {
  printer << stringifyArgumentKind(kind.getValue());
}
