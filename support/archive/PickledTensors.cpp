// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/PickledTensors.h"

#include <algorithm>

namespace shardc {
namespace {

using Kind = Pickle::Kind;

/// The type of the elements of a storage, by its class: "torch\nFloatStorage".
std::optional<ElementType> elementTypeOfStorage(std::string_view name) {
  constexpr std::string_view module = "torch\n";
  return name.starts_with(module) ? elementTypeFromStorage(name.substr(module.size()))
                                  : std::nullopt;
}

bool readIntegers(const Pickle &pickle, Pickle::Id id, std::vector<int64_t> &out) {
  if (pickle[id].kind != Kind::Tuple)
    return false;
  for (Pickle::Id item : pickle[id].items) {
    if (pickle[item].kind != Kind::Int)
      return false;
    out.push_back(pickle[item].integer);
  }
  return true;
}

} // namespace

bool isCallOf(const Pickle &pickle, Pickle::Id id, std::string_view global) {
  const Pickle::Value &value = pickle[id];
  return value.kind == Kind::Call && pickle[value.items[0]].kind == Kind::Global &&
         pickle[value.items[0]].text == global && pickle[value.items[1]].kind == Kind::Tuple;
}

bool isPickledTensor(const Pickle &pickle, Pickle::Id id) {
  return isCallOf(pickle, id, "torch._utils\n_rebuild_tensor_v2");
}

bool readPickledTensor(const Pickle &pickle, Pickle::Id id, StoredTensor &tensor,
                       std::string_view &key) {
  const std::vector<Pickle::Id> &arguments = pickle[pickle[id].items[1]].items;
  if (arguments.size() < 4 || pickle[arguments[0]].kind != Kind::Persistent ||
      pickle[arguments[1]].kind != Kind::Int)
    return false;
  // Behind the hooks it says what else is to be done to the elements: conjugate or negate them.
  if (arguments.size() > 6 && pickle[arguments[6]].kind != Kind::None)
    return false;
  const Pickle::Value &storage = pickle[pickle[arguments[0]].items[0]];
  if (storage.kind != Kind::Tuple || storage.items.size() != 5 ||
      pickle[storage.items[1]].kind != Kind::Global ||
      pickle[storage.items[2]].kind != Kind::String)
    return false;
  std::optional<ElementType> type = elementTypeOfStorage(pickle[storage.items[1]].text);
  if (!type)
    return false;
  tensor.type = *type;
  tensor.offset = pickle[arguments[1]].integer;
  key = pickle[storage.items[2]].text;
  return readIntegers(pickle, arguments[2], tensor.sizes) &&
         readIntegers(pickle, arguments[3], tensor.strides);
}

std::optional<Pickle> readPickle(const ZipArchive &zip, const std::string &root,
                                 const std::string &name, std::string &error) {
  const ZipRecord *record = zip.find(root + name);
  if (!record || record->compressed) {
    error = "the record '" + name + "' is missing";
    return std::nullopt;
  }
  if (crc32(record->bytes) != record->crc) {
    error = "the record '" + name + "' is corrupt: its checksum does not match";
    return std::nullopt;
  }
  std::optional<Pickle> pickle = Pickle::read(record->bytes, error);
  if (!pickle)
    error = name + ": " + error;
  return pickle;
}

bool addPickledTensor(const ZipArchive &zip, const std::string &root, std::string record,
                      StoredTensor tensor, TensorStore &store, std::string &error) {
  tensor.record = std::move(record);
  const ZipRecord *found = zip.find(root + tensor.record);
  bool isThere = found && !found->compressed;
  if (isThere)
    tensor.storage = found->bytes;
  // Whether the sizes can be multiplied is only known when it has been added.
  bool hasElements = std::ranges::find(tensor.sizes, 0) == tensor.sizes.end();
  if (!isThere || (tensor.storage.empty() && hasElements)) {
    error = "the record '" + tensor.record + "' of tensor '" + tensor.name + "' is " +
            (isThere ? "empty" : "missing");
    return false;
  }
  return store.add(std::move(tensor), error);
}

bool isLittleEndian(const ZipArchive &zip, const std::string &root, std::string &error) {
  const ZipRecord *order = zip.find(root + "byteorder");
  if (!order)
    return true;
  std::string_view value(reinterpret_cast<const char *>(order->bytes.data()), order->bytes.size());
  if (!order->compressed && value == "little")
    return true;
  error = "the archive was written on a machine that is not little-endian";
  return false;
}

} // namespace shardc
