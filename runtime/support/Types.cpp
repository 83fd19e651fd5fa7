// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/Types.h"

#include <iterator>

namespace shardc::rt {

namespace {
struct TypeInfo {
  const char *name;
  int64_t bytes;
};
// Indexed by shardrt_type.
constexpr TypeInfo types[] = {{"?", 0},    {"f32", 4}, {"f64", 8}, {"f16", 2},
                              {"bf16", 2}, {"i64", 8}, {"i32", 4}, {"i16", 2},
                              {"i8", 1},   {"u8", 1},  {"bool", 1}};
constexpr shardrt_type lastType = SHARDRT_BOOL;
static_assert(sizeof(types) / sizeof(types[0]) == lastType + 1);

const TypeInfo &info(shardrt_type type) { return types[type > 0 && type <= lastType ? type : 0]; }
} // namespace

int64_t typeBytes(shardrt_type type) { return info(type).bytes; }
const char *typeName(shardrt_type type) { return info(type).name; }

shardrt_type typeFromName(std::string_view name) {
  for (shardrt_type type = 1; type <= lastType; ++type)
    if (name == types[type].name)
      return type;
  return 0;
}

const char *statusName(shardrt_status status) {
  constexpr const char *names[] = {
      "ok",      "invalid argument", "not found",     "bad file",      "incompatible",  "mismatch",
      "timeout", "aborted",          "out of memory", "program error", "internal error"};
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

} // namespace shardc::rt
