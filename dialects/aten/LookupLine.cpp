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

} // namespace shardc::aten
