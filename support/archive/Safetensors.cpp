// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/Safetensors.h"

#include "support/Json.h"
#include "support/archive/ReadSizes.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace shardc {
namespace {

// The limit that the format's own reader sets.
constexpr uint64_t maxHeader = 100'000'000;

struct Item {
  StoredTensor tensor;
  uint64_t begin = 0, end = 0;
};

// Row-major strides; false if the number of elements overflows.
bool setStrides(StoredTensor &tensor) {
  tensor.strides.resize(tensor.sizes.size());
  int64_t stride = 1;
  for (size_t d = tensor.sizes.size(); d-- > 0;) {
    tensor.strides[d] = stride;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(tensor.sizes[d], 1), &stride))
      return false;
  }
  return true;
}

bool readItem(JsonMember member, Item &item, std::string &error) {
  auto fail = [&](const std::string &what) {
    error = "tensor '" + std::string(member.key) + "' " + what;
    return false;
  };
  item.tensor.name = item.tensor.record = member.key;
  item.tensor.parameter = true;
  std::optional<std::string_view> dtype = member.value["dtype"].string();
  if (!dtype)
    return fail("has no dtype");
  std::optional<ElementType> type = elementTypeFromSafetensors(*dtype);
  if (!type)
    return fail("has the unknown dtype '" + std::string(*dtype) + "'");
  item.tensor.type = *type;
  if (!readSizes(member.value["shape"], item.tensor.sizes) || !setStrides(item.tensor))
    return fail("has no valid shape");
  std::vector<int64_t> offsets;
  if (!readSizes(member.value["data_offsets"], offsets) || offsets.size() != 2 ||
      offsets[0] > offsets[1])
    return fail("has no valid data_offsets");
  item.begin = uint64_t(offsets[0]);
  item.end = uint64_t(offsets[1]);
  // setStrides has shown that the product fits; times at most 16 bytes it is compared by division.
  uint64_t elements = uint64_t(item.tensor.elements());
  uint64_t width = byteWidth(*type), size = item.end - item.begin;
  if (size % width != 0 || size / width != elements)
    return fail("has " + std::to_string(size) + " bytes, which is not its shape's size");
  return true;
}

} // namespace

std::optional<TensorStore> readSafetensors(std::span<const std::byte> bytes, std::string &error) {
  uint64_t headerSize = 0;
  if (bytes.size() < sizeof headerSize) {
    error = "neither a zip archive nor a safetensors file: it is too short";
    return std::nullopt;
  }
  std::memcpy(&headerSize, bytes.data(), sizeof headerSize);
  if (headerSize > maxHeader || headerSize > bytes.size() - sizeof headerSize) {
    error = "neither a zip archive nor a safetensors file: a header of " +
            std::to_string(headerSize) + " bytes does not fit";
    return std::nullopt;
  }
  std::string_view text(reinterpret_cast<const char *>(bytes.data()) + sizeof headerSize,
                        headerSize);
  std::optional<JsonDocument> header = JsonDocument::parse(text, error);
  if (!header || !header->root().isObject()) {
    error = "safetensors header: " + (error.empty() ? "not a JSON object" : error);
    return std::nullopt;
  }
  std::span<const std::byte> data = bytes.subspan(sizeof headerSize + headerSize);
  TensorStore store;
  std::vector<Item> items;
  for (JsonMember member : header->root().members()) {
    if (member.key == "__metadata__") {
      for (JsonMember note : member.value.members())
        if (std::optional<std::string_view> text = note.value.string())
          store.setMetadata(std::string(note.key), std::string(*text));
      continue;
    }
    if (!readItem(member, items.emplace_back(), error))
      return std::nullopt;
  }
  std::sort(items.begin(), items.end(), [](const Item &a, const Item &b) {
    return std::tie(a.begin, a.end, a.tensor.name) < std::tie(b.begin, b.end, b.tensor.name);
  });
  uint64_t at = 0;
  for (Item &item : items) {
    if (item.begin != at || item.end > data.size()) {
      error = "tensor '" + item.tensor.name +
              (item.end > data.size() ? "' lies outside the file"
                                      : "' leaves a hole in the data or overlaps another");
      return std::nullopt;
    }
    at = item.end;
    item.tensor.storage = data.subspan(item.begin, item.end - item.begin);
    if (!store.add(std::move(item.tensor), error))
      return std::nullopt;
  }
  if (at != data.size()) {
    error = std::to_string(data.size() - at) + " bytes after the last tensor belong to none";
    return std::nullopt;
  }
  return store;
}

} // namespace shardc
