// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/ElementType.h"

#include <array>

namespace shardc {
namespace {

struct Row {
  ElementType type;
  uint8_t bytes;
  uint8_t exportCode;
  std::string_view name;
  std::string_view safetensors;
};

// In the order of the enumeration, so that a row is found by index.
constexpr std::array<Row, 21> rows = {{
    {ElementType::U8, 1, 1, "u8", "U8"},
    {ElementType::I8, 1, 2, "i8", "I8"},
    {ElementType::I16, 2, 3, "i16", "I16"},
    {ElementType::I32, 4, 4, "i32", "I32"},
    {ElementType::I64, 8, 5, "i64", "I64"},
    {ElementType::F16, 2, 6, "f16", "F16"},
    {ElementType::F32, 4, 7, "f32", "F32"},
    {ElementType::F64, 8, 8, "f64", "F64"},
    {ElementType::C32, 4, 9, "complex<f16>", ""},
    {ElementType::C64, 8, 10, "complex<f32>", "C64"},
    {ElementType::C128, 16, 11, "complex<f64>", ""},
    {ElementType::Bool, 1, 12, "bool", "BOOL"},
    {ElementType::BF16, 2, 13, "bf16", "BF16"},
    {ElementType::U16, 2, 28, "u16", "U16"},
    {ElementType::F8E4M3FN, 1, 29, "f8E4M3FN", "F8_E4M3"},
    {ElementType::F8E5M2, 1, 30, "f8E5M2", "F8_E5M2"},
    {ElementType::F8E4M3FNUZ, 1, 31, "f8E4M3FNUZ", "F8_E4M3FNUZ"},
    {ElementType::F8E5M2FNUZ, 1, 32, "f8E5M2FNUZ", "F8_E5M2FNUZ"},
    {ElementType::F8E8M0FNU, 1, 33, "f8E8M0FNU", "F8_E8M0"},
    {ElementType::U32, 4, 34, "u32", "U32"},
    {ElementType::U64, 8, 35, "u64", "U64"},
}};

constexpr bool inOrder() {
  for (size_t i = 0; i < rows.size(); ++i)
    if (static_cast<size_t>(rows[i].type) != i)
      return false;
  return true;
}
static_assert(inOrder());

const Row &row(ElementType type) { return rows[static_cast<size_t>(type)]; }

} // namespace

size_t byteWidth(ElementType type) { return row(type).bytes; }
std::string_view elementTypeName(ElementType type) { return row(type).name; }
std::string_view safetensorsName(ElementType type) { return row(type).safetensors; }

std::optional<ElementType> elementTypeFromExport(int64_t code) {
  for (const Row &r : rows)
    if (r.exportCode == code)
      return r.type;
  return std::nullopt;
}

std::optional<ElementType> elementTypeFromSafetensors(std::string_view name) {
  for (const Row &r : rows)
    if (!name.empty() && r.safetensors == name)
      return r.type;
  return std::nullopt;
}

} // namespace shardc
