// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text form and verification of meshes, layouts and reductions.

#include "dialects/dist/Dist.h"
#include "dialects/dist/EmitErrors.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"

#include <numeric>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// Parses `[1, 2, 3]`.
static ParseResult parseIntegers(AsmParser &parser, std::vector<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(values.emplace_back()); });
}

//===------------------------------------------------------------------------------------------===//
// Mesh
//===------------------------------------------------------------------------------------------===//

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  Mesh mesh;
  SMLoc loc = parser.getCurrentLocation();
  auto parseAxis = [&]() -> ParseResult {
    MeshAxis &axis = mesh.axes.emplace_back();
    return failure(parser.parseString(&axis.name) || parser.parseEqual() ||
                   parser.parseInteger(axis.size));
  };
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("devices") || parser.parseEqual() ||
       parseIntegers(parser, mesh.deviceIds)))
    return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), std::move(mesh));
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getValue().axes, printer, [&](const MeshAxis &axis) {
    printer.printString(axis.name);
    printer << " = " << axis.size;
  });
  printer << "]";
  if (!getValue().deviceIds.empty()) {
    printer << ", devices = [";
    llvm::interleaveComma(getValue().deviceIds, printer);
    printer << "]";
  }
  printer << ">";
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError, Mesh mesh) {
  if (failed(emitErrors(emitError, mesh.validate())))
    return failure();
  if (mesh.numDevices() > maxDevices)
    return emitError() << "the mesh has " << mesh.numDevices() << " devices, at most " << maxDevices
                       << " are supported";
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Layout
//===------------------------------------------------------------------------------------------===//

/// `[64, 32]`, or one number where a list is not needed.
static ParseResult parseNumbers(AsmParser &parser, SplitOptions::Numbers &numbers, bool needsList) {
  std::vector<int64_t> &values = numbers.values;
  if (!needsList) {
    int64_t value = 0;
    if (OptionalParseResult one = parser.parseOptionalInteger(value); one.has_value()) {
      values = {value};
      return *one;
    }
  }
  numbers.isList = true;
  return parseIntegers(parser, values);
}

ParseResult shardc::dist::parseSplitOptions(AsmParser &parser, AxisSplit &split) {
  SplitOptions options;
  SMLoc begin = parser.getCurrentLocation();
  do {
    StringRef key;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    SplitOptions::Numbers *numbers = llvm::StringSwitch<SplitOptions::Numbers *>(key)
                                         .Case("blocks", &options.blocks)
                                         .Case("granule", &options.granule)
                                         .Case("sizes", &options.sizes)
                                         .Default(nullptr);
    if (!numbers)
      return parser.emitError(loc, "expected blocks, granule or sizes, got '") << key << "'";
    if (parseNumbers(parser, *numbers, /*needsList=*/key == "sizes"))
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  if (std::string why = options.apply(split); !why.empty())
    return parser.emitError(begin, why);
  return success();
}

ParseResult shardc::dist::parsePlacement(AsmParser &parser, Placement &placement) {
  if (succeeded(parser.parseOptionalQuestion())) {
    placement = Placement::open();
    return success();
  }
  SMLoc loc = parser.getCurrentLocation();
  StringRef kind;
  if (failed(parser.parseOptionalKeyword(&kind)) || (kind != "R" && kind != "S" && kind != "P"))
    return parser.emitError(loc, "expected a placement: R, S(dim), P(reduction) or ?");
  if (kind == "R") {
    placement = Placement::replicate();
    return success();
  }
  if (parser.parseLParen())
    return failure();
  if (kind == "P") {
    placement = Placement::partial();
    if (parseReductionKeyword(parser, placement.reduction))
      return failure();
  } else {
    int64_t dim;
    AxisSplit split;
    if (parser.parseInteger(dim) ||
        (succeeded(parser.parseOptionalComma()) && parseSplitOptions(parser, split)))
      return failure();
    placement = Placement::shard(dim, split);
  }
  return parser.parseRParen();
}

/// What can be said without a shape; an empty order stands for mesh order.
static LogicalResult verifyParts(function_ref<InFlightDiagnostic()> emitError, const Mesh &mesh,
                                 ArrayRef<Placement> placements, ArrayRef<unsigned> order) {
  if (placements.size() != mesh.numAxes())
    return emitError() << "the mesh has " << mesh.numAxes() << " axes, but " << placements.size()
                       << " placements are given";
  SmallVector<unsigned> sorted(order), identity(mesh.numAxes());
  llvm::sort(sorted);
  std::iota(identity.begin(), identity.end(), 0u);
  if (!order.empty() && sorted != identity)
    return emitError() << "the order must name every mesh axis once";
  return success();
}

static ParseResult parseOrder(AsmParser &parser, const Mesh &mesh, std::vector<unsigned> &order) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    std::string name;
    if (parser.parseString(&name))
      return failure();
    std::optional<unsigned> axis = mesh.axisIndex(name);
    if (!axis)
      return parser.emitError(loc, "the mesh has no axis \"") << name << "\"";
    order.push_back(*axis);
    return success();
  });
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  MeshAttr mesh;
  std::vector<Placement> placements;
  std::vector<unsigned> order;
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parsePlacement(parser, placements.emplace_back());
      }))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("order") || parser.parseEqual() ||
       parseOrder(parser, mesh.getValue(), order)))
    return {};
  if (parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  if (failed(verifyParts(emitError, mesh.getValue(), placements, order)))
    return {};
  Layout layout(mesh.getValue(), std::move(placements), std::move(order));
  return getChecked(emitError, parser.getContext(), std::move(layout));
}

void LayoutAttr::print(AsmPrinter &printer) const {
  const Layout &layout = getValue();
  printer << "<" << getMesh() << ", [";
  llvm::interleaveComma(layout.placements, printer,
                        [&](const Placement &placement) { printer << placement.str(); });
  printer << "]";
  if (!layout.isDefaultOrder()) {
    printer << ", order = [";
    llvm::interleaveComma(layout.order, printer,
                          [&](unsigned axis) { printer.printString(layout.mesh.axes[axis].name); });
    printer << "]";
  }
  printer << ">";
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, Layout layout) {
  if (failed(emitErrors(emitError, layout.mesh.validate())))
    return failure();
  return verifyParts(emitError, layout.mesh, layout.placements, layout.order);
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  return emitErrors(emitError, getValue().validate(shape));
}

LogicalResult LayoutAttr::verifyAnnotation(ArrayRef<int64_t> shape,
                                           function_ref<InFlightDiagnostic()> emitError) const {
  return emitErrors(emitError, getValue().validate(shape, /*allowOpen=*/true));
}

//===------------------------------------------------------------------------------------------===//
// Variants
//===------------------------------------------------------------------------------------------===//

LogicalResult VariantsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<FlatSymbolRefAttr> functions,
                                   ArrayRef<int64_t> positions) {
  for (int64_t variant : positions)
    if (variant < 0 || variant >= static_cast<int64_t>(functions.size()))
      return emitError() << "a position runs variant " << variant << ", but there are "
                         << functions.size();
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Reduction
//===------------------------------------------------------------------------------------------===//

ParseResult shardc::dist::parseReductionKeyword(AsmParser &parser, Reduction &reduction) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<Reduction> parsed = parseReduction(name);
  if (!parsed)
    return parser.emitError(loc, "expected sum, avg, min, max or prod, got '") << name << "'";
  reduction = *parsed;
  return success();
}

Attribute ReductionAttr::parse(AsmParser &parser, Type) {
  Reduction reduction;
  if (parser.parseLess() || parseReductionKeyword(parser, reduction) || parser.parseGreater())
    return {};
  return get(parser.getContext(), reduction);
}

void ReductionAttr::print(AsmPrinter &printer) const {
  printer << "<" << reductionName(getValue()) << ">";
}

Attribute StepKindAttr::parse(AsmParser &parser, Type) {
  StepKindAttr attr;
  if (parser.parseLess() || parseStepName(parser, attr) || parser.parseGreater())
    return {};
  return attr;
}

void StepKindAttr::print(AsmPrinter &printer) const {
  printer << "<" << stepKindName(getValue()) << ">";
}

ParseResult shardc::dist::parseStepName(AsmParser &parser, StepKindAttr &step) {
  StringRef name;
  SMLoc where = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<StepKind> kind = parseStepKind({name.data(), name.size()});
  if (!kind)
    return parser.emitError(where) << "'" << name << "' is no step of a redistribution";
  step = StepKindAttr::get(parser.getContext(), *kind);
  return success();
}
