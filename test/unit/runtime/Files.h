// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_TEST_UNIT_RUNTIME_FILES_H
#define SHARDC_TEST_UNIT_RUNTIME_FILES_H

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace test {

/// A folder that goes away.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("shardrt-test-" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string &name) const { return (path / name).string(); }
};

struct Stored {
  std::string type; ///< as in safetensors: F32, I64
  std::vector<int64_t> shape;
  std::string bytes;
};
template <typename T>
Stored stored(const char *type, std::vector<int64_t> shape, const std::vector<T> &values) {
  return {type, shape,
          std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T))};
}

/// Writes a safetensors file: length, JSON, data without holes.
inline void writeSafetensors(const std::string &path,
                             const std::map<std::string, Stored> &tensors) {
  std::string json = "{", data;
  for (auto &[name, tensor] : tensors) {
    json += (json.size() > 1 ? ",\"" : "\"") + name + "\":{\"dtype\":\"" + tensor.type +
            "\",\"shape\":[";
    for (size_t d = 0; d < tensor.shape.size(); ++d)
      json += (d ? "," : "") + std::to_string(tensor.shape[d]);
    json += "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
            std::to_string(data.size() + tensor.bytes.size()) + "]}";
    data += tensor.bytes;
  }
  json += "}";
  while (json.size() % 8)
    json += ' ';
  uint64_t length = json.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(&length), 8);
  file << json << data;
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_FILES_H
