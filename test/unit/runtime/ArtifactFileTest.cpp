// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Damaged artifacts: refused before the dynamic linker sees them.
#include "runtime/abi/Seal.h"
#include "test/unit/runtime/Artifact.h"
#include "test/unit/runtime/Command.h"

#include <elf.h>
#include <sys/stat.h>

using namespace test;

namespace {

class ArtifactFile : public ::testing::Test {
protected:
  Folder folder;
  std::string path = folder.file("model.so");
  std::string object = contents(HAND_ARTIFACT);

  /// The message of the error, or "loaded".
  std::string open(const std::string &bytes, shardrt_status wanted = SHARDRT_BAD_FILE) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    try {
      shardrt::Artifact artifact(path);
    } catch (const shardrt::Error &error) {
      EXPECT_EQ(error.status, wanted) << error.what();
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      return error.what();
    }
    return "loaded";
  }
  std::string sealed() const {
    shardc::ArtifactSeal seal = shardc::makeSeal(object);
    return object + std::string(reinterpret_cast<const char *>(&seal), sizeof seal);
  }
};

} // namespace

TEST_F(ArtifactFile, TruncatedAnywhereIsRefused) {
  for (size_t i = 0; i < 64; ++i)
    EXPECT_NE(open(object.substr(0, object.size() * i / 64)), "loaded") << i;
  EXPECT_NE(open(object.substr(0, object.size() - 1)), "loaded");
  EXPECT_NE(open(object.substr(0, object.size() / 2)).find("truncated"), std::string::npos);
}

TEST_F(ArtifactFile, ASealFindsEveryChange) {
  std::string good = sealed();
  EXPECT_EQ(open(good), "loaded");
  for (size_t i = 0; i < 64; ++i) {
    std::string bad = good;
    size_t at = 64 + (object.size() - 65) * i / 63; // the ELF header has checks of its own
    bad[at] = char(bad[at] ^ 0x10);
    EXPECT_NE(open(bad).find("checksum"), std::string::npos) << at;
  }
}

TEST_F(ArtifactFile, AnObjectForAnotherMachine) {
  std::string other = object;
  other[offsetof(Elf64_Ehdr, e_machine)] = char(EM_S390);
  EXPECT_NE(open(other, SHARDRT_INCOMPATIBLE).find("another architecture"), std::string::npos);
}

TEST_F(ArtifactFile, WhatIsNoFileDoesNotHang) {
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  for (const std::string &name : {folder.file("pipe"), folder.path.string(), folder.file("none")})
    EXPECT_THROW(shardrt::Artifact{name}, shardrt::Error) << name;
}
