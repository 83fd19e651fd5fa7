// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/TorchScriptArchive.h"

#include "support/archive/PickledTensors.h"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace shardc {
namespace {

using Kind = Pickle::Kind;

/// Records that are not read in place may be no larger than this together, and unpack to no more:
/// code is text.
constexpr uint64_t maxUnpacked = uint64_t(256) << 20;
/// Values met while looking for tensors; shared objects count each time.
constexpr size_t maxVisits = size_t(1) << 20;
constexpr size_t maxDepth = 200, maxPath = 4096;

/// torch.jit._pickle.restore_type_tag(value, type): the value.
Pickle::Id skipTypeTag(const Pickle &pickle, Pickle::Id id) {
  while (isCallOf(pickle, id, "torch.jit._pickle\nrestore_type_tag") &&
         !pickle[pickle[id].items[1]].items.empty()) {
    Pickle::Id inner = pickle[pickle[id].items[1]].items[0];
    if (inner >= id) // values are made before their tags
      break;
    id = inner;
  }
  return id;
}

/// Finds the tensors below a value and adds them to a store.
class Collector {
public:
  Collector(const Pickle &pickle, const ZipArchive &zip, std::string folder, std::string root,
            TensorStore &store, std::string &error)
      : pickle(pickle), zip(zip), folder(std::move(folder)), root(std::move(root)), store(store),
        error(error) {}

  bool visit(Pickle::Id id, const std::string &path) {
    if (++visits > maxVisits)
      return fail("it has more than " + std::to_string(maxVisits) + " attributes");
    if (path.size() > maxPath)
      return fail("a path of attributes is longer than " + std::to_string(maxPath) + " characters");
    id = skipTypeTag(pickle, id);
    const Pickle::Value &value = pickle[id];
    if (isPickledTensor(pickle, id))
      return addTensor(id, path);
    bool isContainer = value.kind == Kind::Object || value.kind == Kind::Dict ||
                       value.kind == Kind::List || value.kind == Kind::Tuple;
    if (!isContainer)
      return true;
    // An object may refer to one that it is a part of.
    if (active.size() >= maxDepth || !active.insert(id).second)
      return active.size() < maxDepth || fail("its objects are nested too deeply");
    bool done = true;
    if (value.kind == Kind::Object && value.items.size() == 2) {
      Pickle::Id state = skipTypeTag(pickle, value.items[1]);
      done = pickle[state].kind == Kind::Dict ? members(state, path)
                                              : fail("the object '" + path +
                                                     "' has a state that "
                                                     "its own code restores, which is not run");
    } else if (value.kind == Kind::Dict) {
      done = members(id, path);
    } else if (value.kind != Kind::Object) {
      for (size_t i = 0; done && i < value.items.size(); ++i)
        done = visit(value.items[i], join(path, std::to_string(i)));
    }
    active.erase(id);
    return done;
  }

private:
  bool fail(const std::string &what) {
    error = what;
    return false;
  }

  static std::string join(const std::string &path, std::string_view name) {
    return path.empty() ? std::string(name) : path + "." + std::string(name);
  }

  bool members(Pickle::Id dict, const std::string &path) {
    const std::vector<Pickle::Id> &items = pickle[dict].items;
    for (size_t i = 0; i + 1 < items.size(); i += 2)
      if (pickle[items[i]].kind == Kind::String &&
          !visit(items[i + 1], join(path, pickle[items[i]].text)))
        return false;
    return true;
  }

  bool addTensor(Pickle::Id id, const std::string &path) {
    StoredTensor tensor;
    tensor.name = path;
    tensor.parameter = folder == "data/"; // constants of the code are no parameters
    std::string_view key;
    if (!readPickledTensor(pickle, id, tensor, key))
      return fail("the tensor '" + path + "' is of a kind that is not supported");
    return addPickledTensor(zip, root, folder + std::string(key), std::move(tensor), store, error);
  }

  const Pickle &pickle;
  const ZipArchive &zip;
  std::string folder, root;
  TensorStore &store;
  std::string &error;
  std::unordered_set<Pickle::Id> active;
  size_t visits = 0;
};

/// The folder that has a constants.pkl and a data.pkl; empty if there is none.
std::string findTorchScriptRoot(const ZipArchive &zip) {
  for (const ZipRecord &record : zip.records()) {
    size_t slash = record.name.find('/');
    if (slash == std::string_view::npos || record.name.substr(slash + 1) != "constants.pkl")
      continue;
    std::string root(record.name.substr(0, slash + 1));
    if (zip.find(root + "data.pkl"))
      return root;
  }
  return {};
}

} // namespace

bool TorchScriptArchive::accepts(std::span<const std::byte> bytes) {
  std::string error;
  std::optional<ZipArchive> zip = ZipArchive::read(bytes, error, /*allowCompressed=*/true);
  return zip && !findTorchScriptRoot(*zip).empty();
}

std::optional<TorchScriptArchive> TorchScriptArchive::read(std::span<const std::byte> bytes,
                                                           std::string &error) {
  std::optional<ZipArchive> zip = ZipArchive::read(bytes, error, /*allowCompressed=*/true);
  if (!zip)
    return std::nullopt;
  TorchScriptArchive archive;
  archive.root = findTorchScriptRoot(*zip);
  if (archive.root.empty()) {
    error = "it lacks data.pkl or constants.pkl, so it is no archive of torch.jit.save";
    return std::nullopt;
  }
  uint64_t unpacked = 0;
  for (const ZipRecord &record : zip->records())
    if (record.compressed && __builtin_add_overflow(unpacked, record.size, &unpacked))
      unpacked = UINT64_MAX;
  if (unpacked > maxUnpacked) {
    error = "its compressed records would unpack to " + std::to_string(unpacked) +
            " bytes, which is more than a model's code has";
    return std::nullopt;
  }
  if (!isLittleEndian(*zip, archive.root, error))
    return std::nullopt;
  archive.zip = std::move(*zip);
  return archive;
}

std::optional<TensorStore> TorchScriptArchive::takeTensors(std::string &error) const {
  TensorStore store;
  std::optional<Pickle> data = readPickle(zip, root, "data.pkl", error);
  if (!data || !Collector(*data, zip, "data/", root, store, error).visit(data->root(), ""))
    return std::nullopt;
  std::optional<Pickle> constants = readPickle(zip, root, "constants.pkl", error);
  if (!constants)
    return std::nullopt;
  const Pickle::Value &list = (*constants)[constants->root()];
  Collector collector(*constants, zip, "constants/", root, store, error);
  for (size_t i = 0; list.kind == Kind::Tuple && i < list.items.size(); ++i)
    if (isPickledTensor(*constants, list.items[i]) &&
        !collector.visit(list.items[i], "CONSTANTS.c" + std::to_string(i)))
      return std::nullopt;
  return store;
}

std::vector<TorchScriptArchive::Input> TorchScriptArchive::tracedInputs() const {
  std::string ignored;
  if (!zip.find(root + "traced_inputs.pkl"))
    return {};
  std::optional<Pickle> pickle = readPickle(zip, root, "traced_inputs.pkl", ignored);
  if (!pickle)
    return {};
  const Pickle::Value &methods = (*pickle)[skipTypeTag(*pickle, pickle->root())];
  for (size_t i = 0; methods.kind == Kind::Dict && i + 1 < methods.items.size(); i += 2) {
    const Pickle::Value &method = (*pickle)[methods.items[i]];
    if (method.kind != Kind::String || method.text != "forward")
      continue;
    const Pickle::Value &list = (*pickle)[skipTypeTag(*pickle, methods.items[i + 1])];
    std::vector<Input> inputs;
    for (Pickle::Id item : list.items) {
      StoredTensor tensor;
      std::string_view key;
      if (!isPickledTensor(*pickle, item) || !readPickledTensor(*pickle, item, tensor, key) ||
          std::any_of(tensor.sizes.begin(), tensor.sizes.end(), [](int64_t n) { return n < 0; }))
        return {};
      inputs.push_back({tensor.type, std::move(tensor.sizes)});
    }
    return inputs;
  }
  return {};
}

} // namespace shardc
