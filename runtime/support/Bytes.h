// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values as bytes that come from other processes: every length is checked against the bytes that
// are there. ByteSource takes them as this machine has them in memory; ByteWriter and ByteReader
// have a form of their own: numbers little endian, texts and lists behind their length.
#ifndef SHARDC_RUNTIME_SUPPORT_BYTES_H
#define SHARDC_RUNTIME_SUPPORT_BYTES_H

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace shardc::rt {

/// Takes bytes off the front of some, and nothing if there are too few.
class ByteSource {
public:
  explicit ByteSource(std::string_view bytes) : rest(bytes) {}

  bool take(void *out, size_t count) {
    if (count > rest.size())
      return false;
    if (count > 0)
      std::memcpy(out, rest.data(), count);
    rest.remove_prefix(count);
    return true;
  }
  template <typename T> bool take(T &out) {
    static_assert(std::is_trivially_copyable_v<T>);
    return take(&out, sizeof out);
  }
  template <typename T> bool take(std::vector<T> &out, size_t count) {
    if (count > rest.size() / sizeof(T))
      return false;
    out.resize(count);
    return take(out.data(), count * sizeof(T));
  }
  bool take(std::string &out, size_t count) {
    if (count > rest.size())
      return false;
    out = rest.substr(0, count);
    rest.remove_prefix(count);
    return true;
  }
  bool atEnd() const { return rest.empty(); }

private:
  std::string_view rest;
};

/// Of integers, texts, lists, and classes with a function template `fields` that calls its argument
/// with all of them.
class ByteWriter {
public:
  template <typename... Fields> void operator()(const Fields &...fields) { (put(fields), ...); }
  std::string bytes;

private:
  template <typename T> void put(const T &value) {
    if constexpr (std::is_integral_v<T>) {
      for (size_t i = 0; i < sizeof(T); ++i)
        bytes += char(uint64_t(value) >> (8 * i));
    } else if constexpr (std::is_same_v<T, std::string>) {
      put(uint32_t(value.size()));
      bytes += value;
    } else {
      const_cast<T &>(value).fields(*this); // reads them only
    }
  }
  template <typename T> void put(const std::vector<T> &values) {
    put(uint32_t(values.size()));
    for (const T &value : values)
      put(value);
  }
};

/// After a length that does not fit, everything is zero and `complete` is false.
class ByteReader {
public:
  explicit ByteReader(std::string_view bytes) : source(bytes) {}
  template <typename... Fields> void operator()(Fields &...fields) { (get(fields), ...); }
  /// Whether all fields were there, and nothing else.
  bool complete() const { return good && source.atEnd(); }

private:
  template <typename T> void get(T &value) {
    if constexpr (std::is_integral_v<T>) {
      unsigned char bytes[sizeof(T)] = {};
      good = good && source.take(bytes);
      uint64_t bits = 0;
      for (size_t i = 0; good && i < sizeof(T); ++i)
        bits |= uint64_t(bytes[i]) << (8 * i);
      value = T(bits);
    } else if constexpr (std::is_same_v<T, std::string>) {
      uint32_t length = 0;
      get(length);
      value.clear();
      good = good && source.take(value, length);
    } else {
      value.fields(*this);
    }
  }
  template <typename T> void get(std::vector<T> &values) {
    uint32_t count = 0;
    get(count);
    values.clear();
    // An element takes at least one byte, so that memory stays in proportion to the message.
    for (uint32_t i = 0; good && i < count; ++i)
      get(values.emplace_back());
  }

  ByteSource source;
  bool good = true;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SUPPORT_BYTES_H
