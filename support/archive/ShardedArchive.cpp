// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/ShardedArchive.h"

#include "support/Json.h"
#include "support/JsonText.h"
#include "support/archive/ReadSizes.h"
#include "support/archive/Safetensors.h"

#include <algorithm>

namespace shardc {
namespace {

constexpr std::string_view formatName = "shardc sharded checkpoint";
constexpr int64_t formatVersion = 1;

std::string numbers(std::span<const int64_t> values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? "," : "") + std::to_string(values[i]);
  return text + "]";
}

/// A name in the folder itself, and not of the folder or of its index.
bool isPlainName(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.find('/') == name.npos &&
         name.find('\0') == name.npos && name != ShardedIndex::fileName;
}

bool readBlock(JsonValue value, size_t rank, ShardedBlock &block) {
  std::optional<std::string_view> file = value["file"].string(), key = value["key"].string();
  if (!file || !isPlainName(*file) || !key)
    return false;
  block.file = *file;
  block.key = *key;
  return readSizes(value["begin"], block.begin) && readSizes(value["shape"], block.sizes) &&
         block.begin.size() == rank && block.sizes.size() == rank;
}

/// Whether the blocks are the whole tensor, each element once. Those of a sharding are a grid: on
/// each dim some intervals, of which every combination is a block.
bool areWhole(const StoredTensor &tensor) {
  if (tensor.elements() == 0)
    return tensor.blocks.empty();
  struct Interval {
    int64_t size;
    size_t number;
  };
  std::vector<size_t> cellOf(tensor.blocks.size(), 0);
  size_t cells = 1;
  for (size_t d = 0; d < tensor.sizes.size(); ++d) {
    std::map<int64_t, Interval> intervals; // by begin
    for (const StoredBlock &block : tensor.blocks)
      if (block.sizes[d] == 0 ||
          intervals.try_emplace(block.begin[d], block.sizes[d], 0).first->second.size !=
              block.sizes[d])
        return false;
    int64_t at = 0;
    size_t count = 0;
    for (auto &[begin, interval] : intervals) {
      if (begin != at || __builtin_add_overflow(at, interval.size, &at))
        return false;
      interval.number = count++;
    }
    if (at != tensor.sizes[d] || __builtin_mul_overflow(cells, count, &cells))
      return false;
    for (size_t i = 0; i < cellOf.size(); ++i)
      cellOf[i] = cellOf[i] * count + intervals.find(tensor.blocks[i].begin[d])->second.number;
  }
  if (cellOf.size() != cells)
    return false;
  std::vector<bool> isThere(cells, false);
  for (size_t cell : cellOf) {
    if (isThere[cell])
      return false;
    isThere[cell] = true;
  }
  return true;
}

/// The files that an index names.
class Parts {
public:
  /// False, and all files that are missing, if any is; or what is wrong with one that is there.
  bool open(const std::string &folder, const ShardedIndex &index, TensorStore &keeper,
            std::string &error) {
    std::string missing;
    size_t lost = 0;
    for (const ShardedTensor &tensor : index.tensors)
      for (const ShardedBlock &block : tensor.blocks)
        files.try_emplace(block.file);
    for (auto &[name, store] : files) {
      std::shared_ptr<const MappedFile> file = MappedFile::open(folder + "/" + name, error);
      if (!file) {
        // Of those that are there the reason is told, of those that are not the names.
        ++lost;
        missing += (missing.empty() ? "" : ", ") + error.substr(folder.size() + 1);
        continue;
      }
      std::optional<TensorStore> read = readSafetensors(file->bytes(), error);
      if (!read) {
        error = name + ": " + error;
        return false;
      }
      if (std::string_view save = read->metadata(ShardedIndex::saveKey); save != index.save) {
        error = name + ": it is of " +
                (save.empty() ? "no save" : "the save " + std::string(save)) +
                ", and the index is of the save " + index.save;
        return false;
      }
      store = std::move(*read);
      keeper.keep(std::move(file));
    }
    if (lost > 0)
      error = std::to_string(lost) + " of its " + std::to_string(files.size()) +
              " files cannot be opened: " + missing;
    return lost == 0;
  }

  bool add(const ShardedTensor &from, TensorStore &store, std::string &error) const {
    StoredTensor tensor;
    tensor.name = tensor.record = from.name;
    tensor.parameter = true;
    tensor.type = from.type;
    tensor.sizes = from.sizes;
    auto fail = [&](const std::string &what) {
      error = "tensor '" + from.name + "' " + what;
      return false;
    };
    int64_t stride = 1;
    tensor.strides.resize(tensor.sizes.size());
    for (size_t d = tensor.sizes.size(); d-- > 0;) {
      tensor.strides[d] = stride;
      if (__builtin_mul_overflow(stride, std::max<int64_t>(tensor.sizes[d], 1), &stride))
        return fail("is larger than 64 bits can count");
    }
    for (const ShardedBlock &block : from.blocks) {
      const StoredTensor *part = files.at(block.file).find(block.key);
      if (!part || part->type != from.type || part->sizes != block.sizes)
        return fail("has a block " + block.key + ", which " + block.file +
                    (part ? " has with another type or shape" : " does not have"));
      tensor.blocks.push_back({block.begin, block.sizes, part->storage});
    }
    if (!areWhole(tensor))
      return fail("is not the sum of its blocks: some overlap, or some are missing");
    if (tensor.blocks.size() == 1) {
      tensor.storage = tensor.blocks[0].storage;
      tensor.blocks.clear();
    }
    return store.add(std::move(tensor), error);
  }

private:
  std::map<std::string, TensorStore> files;
};

} // namespace

std::string ShardedBlock::keyOf(std::string_view name, std::span<const int64_t> begin,
                                std::span<const int64_t> sizes) {
  std::string key = std::string(name) + "[";
  for (size_t d = 0; d < begin.size(); ++d)
    key += (d ? ", " : "") + std::to_string(begin[d]) + ":" + std::to_string(begin[d] + sizes[d]);
  return key + "]";
}

std::string ShardedIndex::json() const {
  std::string text = "{\"format\": " + jsonString(formatName) +
                     ", \"version\": " + std::to_string(formatVersion) +
                     ",\n \"save\": " + jsonString(save) + ",\n \"metadata\": {";
  const char *separator = "";
  for (auto &[key, value] : metadata) {
    text += separator + jsonString(key) + ": " + jsonString(value);
    separator = ", ";
  }
  text += "},\n \"tensors\": {";
  separator = "\n  ";
  for (const ShardedTensor &tensor : tensors) {
    text += separator + jsonString(tensor.name) +
            ": {\"dtype\": " + jsonString(safetensorsName(tensor.type)) +
            ", \"shape\": " + numbers(tensor.sizes) + ", \"blocks\": [";
    separator = ",\n  ";
    const char *comma = "";
    for (const ShardedBlock &block : tensor.blocks) {
      text += comma + ("{\"file\": " + jsonString(block.file)) +
              ", \"key\": " + jsonString(block.key) + ", \"begin\": " + numbers(block.begin) +
              ", \"shape\": " + numbers(block.sizes) + "}";
      comma = ", ";
    }
    text += "]}";
  }
  return text + "\n }}\n";
}

std::optional<ShardedIndex> ShardedIndex::parse(std::string_view text, std::string &error) {
  std::optional<JsonDocument> document = JsonDocument::parse(text, error);
  if (!document)
    return std::nullopt;
  JsonValue root = document->root();
  if (root["format"].string() != formatName || root["version"].integer() != formatVersion) {
    error = "its format is not '" + std::string(formatName) + "', version " +
            std::to_string(formatVersion);
    return std::nullopt;
  }
  ShardedIndex index;
  index.save = root["save"].string().value_or("");
  if (index.save.empty() || !root["tensors"].isObject()) {
    error = "it lacks save or tensors";
    return std::nullopt;
  }
  for (JsonMember note : root["metadata"].members())
    if (std::optional<std::string_view> value = note.value.string())
      index.metadata.emplace_back(note.key, *value);
  for (JsonMember member : root["tensors"].members()) {
    ShardedTensor &tensor = index.tensors.emplace_back();
    tensor.name = member.key;
    std::optional<ElementType> type =
        elementTypeFromSafetensors(member.value["dtype"].string().value_or(""));
    bool valid =
        type && readSizes(member.value["shape"], tensor.sizes) && member.value["blocks"].isArray();
    tensor.type = type.value_or(ElementType::F32);
    for (JsonValue block : member.value["blocks"].elements())
      valid = valid && readBlock(block, tensor.sizes.size(), tensor.blocks.emplace_back());
    if (!valid) {
      error = "tensor '" + tensor.name + "' has no valid dtype, shape or blocks";
      return std::nullopt;
    }
  }
  return index;
}

std::optional<TensorStore> readShardedArchive(const std::string &folder, std::string &error) {
  auto fail = [&](const std::string &what) -> std::optional<TensorStore> {
    error = folder + ": " + what;
    return std::nullopt;
  };
  std::shared_ptr<const MappedFile> file =
      MappedFile::open(folder + "/" + ShardedIndex::fileName, error);
  if (!file)
    return fail(std::string("it is no folder with a checkpoint: it lacks ") +
                ShardedIndex::fileName);
  std::string_view text(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  std::optional<ShardedIndex> index = ShardedIndex::parse(text, error);
  if (!index)
    return fail(std::string(ShardedIndex::fileName) + ": " + error);
  TensorStore store;
  Parts parts;
  if (!parts.open(folder, *index, store, error))
    return fail(error);
  for (auto &[key, value] : index->metadata)
    store.setMetadata(key, value);
  for (const ShardedTensor &tensor : index->tensors)
    if (!parts.add(tensor, store, error))
      return fail(error);
  return store;
}

} // namespace shardc
