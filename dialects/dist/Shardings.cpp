// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text form and verification of shardings, and of `dist.sharding` where it stands.

#include "dialects/dist/Shardings.h"
#include "dialects/dist/EmitErrors.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

MeshAttr ShardingAttr::getMesh() const { return MeshAttr::get(getContext(), getValue().mesh); }

/// The words after a placement; each at most once.
static ParseResult parseWords(AsmParser &parser, AxisSharding &sharding) {
  llvm::SmallDenseSet<StringRef> seen;
  StringRef word;
  for (SMLoc loc = parser.getCurrentLocation(); succeeded(parser.parseOptionalKeyword(&word));
       loc = parser.getCurrentLocation()) {
    if (word == "given") {
      sharding.given = true;
    } else if (word == "pinned" || word == "weak") {
      if (sharding.strength != Strength::Normal)
        return parser.emitError(loc, "a sharding has one strength, 'pinned' or 'weak'");
      sharding.strength = word == "pinned" ? Strength::Pinned : Strength::Weak;
    } else if (word == "storage") {
      sharding.storage = true;
    } else if (word == "fixed") {
      sharding.fixed = true;
    } else if (word == "level") {
      if (parser.parseInteger(sharding.level))
        return failure();
    } else {
      return parser.emitError(loc, "expected given, pinned, weak, storage, fixed or level, got '")
             << word << "'";
    }
    if (!seen.insert(word).second)
      return parser.emitError(loc, "'") << word << "' is written twice";
  }
  return success();
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  MeshAttr mesh;
  Sharding sharding;
  auto parseAxis = [&]() -> ParseResult {
    AxisSharding axis;
    if (parsePlacement(parser, axis.placement))
      return failure();
    axis.given = axis.placement.isReplicate() || axis.placement.isPartial();
    if (axis.placement.isShard())
      axis.level = static_cast<unsigned>(sharding.axes.size());
    if (parseWords(parser, axis))
      return failure();
    sharding.axes.push_back(std::move(axis));
    return success();
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis) ||
      parser.parseGreater())
    return {};
  sharding.mesh = mesh.getValue();
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    std::move(sharding));
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMesh() << ", [";
  llvm::interleaveComma(llvm::enumerate(getValue().axes), printer, [&](auto axis) {
    std::string words = wordsOf(axis.value(), static_cast<unsigned>(axis.index()));
    printer << axis.value().placement.str() << (words.empty() ? "" : " ") << words;
  });
  printer << "]>";
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   Sharding sharding) {
  return emitErrors(emitError, sharding.validate());
}

LogicalResult ShardingAttr::verifyShape(ArrayRef<int64_t> shape,
                                        function_ref<InFlightDiagnostic()> emitError) const {
  return emitErrors(emitError, getValue().validateShape(shape));
}

LogicalResult shardc::dist::verifySharding(Attribute value, Type type,
                                           function_ref<InFlightDiagnostic()> emitError) {
  auto sharding = dyn_cast<ShardingAttr>(value);
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!sharding || !tensor)
    return emitError() << "'dist.sharding' is a #dist.sharding for a tensor, got " << value
                       << " for " << type;
  if (tensor.getEncoding())
    return emitError() << "'dist.sharding' is what a tensor is to become, but its type has a "
                          "layout already: "
                       << tensor;
  return sharding.verifyShape(tensor.getShape(),
                              [&] { return emitError() << "'dist.sharding': "; });
}

LogicalResult shardc::dist::verifyShardings(Operation *op, Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  if (!list || list.size() != op->getNumResults() || list.empty())
    return op->emitOpError("'dist.sharding' must be a list with one #dist.sharding for each "
                           "result, got ")
           << value;
  for (auto [number, entry] : llvm::enumerate(list)) {
    auto emitError = [op, number = number] { return op->emitOpError("result ") << number << ": "; };
    if (failed(verifySharding(entry, op->getResult(number).getType(), emitError)))
      return failure();
  }
  return success();
}
