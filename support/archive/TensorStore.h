// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Named tensors that lie in a mapped file: the weights of a .pt2 archive or of a safetensors file.
#ifndef SHARDC_SUPPORT_ARCHIVE_TENSORSTORE_H
#define SHARDC_SUPPORT_ARCHIVE_TENSORSTORE_H

#include "support/ElementType.h"
#include "support/MappedFile.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardc {

/// A box of a tensor: dense and row-major.
struct StoredBlock {
  std::vector<int64_t> begin, sizes;
  std::span<const std::byte> storage;
};

/// A strided view of a storage. Element (i0, i1, ...) is at byte
/// `byteWidth(type) * (offset + sum of i_k * strides[k])` of `storage`; that this lies inside has
/// been checked for every index. `storage` need not be aligned to the element type. A complex
/// tensor of a file is one of its parts here, real and imaginary, along a last dim of 2.
struct StoredTensor {
  std::string name;   // fully qualified name in the model
  std::string record; // the storage's name in the file: equal for tensors that share a storage
  ElementType type = ElementType::F32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides; // in elements, never negative
  int64_t offset = 0;           // in elements
  std::span<const std::byte> storage;
  /// Of a tensor that lies in several files (only `openWithBlocks` gives such ones): boxes that
  /// together are all of it, and then `storage` is empty.
  std::vector<StoredBlock> blocks = {};
  /// Of a tensor without data that has several names: common to them.
  std::shared_ptr<const std::vector<std::string>> tie;
  bool parameter = false; // rather than a buffer or constant; true for all of a safetensors file

  int64_t elements() const;
  /// Whether elements lie in row-major order without gaps.
  bool contiguous() const;
  /// False for a tensor of a model exported without weights: it has a shape and no bytes.
  bool hasData() const { return !storage.empty() || !blocks.empty() || elements() == 0; }
  /// The same for all that share a storage, or names of one tensor without data; null of others
  /// without data.
  const void *identity() const {
    return storage.empty() ? tie.get() : static_cast<const void *>(storage.data());
  }
  /// Whether the two names are one tensor: the same view of the same bytes.
  bool tiedTo(const StoredTensor &other) const;
};

/// The tensors of one file, in file order, found by name.
class TensorStore {
public:
  /// Opens a .pt2 archive, a TorchScript archive, a state dict of torch.save or a safetensors file,
  /// told apart by content. On failure returns nothing and sets `error`, which begins with the
  /// path.
  static std::optional<TensorStore> open(const std::string &path, std::string &error);

  /// The same, or the folder of a checkpoint in several files.
  static std::optional<TensorStore> openWithBlocks(const std::string &path, std::string &error);

  const std::vector<StoredTensor> &tensors() const { return list; }
  /// The tensor called `name`, or null.
  const StoredTensor *find(std::string_view name) const;

  /// What the file says of itself ("__metadata__" of a safetensors file); empty if it does not.
  std::string_view metadata(const std::string &key) const {
    auto found = notes.find(key);
    return found == notes.end() ? std::string_view() : found->second;
  }
  void setMetadata(std::string key, std::string value) { notes[std::move(key)] = std::move(value); }

  /// Adds a tensor after checking its shape, strides and offset against its storage. On failure
  /// `error` names the tensor.
  bool add(StoredTensor tensor, std::string &error);
  /// Says that these are names of one tensor, which none of them has data of.
  void tie(std::vector<std::string> names);
  /// Keeps `file`, in which the storages lie, mapped while the store lives.
  void keep(std::shared_ptr<const MappedFile> file) { mappings.push_back(std::move(file)); }

private:
  std::vector<StoredTensor> list;
  std::unordered_map<std::string, size_t> index;
  std::map<std::string, std::string> notes;
  std::vector<std::shared_ptr<const MappedFile>> mappings;
};

} // namespace shardc

#endif // SHARDC_SUPPORT_ARCHIVE_TENSORSTORE_H
