// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The texts of the kernels of collectives over peer access, where there is an assembler.
#include "runtime/plugins/cuda/PeerText.h"
#include "test/unit/runtime/AnyElements.h"
#include "test/unit/runtime/Assembler.h"
#include "test/unit/runtime/Command.h"

#include <fstream>
#include <gtest/gtest.h>

using namespace shardc;

TEST(PeerText, IsTakenByTheAssembler) {
  std::string assembler = test::findAssembler(VENV);
  if (assembler.empty())
    GTEST_SKIP() << "there is no ptxas";
  test::Folder folder;
  auto assemble = [&](const std::string &text, const std::string &what, const std::string &chip) {
    std::string file = folder.file("kernel.ptx");
    std::ofstream(file) << text;
    test::Finished done =
        test::runCommand(folder, assembler + " -v -arch=" + chip + " " + file + " -o /dev/null");
    EXPECT_EQ(done.status, 0) << what << ": " << done.err;
    // Tables are read where parameters are, not copied.
    for (const char *none : {" 0 bytes stack frame", "0 bytes spill stores"})
      EXPECT_NE((done.out + done.err).find(none), std::string::npos) << what << ": " << done.err;
  };
  for (const char *chip : {"sm_80", "sm_90"})
    for (unsigned bytes : {1, 2, 4, 8, 16})
      assemble(plugin::cuda::peerCopyPtx(bytes), "words of " + std::to_string(bytes), chip);
  for (shardrt_type type : test::types)
    for (uint32_t how = SHARDRT_SUM; how <= SHARDRT_PROD; ++how)
      assemble(plugin::cuda::peerReductionPtx(type, how),
               std::string(rt::typeName(type)) + " " + std::to_string(how), "sm_80");
}
