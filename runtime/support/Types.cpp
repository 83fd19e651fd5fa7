// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/Types.h"

#include "support/ElementType.h"

#include <array>
#include <cstring>
#include <iterator>

namespace shardc::rt {

namespace {
/// The row of each shardrt_type; index 0 is for unknown ones.
constexpr std::array<const ElementTypeFacts *, SHARDRT_BOOL + 1> types = [] {
  std::array<const ElementTypeFacts *, SHARDRT_BOOL + 1> rows{};
  for (const ElementTypeFacts &row : elementTypes)
    if (row.runtimeCode != 0)
      rows[row.runtimeCode] = &row;
  return rows;
}();
static_assert(runtimeCodeOf(ElementType::F32) == SHARDRT_F32 &&
              runtimeCodeOf(ElementType::F64) == SHARDRT_F64 &&
              runtimeCodeOf(ElementType::F16) == SHARDRT_F16 &&
              runtimeCodeOf(ElementType::BF16) == SHARDRT_BF16 &&
              runtimeCodeOf(ElementType::I64) == SHARDRT_I64 &&
              runtimeCodeOf(ElementType::I32) == SHARDRT_I32 &&
              runtimeCodeOf(ElementType::I16) == SHARDRT_I16 &&
              runtimeCodeOf(ElementType::I8) == SHARDRT_I8 &&
              runtimeCodeOf(ElementType::U8) == SHARDRT_U8 &&
              runtimeCodeOf(ElementType::Bool) == SHARDRT_BOOL);

const ElementTypeFacts *factsOf(shardrt_type type) {
  return type > 0 && type <= SHARDRT_BOOL ? types[type] : nullptr;
}
} // namespace

int64_t typeBytes(shardrt_type type) {
  const ElementTypeFacts *facts = factsOf(type);
  return facts ? facts->bytes : 0;
}
const char *typeName(shardrt_type type) {
  const ElementTypeFacts *facts = factsOf(type);
  return facts ? facts->name.data() : "?"; // a literal: it ends with a zero
}

shardrt_type typeFromName(std::string_view name) {
  std::optional<ElementType> type = elementTypeFromName(name);
  return type ? runtimeCodeOf(*type) : 0;
}

const char *statusName(shardrt_status status) {
  constexpr const char *names[] = {
      "ok",      "invalid argument", "not found",     "bad file",      "incompatible",   "mismatch",
      "timeout", "aborted",          "out of memory", "program error", "internal error", "torn"};
  return status >= 0 && size_t(status) < std::size(names) ? names[status] : "unknown status";
}

std::string describe(shardrt_type type, const int64_t *extents, size_t rank) {
  std::string text = std::string(typeName(type)) + "[";
  for (size_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + std::to_string(extents[i]);
  return text + "]";
}

int64_t countElements(const int64_t *extents, size_t rank) {
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i)
    count *= extents[i];
  return count;
}

int64_t checkedBytes(const int64_t *extents, size_t rank, int64_t elementBytes) {
  int64_t bytes = elementBytes;
  bool empty = false, overflow = false;
  for (size_t i = 0; i < rank; ++i) {
    if (extents[i] < 0)
      return -1;
    empty |= extents[i] == 0;
    overflow |= __builtin_mul_overflow(bytes, extents[i], &bytes);
  }
  return empty ? 0 : overflow ? -1 : bytes;
}

void encodeNumber(void *to, shardrt_type type, double value) {
  auto write = [&](auto element) { std::memcpy(to, &element, sizeof element); };
  switch (type) {
  case SHARDRT_F64:
    return write(value);
  case SHARDRT_F32:
    return write(float(value));
  case SHARDRT_F16:
    return write(toFloat16(float(value)));
  case SHARDRT_BF16:
    return write(toBFloat16(float(value)));
  case SHARDRT_I64:
    return write(int64_t(value));
  case SHARDRT_I32:
    return write(int32_t(value));
  case SHARDRT_I16:
    return write(int16_t(value));
  case SHARDRT_I8:
    return write(int8_t(value));
  case SHARDRT_BOOL:
    return write(uint8_t(value != 0));
  default:
    return write(uint8_t(value));
  }
}

} // namespace shardc::rt
