// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rank that is a process and does nothing but meet the others:
//   control_rank [--barriers N] [--deadline SECONDS] [--timeout SECONDS] [--exit]
// N barriers (0: without end), each with that deadline. It finds the others as any rank does. It
// says "joined", and at the end "done" or "failed STATUS: MESSAGE". --exit: ends then without a
// word to the others.
#include "runtime/control/TcpControlPlane.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace shardc::rt;

int main(int argc, char **argv) {
  auto start = Clock::now();
  auto since = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  double deadline = 5, timeout = 60;
  long barriers = 0;
  bool exits = false;
  for (int i = 1; i < argc; ++i) {
    auto value = [&] { return i + 1 < argc ? argv[++i] : "0"; };
    if (!std::strcmp(argv[i], "--barriers"))
      barriers = std::atol(value());
    else if (!std::strcmp(argv[i], "--deadline"))
      deadline = std::atof(value());
    else if (!std::strcmp(argv[i], "--timeout"))
      timeout = std::atof(value());
    else if (!std::strcmp(argv[i], "--exit"))
      exits = true;
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    auto launch = LaunchEnvironment::read(processEnvironment());
    if (!launch)
      throw Failure(SHARDRT_INVALID_ARGUMENT, "no launcher started this process");
    ControlOptions options = controlOptions(*launch, processEnvironment());
    options.timeoutSeconds = timeout;
    options.log = [](int32_t level, const std::string &text) {
      std::fprintf(stderr, "%d %s\n", int(level), text.c_str());
    };
    auto plane = joinControlPlane(options);
    plane->answerWith([](std::string_view) { return "in the loop of barriers"; });
    std::printf("joined in %.6f s\n", since());
    start = Clock::now();
    for (long i = 0; barriers == 0 || i < barriers; ++i)
      plane->exchange({"the barrier"}, "", deadlineAfter(deadline));
    std::printf("barriers in %.6f s\n", since());
    if (exits)
      _exit(0);
    plane->leave("done");
  } catch (const Failure &failure) {
    std::printf("failed %d: %s\n", int(failure.status), failure.what());
    return 3;
  }
  std::printf("done\n");
}
