// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/Pt2Archive.h"

#include "support/Json.h"

namespace shardc {
namespace {

/// Written by `shardc export`: storages without data do not say which names are one tensor.
const std::string tiesRecord = "extra/shardc_ties.json";
constexpr std::string_view modelsFolder = "models/", jsonSuffix = ".json";

// A constant of the serialized union SymInt.
std::optional<int64_t> constant(JsonValue value) { return value["as_int"].integer(); }

bool readConstants(JsonValue value, std::vector<int64_t> &out) {
  if (!value.isArray())
    return false;
  for (JsonValue element : value.elements()) {
    std::optional<int64_t> size = constant(element);
    if (!size)
      return false;
    out.push_back(*size);
  }
  return true;
}

// Fills everything of `tensor` but its storage from the tensor's metadata.
bool readMeta(JsonValue meta, StoredTensor &tensor, std::string &error) {
  auto fail = [&](const std::string &what) {
    error = "tensor '" + tensor.name + "' " + what;
    return false;
  };
  std::optional<int64_t> code = meta["dtype"].integer();
  if (!code)
    return fail("has no element type");
  std::optional<ElementType> type = elementTypeFromExport(*code);
  if (!type)
    return fail("has the unknown element type code " + std::to_string(*code));
  tensor.type = *type;
  std::optional<int64_t> offset = constant(meta["storage_offset"]);
  if (!offset || !readConstants(meta["sizes"], tensor.sizes) ||
      !readConstants(meta["strides"], tensor.strides))
    return fail("has no constant sizes, strides and storage offset");
  tensor.offset = *offset;
  return true;
}

} // namespace

std::optional<Pt2Archive> Pt2Archive::read(std::span<const std::byte> bytes, std::string &error) {
  std::optional<ZipArchive> zip = ZipArchive::read(bytes, error);
  if (!zip)
    return std::nullopt;
  Pt2Archive archive;
  std::string candidates;
  size_t models = 0;
  for (const ZipRecord &record : zip->records()) {
    size_t slash = record.name.find('/');
    if (slash == std::string_view::npos)
      continue;
    std::string_view rest = record.name.substr(slash + 1);
    if (!rest.starts_with(modelsFolder) || !rest.ends_with(jsonSuffix))
      continue;
    rest.remove_prefix(modelsFolder.size());
    rest.remove_suffix(jsonSuffix.size());
    candidates.append(candidates.empty() ? "" : ", ").append(rest);
    ++models;
    if (models > 1 && rest != "model")
      continue;
    archive.root = record.name.substr(0, slash + 1);
    archive.model = rest;
  }
  if (models == 0) {
    error =
        zip->find("serialized_exported_program.json")
            ? "it was saved by PyTorch before 2.8, whose archives hold pickled weights: export the "
              "model again"
            : "it has no models/*.json, so it is no archive of torch.export.save";
    return std::nullopt;
  }
  if (models > 1 && archive.model != "model") {
    error = "the archive holds several models (" + candidates + ") and none is called 'model'";
    return std::nullopt;
  }
  archive.zip = std::move(*zip);
  if (const ZipRecord *order = archive.zip.find(archive.root + "byteorder")) {
    std::string_view value(reinterpret_cast<const char *>(order->bytes.data()),
                           order->bytes.size());
    if (value != "little") {
      error = "the archive was written on a machine that is not little-endian";
      return std::nullopt;
    }
  }
  return archive;
}

std::optional<std::string_view> Pt2Archive::text(const std::string &path,
                                                 std::string &error) const {
  const ZipRecord *record = zip.find(root + path);
  if (!record) {
    error = "the record '" + path + "' is missing";
    return std::nullopt;
  }
  if (crc32(record->bytes) != record->crc) {
    error = "the record '" + path + "' is corrupt: its checksum does not match";
    return std::nullopt;
  }
  return std::string_view(reinterpret_cast<const char *>(record->bytes.data()),
                          record->bytes.size());
}

std::optional<std::string_view> Pt2Archive::programJson(std::string &error) const {
  return text(std::string(modelsFolder) + model + std::string(jsonSuffix), error);
}

std::optional<TensorStore> Pt2Archive::takeTensors(std::string &error) const {
  TensorStore store;
  if (!addTensors("data/weights/", model + "_weights_config.json", store, error) ||
      !addTensors("data/constants/", model + "_constants_config.json", store, error))
    return std::nullopt;
  if (!addTies(store, error))
    return std::nullopt;
  return store;
}

bool Pt2Archive::addTies(TensorStore &store, std::string &error) const {
  if (!zip.find(root + tiesRecord))
    return true;
  std::optional<std::string_view> source = text(tiesRecord, error);
  if (!source)
    return false;
  std::optional<JsonDocument> document = JsonDocument::parse(*source, error);
  auto fail = [&] {
    error = tiesRecord + (document ? ": no list of lists of names" : ": " + error);
    return false;
  };
  if (!document || !document->root().isArray())
    return fail();
  for (JsonValue group : document->root().elements()) {
    if (!group.isArray())
      return fail();
    std::vector<std::string> names;
    for (JsonValue element : group.elements()) {
      std::optional<std::string_view> name = element.string();
      if (!name)
        return fail();
      names.emplace_back(*name);
    }
    store.tie(std::move(names));
  }
  return true;
}

bool Pt2Archive::addTensors(const std::string &folder, const std::string &config,
                            TensorStore &store, std::string &error) const {
  std::optional<std::string_view> source = text(folder + config, error);
  if (!source)
    return false;
  std::optional<JsonDocument> document = JsonDocument::parse(*source, error);
  if (!document || !document->root()["config"].isObject()) {
    error = folder + config + ": " + (document ? "no member 'config'" : error);
    return false;
  }
  for (JsonMember member : document->root()["config"].members()) {
    StoredTensor tensor;
    tensor.name = member.key;
    std::optional<std::string_view> path = member.value["path_name"].string();
    if (!path) {
      error = folder + config + ": '" + tensor.name + "' has no path_name";
      return false;
    }
    if (member.value["use_pickle"].boolean().value_or(true)) {
      error = "'" + tensor.name +
              "' is stored as a pickle, which is never executed; export it as "
              "a plain tensor";
      return false;
    }
    if (!readMeta(member.value["tensor_meta"], tensor, error))
      return false;
    tensor.parameter = member.value["is_param"].boolean().value_or(false);
    tensor.record = folder + std::string(*path);
    const ZipRecord *record = zip.find(root + tensor.record);
    if (!record) {
      error = "the record '" + tensor.record + "' of tensor '" + tensor.name + "' is missing";
      return false;
    }
    tensor.storage = record->bytes;
    if (!store.add(std::move(tensor), error))
      return false;
  }
  return true;
}

} // namespace shardc
