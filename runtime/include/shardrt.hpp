// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C++ wrapper of shardrt.h and shardrt_launch.h: owners that release themselves, exceptions, spans.
// Header only; link with libshardrt. Threads and lifetimes are those of the C ABI.
#ifndef SHARDRT_HPP
#define SHARDRT_HPP

#include "shardrt_launch.h"
#include "shardrt_states.h"

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace shardrt {

class Error : public std::runtime_error {
public:
  Error(shardrt_status status, const std::string &message)
      : std::runtime_error(message), status(status) {}
  const shardrt_status status;
};

/// Calls a function of the C ABI, its last argument an error, and throws what it reports.
template <typename Function, typename... Arguments>
void check(Function function, Arguments... arguments) {
  shardrt_error *error = nullptr;
  shardrt_status status = function(arguments..., &error);
  if (status == SHARDRT_OK)
    return;
  std::unique_ptr<shardrt_error, decltype(&shardrt_error_free)> owner(error, shardrt_error_free);
  throw Error(status, error ? shardrt_error_message(error) : shardrt_status_name(status));
}

/// The element type of a C++ type.
template <typename T> constexpr shardrt_type typeOf() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>)
    return SHARDRT_F32;
  else if constexpr (std::is_same_v<U, double>)
    return SHARDRT_F64;
  else if constexpr (std::is_same_v<U, bool>)
    return SHARDRT_BOOL;
  else if constexpr (std::is_integral_v<U> && std::is_signed_v<U>)
    return sizeof(U) == 8   ? SHARDRT_I64
           : sizeof(U) == 4 ? SHARDRT_I32
           : sizeof(U) == 2 ? SHARDRT_I16
                            : SHARDRT_I8;
  else {
    static_assert(std::is_same_v<U, uint8_t>, "no element type for this type: build the view");
    return SHARDRT_U8;
  }
}

/// A dense view; `extents` must outlive it.
template <typename T>
shardrt_tensor view(std::span<T> data, std::span<const int64_t> extents,
                    int32_t scope = SHARDRT_GLOBAL) {
  shardrt_tensor tensor{};
  tensor.data = const_cast<std::remove_const_t<T> *>(data.data());
  tensor.type = typeOf<T>();
  tensor.rank = int32_t(extents.size());
  tensor.extents = extents.data();
  tensor.scope = scope;
  return tensor;
}

/// The element type of a DLPack tensor (DLDataType); 0 if there is none.
constexpr shardrt_type typeOfDlpack(uint8_t code, uint8_t bits, uint16_t lanes = 1) {
  constexpr struct {
    uint8_t code, bits;
    shardrt_type type;
  } known[] = {{2, 32, SHARDRT_F32},  {2, 64, SHARDRT_F64}, {2, 16, SHARDRT_F16},
               {4, 16, SHARDRT_BF16}, {0, 64, SHARDRT_I64}, {0, 32, SHARDRT_I32},
               {0, 16, SHARDRT_I16},  {0, 8, SHARDRT_I8},   {1, 8, SHARDRT_U8},
               {6, 8, SHARDRT_BOOL}};
  for (auto &one : known)
    if (one.code == code && one.bits == bits && lanes == 1)
      return one.type;
  return 0;
}

/// A view of memory anywhere: of the host, or of a device that the program is for. Of a DLPack
/// tensor: data + byte_offset, typeOfDlpack(dtype...), shape and strides, which must outlive it.
inline shardrt_tensor view(void *data, shardrt_type type, std::span<const int64_t> extents,
                           const int64_t *strides = nullptr, int32_t scope = SHARDRT_GLOBAL) {
  shardrt_tensor tensor{};
  tensor.data = data;
  tensor.type = type;
  tensor.rank = int32_t(extents.size());
  tensor.extents = extents.data();
  tensor.strides = strides;
  tensor.scope = scope;
  return tensor;
}

template <typename T, void (*release)(T *)> struct Release {
  void operator()(T *object) const { release(object); }
};
template <typename T, void (*release)(T *)> using Owner = std::unique_ptr<T, Release<T, release>>;
using Communicator = Owner<shardrt_communicator, shardrt_communicator_destroy>;

class Artifact {
public:
  explicit Artifact(const std::string &path) {
    shardrt_artifact *opened = nullptr;
    check(shardrt_open, path.c_str(), &opened);
    owner.reset(opened);
  }
  const shardrt_manifest *manifest() const { return shardrt_artifact_manifest(owner.get()); }
  std::string json() const { return {manifest()->json, size_t(manifest()->json_bytes)}; }

private:
  Owner<shardrt_artifact, shardrt_close> owner;
};

inline std::vector<Communicator> localCommunicators(int32_t worldSize) {
  std::vector<shardrt_communicator *> raw(size_t(worldSize > 0 ? worldSize : 0));
  check(shardrt_local_communicators, worldSize, raw.data());
  return {raw.begin(), raw.end()};
}

/// One end of a world of the caller's own (shardrt_communicator_functions); `context` must outlive
/// it.
inline Communicator bringCommunicator(const shardrt_communicator_functions &functions,
                                      void *context, int32_t rank, int32_t worldSize) {
  shardrt_communicator *raw = nullptr;
  check(shardrt_communicator_create, &functions, context, rank, worldSize, &raw);
  return Communicator(raw);
}

/// This process's end of the launcher's world; of `config` only timeout and log are used.
inline Communicator communicatorFromEnvironment(const shardrt_config &config) {
  shardrt_communicator *raw = nullptr;
  check(shardrt_communicator_from_environment, &config, &raw);
  return Communicator(raw);
}

/// What each rank of the world passes, by rank; of any length. `topic` must live as long as the
/// communicator.
inline std::vector<std::string> exchange(const Communicator &communicator, const char *topic,
                                         const std::string &mine, double timeout) {
  size_t world = size_t(shardrt_communicator_world_size(communicator.get()));
  uint64_t length = mine.size(), longest = 0;
  std::vector<uint64_t> lengths(world);
  shardrt_exchange sizes{topic, 0, &length, lengths.data(), sizeof length, timeout};
  check(shardrt_communicator_exchange, communicator.get(),
        static_cast<const shardrt_exchange *>(&sizes));
  for (uint64_t one : lengths)
    longest = one > longest ? one : longest;
  std::vector<std::string> texts(world);
  if (longest == 0)
    return texts;
  std::string padded = mine, all(size_t(longest) * world, '\0');
  padded.resize(size_t(longest));
  shardrt_exchange bytes{topic, 0, padded.data(), all.data(), longest, timeout};
  check(shardrt_communicator_exchange, communicator.get(),
        static_cast<const shardrt_exchange *>(&bytes));
  for (size_t rank = 0; rank < world; ++rank)
    texts[rank] = all.substr(rank * size_t(longest), size_t(lengths[rank]));
  return texts;
}

inline shardrt_config defaultConfig() {
  shardrt_config config;
  shardrt_config_init(&config);
  return config;
}

class Model {
public:
  Model(const shardrt_manifest *manifest, const shardrt_config &config) {
    shardrt_model *created = nullptr;
    check(shardrt_create, manifest, &config, &created);
    owner.reset(created);
  }
  void loadParameters(const std::string &path) {
    check(shardrt_load_parameters_file, get(), path.c_str());
  }
  /// Checkpoints of shardrt_states.h. Saving is collective.
  void save(const std::string &path) { check(shardrt_save, get(), path.c_str()); }
  void saveSharded(const std::string &folder) {
    check(shardrt_save_sharded, get(), folder.c_str());
  }
  void resume(const std::string &path) { check(shardrt_resume, get(), path.c_str()); }
  void getState(const std::string &name, const shardrt_tensor &to) {
    check(shardrt_get_state, get(), name.c_str(), &to);
  }
  void setState(const std::string &name, const shardrt_tensor &from) {
    check(shardrt_set_state, get(), name.c_str(), &from);
  }
  void run(const char *entry, std::span<const shardrt_tensor> inputs,
           std::span<const shardrt_tensor> outputs) {
    check(shardrt_run, get(), entry, inputs.data(), inputs.size(), outputs.data(), outputs.size());
  }
  /// Global shapes of `count` outputs for these inputs, whose data is not looked at.
  std::vector<shardrt_shape> outputShapes(const char *entry, std::span<const shardrt_tensor> inputs,
                                          size_t count) const {
    std::vector<shardrt_shape> shapes(count);
    check(shardrt_output_shapes, get(), entry, inputs.data(), inputs.size(), shapes.data(),
          static_cast<shardrt_shape *>(nullptr), count);
    return shapes;
  }
  void barrier() { check(shardrt_barrier, get()); }
  shardrt_model *get() const { return owner.get(); }

private:
  Owner<shardrt_model, shardrt_destroy> owner;
};

} // namespace shardrt

#endif // SHARDRT_HPP
