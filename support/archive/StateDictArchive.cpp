// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/StateDictArchive.h"

#include "support/archive/PickledTensors.h"

#include <algorithm>
#include <cstring>

namespace shardc {
namespace {

using Kind = Pickle::Kind;

constexpr std::string_view dictRecord = "data.pkl";
/// What is told of a file that has many of the wrong kind.
constexpr size_t maxTold = 5;

/// The folder that has a data.pkl; empty if there is none, or if TorchScript's constants are beside
/// it.
std::string findStateDictRoot(const ZipArchive &zip) {
  for (const ZipRecord &record : zip.records()) {
    size_t slash = record.name.find('/');
    if (slash == std::string_view::npos || record.name.substr(slash + 1) != dictRecord)
      continue;
    std::string root(record.name.substr(0, slash + 1));
    if (!zip.find(root + "constants.pkl"))
      return root;
  }
  return {};
}

/// What gradients exist for.
bool isFloat(ElementType type) {
  constexpr ElementType whole[] = {ElementType::U8,  ElementType::I8,  ElementType::I16,
                                   ElementType::I32, ElementType::I64, ElementType::U16,
                                   ElementType::U32, ElementType::U64, ElementType::Bool};
  return std::ranges::find(whole, type) == std::end(whole);
}

/// A global as Python writes it: "torch.nn.modules.linear.Linear".
std::string nameOf(std::string_view global) {
  std::string name(global);
  std::replace(name.begin(), name.end(), '\n', '.');
  return name;
}

/// What a value is that is no tensor.
std::string describe(const Pickle &pickle, Pickle::Id id) {
  const Pickle::Value &value = pickle[id];
  auto global = [&](const char *what) {
    Pickle::Id of = value.items[0];
    return pickle[of].kind == Kind::Global ? what + nameOf(pickle[of].text)
                                           : std::string(what) + "another value";
  };
  switch (value.kind) {
  case Kind::None:
    return "None";
  case Kind::Bool:
  case Kind::Int:
  case Kind::Float:
    return "a number";
  case Kind::String:
    return "a string";
  case Kind::Tuple:
    return "a tuple";
  case Kind::List:
    return "a list";
  case Kind::Dict:
    return "a dict";
  case Kind::Global:
    return nameOf(value.text);
  case Kind::Object:
    return global("an object of ");
  case Kind::Call:
    return global("a result of ");
  case Kind::Persistent:
    return "a storage";
  }
  return "another value";
}

/// torch._utils._rebuild_parameter(tensor, requires_grad, hooks): the tensor.
Pickle::Id tensorOf(const Pickle &pickle, Pickle::Id id) {
  if (!isCallOf(pickle, id, "torch._utils\n_rebuild_parameter"))
    return id;
  const std::vector<Pickle::Id> &arguments = pickle[pickle[id].items[1]].items;
  return arguments.empty() ? id : arguments[0];
}

} // namespace

bool StateDictArchive::accepts(std::span<const std::byte> bytes) {
  std::string error;
  std::optional<ZipArchive> zip = ZipArchive::read(bytes, error, /*allowCompressed=*/true);
  return zip && !findStateDictRoot(*zip).empty();
}

bool StateDictArchive::isOldFile(std::span<const std::byte> bytes) {
  // The opcodes PROTO 2 and LONG1, with the 10 bytes of a magic number.
  constexpr std::string_view magic("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.", 15);
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

std::optional<TensorStore> StateDictArchive::read(std::span<const std::byte> bytes,
                                                  std::string &error) {
  std::optional<ZipArchive> zip = ZipArchive::read(bytes, error);
  if (!zip)
    return std::nullopt;
  const std::string root = findStateDictRoot(*zip);
  if (root.empty()) {
    error = "it lacks data.pkl, so it is no archive of torch.save";
    return std::nullopt;
  }
  if (!isLittleEndian(*zip, root, error))
    return std::nullopt;
  std::optional<Pickle> pickle = readPickle(*zip, root, std::string(dictRecord), error);
  if (!pickle)
    return std::nullopt;
  constexpr const char *hint = ": give a file of torch.save(module.state_dict(), FILE)";
  const Pickle::Value &dict = (*pickle)[pickle->root()];
  if (dict.kind != Kind::Dict) {
    error = "it holds " + describe(*pickle, pickle->root()) +
            ", and what a pickle would run is never run" + hint;
    return std::nullopt;
  }
  TensorStore store;
  std::string others;
  size_t count = 0;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const Pickle::Value &key = (*pickle)[dict.items[i]];
    Pickle::Id value = tensorOf(*pickle, dict.items[i + 1]);
    StoredTensor tensor;
    std::string_view record;
    if (key.kind == Kind::String && isPickledTensor(*pickle, value) &&
        readPickledTensor(*pickle, value, tensor, record)) {
      tensor.name = key.text;
      tensor.parameter = isFloat(tensor.type);
      if (!addPickledTensor(*zip, root, "data/" + std::string(record), std::move(tensor), store,
                            error))
        return std::nullopt;
      continue;
    }
    if (++count > maxTold)
      continue;
    others +=
        (others.empty() ? "'" : ", '") +
        (key.kind == Kind::String ? std::string(key.text) : describe(*pickle, dict.items[i])) +
        "' is " +
        (isPickledTensor(*pickle, value) ? "a tensor of a type that is not supported"
                                         : describe(*pickle, value));
  }
  if (count > 0) {
    error = "it is not the state dict of a module alone: " + others +
            (count > maxTold ? ", and " + std::to_string(count - maxTold) + " more" : "") + hint;
    return std::nullopt;
  }
  return store;
}

} // namespace shardc
