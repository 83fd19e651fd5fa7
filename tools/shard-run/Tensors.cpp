// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shard-run/Tensors.h"

#include "support/archive/SafetensorsWriter.h"
#include "support/archive/TensorStore.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <unistd.h>
#include <unordered_set>

namespace shardc::run {

namespace {

bool endsWith(const std::string &text, const char *end) {
  size_t length = std::strlen(end);
  return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

/// Header of numpy's format: magic, version, length of the header, a Python dict as text.
/// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
class NpyHeader {
public:
  NpyHeader(std::string_view file, const std::string &path) : path(path) {
    if (file.size() < 10 || file.substr(0, 6) != std::string_view("\x93NUMPY", 6))
      fail("it is not a .npy file");
    auto byte = [&](size_t i) { return size_t(static_cast<unsigned char>(file[i])); };
    size_t begin = byte(6) == 1 ? 10 : 12;
    if (file.size() < begin)
      fail("it is truncated");
    size_t length = byte(8) | byte(9) << 8;
    if (byte(6) > 1)
      length |= byte(10) << 16 | byte(11) << 24;
    if (length > file.size() - begin)
      fail("it is truncated");
    dict = file.substr(begin, length);
    dataBegin = begin + length;
  }

  size_t dataBegin = 0;

  shardrt_type type() const {
    std::string_view descr = after("'descr':");
    constexpr std::pair<const char *, shardrt_type> types[] = {
        {"'<f4'", SHARDRT_F32}, {"'<f8'", SHARDRT_F64}, {"'<f2'", SHARDRT_F16},
        {"'<i8'", SHARDRT_I64}, {"'<i4'", SHARDRT_I32}, {"'<i2'", SHARDRT_I16},
        {"'|i1'", SHARDRT_I8},  {"'|u1'", SHARDRT_U8},  {"'|b1'", SHARDRT_BOOL},
        {"'<c8'", SHARDRT_F32}, {"'<c16'", SHARDRT_F64}};
    for (auto &[name, type] : types)
      if (descr.rfind(name, 0) == 0)
        return type;
    fail("its element type is " + std::string(descr.substr(0, descr.find(','))) +
         ", which programs do not have");
  }
  /// Then it is read as pairs of real numbers, with a last dim of 2.
  bool isComplex() const { return after("'descr':").rfind("'<c", 0) == 0; }
  bool fortranOrder() const { return after("'fortran_order':").rfind("True", 0) == 0; }
  std::vector<int64_t> shape() const {
    std::string_view rest = after("'shape':");
    std::vector<int64_t> extents;
    if (rest.empty() || rest.front() != '(')
      fail("its header has no shape");
    for (rest.remove_prefix(1); !rest.empty() && rest.front() != ')';) {
      if (rest.front() == ',' || rest.front() == ' ') {
        rest.remove_prefix(1);
        continue;
      }
      int64_t extent = 0;
      size_t digits = 0;
      for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9'; ++digits)
        if (__builtin_mul_overflow(extent, 10, &extent) ||
            __builtin_add_overflow(extent, rest[digits] - '0', &extent))
          fail("its shape is too large");
      if (digits == 0 || extents.size() + isComplex() == SHARDRT_MAX_RANK)
        fail("its shape cannot be read");
      extents.push_back(extent);
      rest.remove_prefix(digits);
    }
    return extents;
  }

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw std::runtime_error(path + ": " + what);
  }
  std::string_view after(const char *key) const {
    size_t at = dict.find(key);
    if (at == std::string_view::npos)
      fail(std::string("its header has no ") + key);
    std::string_view rest = dict.substr(at + std::strlen(key));
    size_t text = rest.find_first_not_of(' ');
    return text == std::string_view::npos ? std::string_view() : rest.substr(text);
  }
  const std::string &path;
  std::string_view dict;
};

FileTensor readNpy(const std::string &path) {
  std::string error;
  std::shared_ptr<const MappedFile> file = MappedFile::open(path, error);
  if (!file)
    throw std::runtime_error(error);
  std::string_view bytes(reinterpret_cast<const char *>(file->bytes().data()),
                         file->bytes().size());
  NpyHeader header(bytes, path);
  FileTensor tensor;
  tensor.type = header.type();
  tensor.extents = header.shape();
  tensor.strides.resize(tensor.extents.size());
  bool pairs = header.isComplex();
  int64_t count = pairs ? 2 : 1;
  bool overflow = false, fortran = header.fortranOrder();
  for (size_t i = 0; i < tensor.extents.size(); ++i) {
    size_t d = fortran ? i : tensor.extents.size() - 1 - i;
    tensor.strides[d] = count;
    overflow |= __builtin_mul_overflow(count, std::max<int64_t>(tensor.extents[d], 1), &count);
  }
  if (pairs) {
    tensor.extents.push_back(2);
    tensor.strides.push_back(1);
  }
  bool empty = std::find(tensor.extents.begin(), tensor.extents.end(), 0) != tensor.extents.end();
  int64_t needed = 0;
  overflow |= __builtin_mul_overflow(count, shardrt_type_bytes(tensor.type), &needed);
  if (overflow || (!empty && uint64_t(needed) > bytes.size() - header.dataBegin))
    throw std::runtime_error(path + ": it is truncated");
  tensor.data = bytes.data() + header.dataBegin;
  tensor.owner = file;
  return tensor;
}

} // namespace

std::vector<FileTensor> readTensors(const std::string &argument) {
  size_t equals = argument.find('=');
  std::string name = equals == std::string::npos ? "" : argument.substr(0, equals);
  std::string path = equals == std::string::npos ? argument : argument.substr(equals + 1);
  if (!name.empty() || endsWith(path, ".npy")) {
    FileTensor tensor = readNpy(path);
    tensor.name = name;
    return {tensor};
  }
  std::string error;
  std::optional<TensorStore> opened = TensorStore::open(path, error);
  if (!opened)
    throw std::runtime_error(error);
  auto store = std::make_shared<TensorStore>(std::move(*opened));
  std::vector<FileTensor> tensors;
  for (const StoredTensor &stored : store->tensors()) {
    FileTensor tensor;
    tensor.name = stored.name;
    tensor.type = runtimeCodeOf(stored.type);
    if (tensor.type == 0)
      throw std::runtime_error(path + ": " + stored.name + " has element type " +
                               std::string(elementTypeName(stored.type)) +
                               ", which programs do not have");
    tensor.extents = stored.sizes;
    tensor.strides = stored.strides;
    tensor.data = stored.storage.data() + stored.offset * int64_t(byteWidth(stored.type));
    tensor.owner = store;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

void writeSafetensors(const std::string &path, const std::vector<OutputTensor> &tensors) {
  std::vector<SafetensorsEntry> entries;
  std::unordered_set<std::string_view> names;
  for (const OutputTensor &tensor : tensors) {
    if (!names.insert(tensor.name).second)
      throw std::runtime_error(path + ": cannot write: two outputs are called " + tensor.name);
    entries.push_back({tensor.name, elementTypeFromRuntime(tensor.type).value(), tensor.extents});
  }
  const std::string header = safetensorsHeader(entries, {});
  std::string temporary = path + ".tmp" + std::to_string(getpid());
  FILE *file = std::fopen(temporary.c_str(), "wb");
  bool good = file != nullptr;
  if (file) {
    good = std::fwrite(header.data(), 1, header.size(), file) == header.size();
    for (const OutputTensor &tensor : tensors)
      good = good &&
             std::fwrite(tensor.bytes.data(), 1, tensor.bytes.size(), file) == tensor.bytes.size();
    good &= std::fclose(file) == 0;
  }
  if (!good || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    throw std::runtime_error(path + ": cannot write: " + reason);
  }
}

} // namespace shardc::run
