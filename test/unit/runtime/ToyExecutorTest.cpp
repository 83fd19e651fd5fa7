// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An executor for a target that only this test knows. Its memory cannot be touched while no program
// runs: a model that reached past the seam would crash.
#include "runtime/comm/Endpoint.h"
#include "runtime/host/HostExecutor.h"
#include "runtime/model/Model.h"
#include "test/unit/runtime/Artifact.h"

#include <sys/mman.h>

using namespace shardc::rt;
using test::columns, test::depth;

namespace {

/// Pages that are closed, but for the time that an Open lives.
class ToyMemory final : public HostMemory {
public:
  ToyMemory() : HostMemory(Allocator{}) {}

  struct Open {
    explicit Open(ToyMemory &memory) : memory(memory) {
      if (memory.opened++ == 0)
        memory.protect(PROT_READ | PROT_WRITE);
    }
    ~Open() {
      if (--memory.opened == 0)
        memory.protect(PROT_NONE);
    }
    ToyMemory &memory;
  };

  const Allocator &allocator() const override { return pages; }
  bool reaches(const void *) const override { return false; }
  void take(void *to, const Slice &part, const void *from, const int64_t *strides,
            int64_t bytes) override {
    Open open(*this);
    HostMemory::take(to, part, from, strides, bytes);
  }
  void give(void *to, const int64_t *strides, const Slice &part, const void *from,
            int64_t bytes) override {
    Open open(*this);
    HostMemory::give(to, strides, part, from, bytes);
  }
  bool holds(const void *data, const void *bytes, size_t count) const override {
    Open open(const_cast<ToyMemory &>(*this));
    return HostMemory::holds(data, bytes, count);
  }

private:
  static void *alloc(void *context, size_t bytes, size_t) {
    auto &self = *static_cast<ToyMemory *>(context);
    void *memory = mmap(nullptr, bytes, self.opened ? PROT_READ | PROT_WRITE : PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    self.blocks[memory] = bytes;
    return memory;
  }
  static void free(void *context, void *memory, size_t bytes) {
    static_cast<ToyMemory *>(context)->blocks.erase(memory);
    munmap(memory, bytes);
  }
  void protect(int access) {
    for (auto [memory, bytes] : blocks)
      mprotect(memory, bytes, access);
  }

  const Allocator pages{alloc, free, this};
  std::map<void *, size_t> blocks;
  int opened = 0;
};

class ToyExecutor final : public HostExecutor {
public:
  explicit ToyExecutor(const ExecutorContext &context)
      : HostExecutor(context, std::make_unique<ToyMemory>()) {}

  void plan(const shardrt_variant &variant, shardrt_frame &frame) override {
    ToyMemory::Open open(toy());
    HostExecutor::plan(variant, frame);
  }
  void prepare(const shardrt_entry &entry, const shardrt_variant &variant,
               shardrt_frame &frame) override {
    ToyMemory::Open open(toy());
    HostExecutor::prepare(entry, variant, frame);
  }
  void run(const shardrt_entry &entry, const shardrt_variant &variant, shardrt_frame &frame,
           uint64_t number) override {
    ToyMemory::Open open(toy());
    HostExecutor::run(entry, variant, frame, number);
  }
  void collective(const shardrt_collective &collective, Group &group, uint64_t number,
                  const shardrt_collective_tensor &tensor) override {
    ToyMemory::Open open(toy());
    HostExecutor::collective(collective, group, number, tensor);
  }

private:
  ToyMemory &toy() { return static_cast<ToyMemory &>(memory()); }
};

constexpr ExecutorKind toyKind{"toy",
                               [](const Manifest &manifest, Problems &problems) {
                                 if (manifest.cpu != "generic")
                                   problems.add("a toy runs generic programs only, not those for " +
                                                manifest.cpu);
                               },
                               [](const ExecutorContext &context) -> std::unique_ptr<Executor> {
                                 return std::make_unique<ToyExecutor>(context);
                               }};

/// Four models of the hand-written artifact, as one for the toy target.
class Toy : public ::testing::Test {
protected:
  Toy()
      : artifact(HAND_ARTIFACT),
        changed(artifact.manifest(), "\"kind\": \"cpu\"", "\"kind\": \"toy\""),
        registry(ExecutorRegistry::builtIn()) {
    registry.add(toyKind);
    for (auto &end : makeLocalWorld(test::world))
      ends.push_back(shardrt_communicator{std::make_shared<Endpoint>(std::move(end))});
  }
  std::unique_ptr<Model> create(int32_t rank, const shardrt_manifest &manifest,
                                const ExecutorRegistry &executors, uint32_t flags = 0) {
    shardrt_config config = shardrt::defaultConfig();
    config.world_size = test::world;
    config.rank = rank;
    config.communicator = &ends[size_t(rank)];
    config.timeout_s = 20;
    config.threads = 1;
    config.flags = flags;
    return std::make_unique<Model>(manifest, config, executors);
  }
  std::string refusal(const shardrt_manifest &manifest, const ExecutorRegistry &executors) {
    try {
      create(0, manifest, executors);
    } catch (const Failure &failure) {
      EXPECT_EQ(failure.status, SHARDRT_INCOMPATIBLE);
      return failure.message;
    }
    return "";
  }

  test::Folder folder;
  shardrt::Artifact artifact;
  test::ChangedManifest changed;
  ExecutorRegistry registry;
  std::vector<shardrt_communicator> ends;
};

} // namespace

TEST_F(Toy, RunsWhatTheHostRuns) {
  test::writeSafetensors(folder.file("w"), test::parameterFile());
  std::vector<std::unique_ptr<Model>> models;
  for (int32_t rank = 0; rank < test::world; ++rank) {
    models.push_back(create(rank, changed.manifest, registry));
    models.back()->loadFile(folder.file("w"));
  }
  shardrt_memory used = models[0]->memoryUsed();
  EXPECT_EQ(used.copied_bytes, used.parameter_bytes) << "nothing of the file is in place";
  for (int64_t rows : {8, 5}) {
    std::vector<float> x = test::inputRows(rows);
    std::vector<std::vector<float>> y(test::world, std::vector<float>(size_t(rows * columns)));
    std::vector<std::string> messages(test::world);
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < models.size(); ++rank)
      threads.emplace_back([&, rank] {
        int64_t in[] = {rows, depth}, out[] = {rows, columns};
        float total = 0;
        shardrt_tensor input = shardrt::view<const float>(x, in);
        shardrt_tensor outputs[] = {shardrt::view<float>(y[rank], out),
                                    shardrt::view<float>({&total, 1}, {}, SHARDRT_LOCAL)};
        try {
          models[rank]->run("forward", {&input, 1}, outputs);
        } catch (const Failure &failure) {
          messages[rank] = failure.message;
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    std::vector<double> wanted = test::expectedRows(rows);
    for (size_t rank = 0; rank < models.size(); ++rank) {
      EXPECT_EQ(messages[rank], "");
      for (size_t i = 0; i < wanted.size(); ++i)
        ASSERT_NEAR(y[rank][i], wanted[i], 1e-4) << "rank " << rank << ", element " << i;
    }
  }
}

TEST_F(Toy, TargetsThatCannotRun) {
  EXPECT_NE(refusal(changed.manifest, ExecutorRegistry::builtIn())
                .find("its target is toy, which this runtime cannot run (it runs cpu, cuda)"),
            std::string::npos);
  test::ChangedManifest fast(&changed.manifest, "\"cpu\": \"generic\"", "\"cpu\": \"fast\"");
  EXPECT_NE(refusal(fast.manifest, registry).find("a toy runs generic programs only"),
            std::string::npos);
  EXPECT_EQ(registry.names(), "cpu, cuda, toy");
  EXPECT_EQ(registry.find("rocm"), nullptr);
}

TEST_F(Toy, HasMemoryThatCannotBeChecked) {
  test::writeSafetensors(folder.file("w"), test::parameterFile());
  std::vector<std::string> messages(test::world);
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < test::world; ++rank)
    threads.emplace_back([&, rank] {
      std::vector<float> sums(size_t(columns), 0);
      int64_t extents[] = {columns};
      shardrt_tensor output = shardrt::view<float>(sums, extents);
      try {
        auto model = create(rank, changed.manifest, registry, SHARDRT_CHECK_MEMORY);
        model->loadFile(folder.file("w"));
        model->run("columns", {}, {&output, 1});
      } catch (const Failure &failure) {
        messages[size_t(rank)] = failure.message;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_NE(messages[0].find("memory of programs that compute with 1 threads cannot be checked"),
            std::string::npos)
      << messages[0];
}
