// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads pickles as data. Nothing is executed: a call of a global is kept as what it says, its name
// and its arguments, and it is for the reader of the result to know what that means.
//
// Format: the opcodes of protocol 2 that torch.jit.save (torch/csrc/jit/serialization/pickler.h)
// and torch.save use; any other one is an error.
#ifndef SHARDC_SUPPORT_ARCHIVE_PICKLE_H
#define SHARDC_SUPPORT_ARCHIVE_PICKLE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

class Pickle {
public:
  /// Position of a value. Values may be shared, and may contain themselves.
  using Id = uint32_t;

  enum class Kind : uint8_t {
    None,
    Bool,
    Int,
    Float,
    String,
    Tuple,      // items
    List,       // items
    Dict,       // items: key, value, key, value, ...; an OrderedDict too
    Global,     // text: "module name"
    Object,     // items: class, and state once it has one
    Call,       // items: what is called, arguments
    Persistent, // items: the id
  };

  struct Value {
    Kind kind = Kind::None;
    int64_t integer = 0; // Bool, Int
    double real = 0;     // Float
    std::string_view text = {};
    std::vector<Id> items = {};
  };

  /// `bytes` must outlive the result. On failure returns nothing and sets `error`.
  static std::optional<Pickle> read(std::span<const std::byte> bytes, std::string &error);

  Id root() const { return top; }
  const Value &operator[](Id id) const { return values[id]; }

private:
  class Reader;

  std::vector<Value> values;
  Id top = 0;
};

} // namespace shardc

#endif // SHARDC_SUPPORT_ARCHIVE_PICKLE_H
