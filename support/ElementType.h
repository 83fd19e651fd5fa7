// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element types of tensors in files, with the codes that each file format uses for them.
#ifndef SHARDC_SUPPORT_ELEMENTTYPE_H
#define SHARDC_SUPPORT_ELEMENTTYPE_H

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

/// Bytes of one element.
size_t byteWidth(ElementType type);

/// The short name used in messages: "f32", "bf16", "bool".
std::string_view elementTypeName(ElementType type);

/// Decodes the `ScalarType` of torch.export's schema 8 (not c10::ScalarType).
std::optional<ElementType> elementTypeFromExport(int64_t code);

/// Decodes the "dtype" of a safetensors header: "F32", "BF16", "I64", ...
std::optional<ElementType> elementTypeFromSafetensors(std::string_view name);

/// The "dtype" a safetensors header gives to `type`; empty if the format has none.
std::string_view safetensorsName(ElementType type);

} // namespace shardc

#endif // SHARDC_SUPPORT_ELEMENTTYPE_H
