// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/LookupLine.h"

using namespace mlir;

namespace shardc::aten {

void LookupLine::setOn(Operation *op) const {
  Builder builder(op->getContext());
  SmallVector<NamedAttribute> numbers;
  auto add = [&](StringRef name, int64_t number) {
    if (number != 0)
      numbers.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(number)));
  };
  add("numerator", numerator);
  add("denominator", denominator);
  if (alignsCorners)
    numbers.push_back(builder.getNamedAttr("aligns_corners", builder.getUnitAttr()));
  add("half", half);
  add("shift", shift);
  add("before", before);
  add("after", after);
  op->setAttr(kLookupLineAttr, builder.getDictionaryAttr(numbers));
}

std::optional<LookupLine> LookupLine::of(Operation *op) {
  auto numbers = op->getAttrOfType<DictionaryAttr>(kLookupLineAttr);
  if (!numbers)
    return std::nullopt;
  auto number = [&](StringRef name) {
    auto attribute = numbers.getAs<IntegerAttr>(name);
    return attribute ? attribute.getInt() : int64_t(0);
  };
  return LookupLine{number("numerator"), number("denominator"), numbers.contains("aligns_corners"),
                    number("half"),      number("shift"),       number("before"),
                    number("after")};
}

LogicalResult LookupLine::verify(Operation *op, Attribute value) {
  auto refuse = [&](const Twine &why) {
    return op->emitOpError("'") << kLookupLineAttr << "' " << why << ", got " << value;
  };
  auto written = dyn_cast<IndexPutOp>(op);
  bool adds = written && written.getAccumulate() && written.getIndicesAt().size() == 1 &&
              cast<RankedTensorType>(written.getIndices().front().getType()).getRank() == 1;
  if (!isa<IndexSelectOp>(op) && !adds)
    return refuse("is for aten.index_select, and for an aten.index_put that adds at a vector of "
                  "positions along one dim");
  auto numbers = dyn_cast<DictionaryAttr>(value);
  if (!numbers)
    return refuse("must be a dictionary of i64 numbers");
  for (NamedAttribute entry : numbers) {
    StringRef name = entry.getName();
    if (name == "aligns_corners" && isa<UnitAttr>(entry.getValue()))
      continue;
    auto number = dyn_cast<IntegerAttr>(entry.getValue());
    if (!llvm::is_contained({"numerator", "denominator", "half", "shift", "before", "after"},
                            name) ||
        !number || !number.getType().isInteger(64))
      return refuse("has the i64 numbers numerator, denominator, half, shift, before and after, "
                    "and the unit aligns_corners; '" +
                    name + "' is none of them");
    int64_t least = name == "shift" ? -kMost : 0, most = name == "half" ? 1 : kMost;
    if (number.getInt() < least || number.getInt() > most)
      return refuse("must have a number from " + Twine(least) + " to " + Twine(most) + " as '" +
                    name + "'");
  }
  LookupLine line = *of(op);
  if ((line.numerator == 0) != (line.denominator == 0))
    return refuse("must have both numerator and denominator, or neither where they are the sizes");
  return success();
}

} // namespace shardc::aten
