// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/TensorStore.h"

#include "support/archive/Pt2Archive.h"
#include "support/archive/Safetensors.h"
#include "support/archive/ShardedArchive.h"
#include "support/archive/StateDictArchive.h"
#include "support/archive/TorchScriptArchive.h"
#include "support/archive/Zip.h"

#include <algorithm>
#include <sys/stat.h>

namespace shardc {
namespace {

// Elements, and the largest element index of the view plus one; false on overflow.
bool measure(const StoredTensor &tensor, int64_t &elements, int64_t &end) {
  elements = 1;
  bool empty = std::find(tensor.sizes.begin(), tensor.sizes.end(), 0) != tensor.sizes.end();
  int64_t last = tensor.offset;
  for (size_t d = 0; d < tensor.sizes.size(); ++d) {
    int64_t step;
    if (empty)
      continue;
    if (__builtin_mul_overflow(elements, tensor.sizes[d], &elements) ||
        __builtin_mul_overflow(tensor.sizes[d] - 1, tensor.strides[d], &step) ||
        __builtin_add_overflow(last, step, &last))
      return false;
  }
  if (empty)
    elements = 0;
  return empty ? (end = 0, true) : !__builtin_add_overflow(last, 1, &end);
}

// The same bytes as pairs of real numbers; false on overflow.
bool asPairs(StoredTensor &tensor) {
  tensor.type = componentOf(tensor.type);
  bool fits = !__builtin_mul_overflow(tensor.offset, 2, &tensor.offset);
  for (int64_t &stride : tensor.strides)
    fits &= !__builtin_mul_overflow(stride, 2, &stride);
  tensor.sizes.push_back(2);
  tensor.strides.push_back(1);
  return fits;
}

} // namespace

int64_t StoredTensor::elements() const {
  // The product of the others need not fit then.
  if (std::ranges::find(sizes, 0) != sizes.end())
    return 0;
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

bool StoredTensor::contiguous() const {
  if (elements() == 0)
    return true;
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && strides[d] != expected)
      return false;
    expected *= sizes[d];
  }
  return true;
}

bool StoredTensor::tiedTo(const StoredTensor &other) const {
  return identity() && identity() == other.identity() && storage.size() == other.storage.size() &&
         type == other.type && sizes == other.sizes && strides == other.strides &&
         offset == other.offset;
}

bool TensorStore::add(StoredTensor tensor, std::string &error) {
  auto fail = [&](const std::string &what) {
    error = "tensor '" + tensor.name + "' " + what;
    return false;
  };
  auto negative = [](int64_t value) { return value < 0; };
  if (isComplex(tensor.type) && !asPairs(tensor))
    return fail("has strides that are larger than 64 bits can count");
  if (tensor.sizes.size() != tensor.strides.size())
    return fail("has " + std::to_string(tensor.sizes.size()) + " sizes but " +
                std::to_string(tensor.strides.size()) + " strides");
  if (std::any_of(tensor.sizes.begin(), tensor.sizes.end(), negative) ||
      std::any_of(tensor.strides.begin(), tensor.strides.end(), negative) || tensor.offset < 0)
    return fail("has a negative size, stride or offset");
  int64_t elements, end, bytes, extent;
  int64_t width = int64_t(byteWidth(tensor.type));
  if (!measure(tensor, elements, end) || __builtin_mul_overflow(elements, width, &extent) ||
      __builtin_mul_overflow(end, width, &bytes))
    return fail("is larger than 64 bits can count");
  if (!tensor.storage.empty() && uint64_t(bytes) > tensor.storage.size())
    return fail("needs " + std::to_string(bytes) + " bytes of '" + tensor.record + "', which has " +
                std::to_string(tensor.storage.size()));
  if (!index.emplace(tensor.name, list.size()).second)
    return fail("appears twice");
  list.push_back(std::move(tensor));
  return true;
}

void TensorStore::tie(std::vector<std::string> names) {
  auto shared = std::make_shared<const std::vector<std::string>>(std::move(names));
  for (const std::string &name : *shared)
    if (auto found = index.find(name); found != index.end())
      list[found->second].tie = shared;
}

const StoredTensor *TensorStore::find(std::string_view name) const {
  auto found = index.find(std::string(name));
  return found == index.end() ? nullptr : &list[found->second];
}

std::optional<TensorStore> TensorStore::open(const std::string &path, std::string &error) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path, error);
  if (!file)
    return std::nullopt;
  std::optional<TensorStore> store;
  if (ZipArchive::hasMagic(file->bytes())) {
    if (TorchScriptArchive::accepts(file->bytes())) {
      if (std::optional<TorchScriptArchive> archive =
              TorchScriptArchive::read(file->bytes(), error))
        store = archive->takeTensors(error);
    } else if (StateDictArchive::accepts(file->bytes())) {
      store = StateDictArchive::read(file->bytes(), error);
    } else if (std::optional<Pt2Archive> archive = Pt2Archive::read(file->bytes(), error))
      store = archive->takeTensors(error);
  } else if (StateDictArchive::isOldFile(file->bytes())) {
    error =
        "torch.save wrote it in the format that it had before PyTorch 1.6, which is one pickle: "
        "load it in PyTorch and save it again";
  } else {
    store = readSafetensors(file->bytes(), error);
  }
  if (!store)
    error = path + ": " + error;
  else
    store->keep(std::move(file));
  return store;
}

std::optional<TensorStore> TensorStore::openWithBlocks(const std::string &path,
                                                       std::string &error) {
  struct stat status{};
  bool isFolder = stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  return isFolder ? readShardedArchive(path, error) : open(path, error);
}

} // namespace shardc
