// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/ElementType.h"

namespace shardc {
namespace {

constexpr bool inOrder() {
  for (size_t i = 0; i != elementTypes.size(); ++i)
    if (static_cast<size_t>(elementTypes[i].type) != i)
      return false;
  return true;
}
static_assert(inOrder(), "a row is found by its index");

/// The type whose entry in `column` is `wanted`; an empty name or 0 stands for none.
template <typename T, typename Wanted>
std::optional<ElementType> find(T ElementTypeFacts::*column, Wanted wanted) {
  if (wanted == Wanted())
    return std::nullopt;
  for (const ElementTypeFacts &row : elementTypes)
    if (row.*column == wanted)
      return row.type;
  return std::nullopt;
}

} // namespace

std::optional<ElementType> elementTypeFromExport(int64_t code) {
  return find(&ElementTypeFacts::exportCode, code);
}
std::optional<ElementType> elementTypeFromRuntime(int32_t code) {
  return find(&ElementTypeFacts::runtimeCode, code);
}
std::optional<ElementType> elementTypeFromName(std::string_view name) {
  return find(&ElementTypeFacts::name, name);
}
std::optional<ElementType> elementTypeFromIr(std::string_view name) {
  return find(&ElementTypeFacts::irName, name);
}
std::optional<ElementType> elementTypeFromSafetensors(std::string_view name) {
  return find(&ElementTypeFacts::safetensors, name);
}
std::optional<ElementType> elementTypeFromStorage(std::string_view name) {
  return find(&ElementTypeFacts::storage, name);
}

} // namespace shardc
