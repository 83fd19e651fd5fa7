// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Extents that may differ from rank to rank.

#include "dialects/dist/Dist.h"

#include "mlir/IR/DialectImplementation.h"

#include <numeric>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

std::optional<int64_t>
ExtentsAttr::evaluate(ArrayRef<int64_t> coordinate,
                      function_ref<std::optional<int64_t>(StringRef)> valueOf) const {
  if (!getSize())
    return getTable()[getMesh().getValue().positionOfCoordinate(coordinate)];
  std::optional<int64_t> size = getSize().evaluate(valueOf);
  if (!size || getSplit().empty())
    return size;
  return getSplit().extent(*size, coordinate);
}

std::optional<int64_t> ExtentsAttr::getConstant() const {
  if (!getSize())
    return llvm::all_equal(getTable()) ? std::optional(getTable().front()) : std::nullopt;
  std::optional<int64_t> size = getSize().getConstant();
  if (!size || getSplit().empty())
    return size;
  std::vector<int64_t> extents = getSplit().distinctExtents(*size, getSplit().axes.size());
  return extents.size() == 1 ? std::optional(extents.front()) : std::nullopt;
}

//===------------------------------------------------------------------------------------------===//
// Verification
//===------------------------------------------------------------------------------------------===//

static LogicalResult verifyTable(function_ref<InFlightDiagnostic()> emitError, MeshAttr mesh,
                                 ArrayRef<int64_t> table) {
  if (!mesh || static_cast<int64_t>(table.size()) != mesh.getValue().numDevices())
    return emitError() << "the table has " << table.size()
                       << " entries, expected one for each position of the mesh";
  if (llvm::any_of(table, [](int64_t extent) { return extent < 0; }))
    return emitError() << "an extent must not be negative";
  return success();
}

LogicalResult ExtentsAttr::verify(function_ref<InFlightDiagnostic()> emitError, MeshAttr mesh,
                                  SizeAttr size, DimSplit split, ArrayRef<int64_t> table) {
  if (!size) {
    if (!split.empty())
      return emitError() << "a table is not split over axes";
    return verifyTable(emitError, mesh, table);
  }
  if (!table.empty())
    return emitError() << "expected a size or a table, got both";
  if (split.empty() != !mesh)
    return emitError() << "expected both a mesh and axes to split over, or neither";
  if (!mesh)
    return success();
  // A split is one dim of a layout: what is legal there is legal here.
  Layout layout(mesh.getValue());
  std::vector<unsigned> order;
  for (const AxisSplit &axis : split.axes) {
    if (axis.axis >= layout.placements.size())
      return emitError() << "the mesh has no axis " << axis.axis;
    Placement &placement = layout.placements[axis.axis];
    if (placement.isShard())
      return emitError() << "axis \"" << mesh.getValue().axes[axis.axis].name
                         << "\" is listed twice";
    if (axis.count != mesh.getValue().axes[axis.axis].size)
      return emitError() << "the split of axis \"" << mesh.getValue().axes[axis.axis].name
                         << "\" is for another mesh";
    placement = Placement::shard(0, axis);
    order.push_back(axis.axis);
  }
  for (unsigned axis = 0; axis < layout.placements.size(); ++axis)
    if (!layout.placements[axis].isShard())
      order.push_back(axis);
  layout = Layout(layout.mesh, layout.placements, order);
  int64_t shape[] = {size.getConstant().value_or(ShapedType::kDynamic)};
  std::vector<std::string> errors = layout.validate(shape);
  for (const std::string &error : errors)
    emitError() << error;
  return success(errors.empty());
}

//===------------------------------------------------------------------------------------------===//
// Text form
//===------------------------------------------------------------------------------------------===//

static ParseResult parseAxisSplit(AsmParser &parser, const Mesh &mesh, DimSplit &split) {
  SMLoc loc = parser.getCurrentLocation();
  std::string name;
  if (parser.parseString(&name))
    return failure();
  std::optional<unsigned> index = mesh.axisIndex(name);
  if (!index)
    return parser.emitError(loc, "the mesh has no axis \"") << name << "\"";
  AxisSplit &axis = split.axes.emplace_back();
  axis.axis = *index;
  axis.count = mesh.axes[*index].size;
  if (succeeded(parser.parseOptionalLParen()))
    return failure(parseSplitOptions(parser, axis) || parser.parseRParen());
  return success();
}

Attribute ExtentsAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  MeshAttr mesh;
  SizeAttr size;
  DimSplit split;
  SmallVector<int64_t> table;
  if (parser.parseLess())
    return {};
  if (succeeded(parser.parseOptionalKeyword("table"))) {
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       [&] { return parser.parseInteger(table.emplace_back()); }) ||
        parser.parseKeyword("over") || parser.parseAttribute(mesh))
      return {};
  } else {
    size = SizeAttr::parseExpression(parser);
    if (!size)
      return {};
    if (succeeded(parser.parseOptionalKeyword("over")) &&
        (parser.parseAttribute(mesh) ||
         parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
           return parseAxisSplit(parser, mesh.getValue(), split);
         })))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), mesh, size,
                    std::move(split), ArrayRef<int64_t>(table));
}

static void printAxisSplit(AsmPrinter &printer, const Mesh &mesh, const AxisSplit &split) {
  printer.printString(mesh.axes[split.axis].name);
  if (std::string options = split.options(); !options.empty())
    printer << "(" << options << ")";
}

void ExtentsAttr::print(AsmPrinter &printer) const {
  printer << "<";
  if (!getSize()) {
    printer << "table [";
    llvm::interleaveComma(getTable(), printer);
    printer << "] over " << getMesh();
  } else {
    getSize().printExpression(printer);
    if (getMesh()) {
      printer << " over " << getMesh() << " [";
      llvm::interleaveComma(getSplit().axes, printer, [&](const AxisSplit &split) {
        printAxisSplit(printer, getMesh().getValue(), split);
      });
      printer << "]";
    }
  }
  printer << ">";
}
