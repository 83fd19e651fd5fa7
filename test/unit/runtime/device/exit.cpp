// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that ends while a model is loaded, with exit status 7: "static": the model is destroyed
// with what has static life, later than anything that the runtime has made; "leaked": it is not;
// "exit": exit is called where the model is used; "thread": by another thread.
#include "runtime/include/shardrt.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

struct Loaded {
  explicit Loaded(const std::string &path) : artifact(path), ends(shardrt::localCommunicators(2)) {
    for (int32_t rank = 0; rank < 2; ++rank) {
      shardrt_config config = shardrt::defaultConfig();
      config.world_size = 2;
      config.rank = rank;
      config.communicator = ends[size_t(rank)].get();
      config.device = "emulated";
      models[rank] = std::make_unique<shardrt::Model>(artifact.manifest(), config);
      shardrt::check(shardrt_load_parameters, models[rank]->get(), parameter,
                     static_cast<void *>(nullptr));
    }
  }
  static int32_t parameter(void *, const char *name, shardrt_tensor *tensor) {
    static float w[8] = {};
    static int64_t calls = 0, extents[] = {8};
    const bool isW = std::strcmp(name, "w") == 0;
    tensor->data = isW ? static_cast<void *>(w) : &calls;
    tensor->type = isW ? SHARDRT_F32 : SHARDRT_I64;
    tensor->rank = isW ? 1 : 0;
    tensor->extents = extents;
    tensor->scope = SHARDRT_GLOBAL;
    return 0;
  }
  void run() {
    auto rank = [&](size_t number) {
      const float x[] = {1, 2, 3};
      float y[3], total = 0;
      const int64_t n = 3;
      shardrt_tensor in = shardrt::view<const float>(x, {&n, 1});
      shardrt_tensor out[] = {shardrt::view<float>(y, {&n, 1}, SHARDRT_LOCAL),
                              shardrt::view<float>({&total, 1}, {}, SHARDRT_LOCAL)};
      models[number]->run("forward", {&in, 1}, out);
    };
    std::thread other(rank, 1);
    rank(0);
    other.join();
  }
  shardrt::Artifact artifact;
  std::vector<shardrt::Communicator> ends;
  std::unique_ptr<shardrt::Model> models[2];
};

std::unique_ptr<Loaded> keptStatic;

} // namespace

int main(int, char **arguments) {
  const std::string way = arguments[2];
  setenv("SHARDRT_DEVICE_COLLECTIVES", "device", 1);
  auto made = std::make_unique<Loaded>(std::string(arguments[1]) + "/device_artifact_2.so");
  for (int step = 0; step < 5; ++step)
    made->run();
  std::puts("ran");
  std::fflush(stdout);
  if (way == "static")
    keptStatic = std::move(made);
  else if (way == "leaked")
    static_cast<void>(made.release());
  else if (way == "exit")
    std::exit(7);
  else
    std::thread([] { std::exit(7); }).join();
  return 7;
}
