// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types of tensors: one table of their sizes and of the names and codes that files, IR and
// compiled programs use for them.
#ifndef SHARDC_SUPPORT_ELEMENTTYPE_H
#define SHARDC_SUPPORT_ELEMENTTYPE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardc {

enum class ElementType : uint8_t {
  U8,
  I8,
  I16,
  I32,
  I64,
  F16,
  F32,
  F64,
  C32,
  C64,
  C128,
  Bool,
  BF16,
  U16,
  F8E4M3FN,
  F8E5M2,
  F8E4M3FNUZ,
  F8E5M2FNUZ,
  F8E8M0FNU,
  U32,
  U64,
};

struct ElementTypeFacts {
  ElementType type;
  uint8_t bytes;                ///< of one element
  uint8_t exportCode;           ///< `ScalarType` of torch.export's schema 8 (not c10::ScalarType)
  uint8_t runtimeCode;          ///< `shardrt_type`; 0 where the runtime does not have the type
  std::string_view name;        ///< in messages and manifests
  std::string_view irName;      ///< in IR
  std::string_view safetensors; ///< "dtype" of a safetensors header; empty where it has none
  std::string_view storage;     ///< class of storages in TorchScript archives; empty where none
};

/// In the order of the enumeration.
inline constexpr std::array<ElementTypeFacts, 21> elementTypes = {{
    {ElementType::U8, 1, 1, 9, "u8", "ui8", "U8", "ByteStorage"},
    {ElementType::I8, 1, 2, 8, "i8", "i8", "I8", "CharStorage"},
    {ElementType::I16, 2, 3, 7, "i16", "i16", "I16", "ShortStorage"},
    {ElementType::I32, 4, 4, 6, "i32", "i32", "I32", "IntStorage"},
    {ElementType::I64, 8, 5, 5, "i64", "i64", "I64", "LongStorage"},
    {ElementType::F16, 2, 6, 3, "f16", "f16", "F16", "HalfStorage"},
    {ElementType::F32, 4, 7, 1, "f32", "f32", "F32", "FloatStorage"},
    {ElementType::F64, 8, 8, 2, "f64", "f64", "F64", "DoubleStorage"},
    {ElementType::C32, 4, 9, 0, "complex<f16>", "complex<f16>", "", ""},
    {ElementType::C64, 8, 10, 0, "complex<f32>", "complex<f32>", "C64", "ComplexFloatStorage"},
    {ElementType::C128, 16, 11, 0, "complex<f64>", "complex<f64>", "", "ComplexDoubleStorage"},
    {ElementType::Bool, 1, 12, 10, "bool", "i1", "BOOL", "BoolStorage"},
    {ElementType::BF16, 2, 13, 4, "bf16", "bf16", "BF16", "BFloat16Storage"},
    {ElementType::U16, 2, 28, 0, "u16", "ui16", "U16", ""},
    {ElementType::F8E4M3FN, 1, 29, 0, "f8E4M3FN", "f8E4M3FN", "F8_E4M3", ""},
    {ElementType::F8E5M2, 1, 30, 0, "f8E5M2", "f8E5M2", "F8_E5M2", ""},
    {ElementType::F8E4M3FNUZ, 1, 31, 0, "f8E4M3FNUZ", "f8E4M3FNUZ", "F8_E4M3FNUZ", ""},
    {ElementType::F8E5M2FNUZ, 1, 32, 0, "f8E5M2FNUZ", "f8E5M2FNUZ", "F8_E5M2FNUZ", ""},
    {ElementType::F8E8M0FNU, 1, 33, 0, "f8E8M0FNU", "f8E8M0FNU", "F8_E8M0", ""},
    {ElementType::U32, 4, 34, 0, "u32", "ui32", "U32", ""},
    {ElementType::U64, 8, 35, 0, "u64", "ui64", "U64", ""},
}};

constexpr const ElementTypeFacts &factsOf(ElementType type) {
  return elementTypes[static_cast<size_t>(type)];
}

/// Bytes of one element.
constexpr size_t byteWidth(ElementType type) { return factsOf(type).bytes; }
/// The type of the two numbers that a complex one consists of; any other type is its own.
constexpr ElementType componentOf(ElementType type) {
  return type == ElementType::C64    ? ElementType::F32
         : type == ElementType::C128 ? ElementType::F64
         : type == ElementType::C32  ? ElementType::F16
                                     : type;
}
constexpr bool isComplex(ElementType type) { return componentOf(type) != type; }
/// The short name used in messages and manifests: "f32", "bf16", "bool".
constexpr std::string_view elementTypeName(ElementType type) { return factsOf(type).name; }
/// The number of the runtime's `shardrt_type`; 0 where it does not have the type.
constexpr int32_t runtimeCodeOf(ElementType type) { return factsOf(type).runtimeCode; }
/// The "dtype" a safetensors header gives to `type`; empty if the format has none.
constexpr std::string_view safetensorsName(ElementType type) { return factsOf(type).safetensors; }

/// Each of these gives nothing for a code or a name that is not in its column.
std::optional<ElementType> elementTypeFromExport(int64_t code);
std::optional<ElementType> elementTypeFromRuntime(int32_t code);
std::optional<ElementType> elementTypeFromName(std::string_view name);
std::optional<ElementType> elementTypeFromIr(std::string_view name);
std::optional<ElementType> elementTypeFromSafetensors(std::string_view name);
std::optional<ElementType> elementTypeFromStorage(std::string_view name);

} // namespace shardc

#endif // SHARDC_SUPPORT_ELEMENTTYPE_H
