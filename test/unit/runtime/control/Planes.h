// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worlds of control planes over TCP, whose ranks are threads of the test.
#ifndef SHARDC_TEST_UNIT_RUNTIME_CONTROL_PLANES_H
#define SHARDC_TEST_UNIT_RUNTIME_CONTROL_PLANES_H

#include "runtime/control/TcpControlPlane.h"
#include "test/unit/runtime/Ports.h"

#include <gtest/gtest.h>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace test {

using Plane = std::unique_ptr<shardc::rt::ControlPlane>;

/// A job that no other test has.
inline std::string freshJob() {
  static std::atomic<uint32_t> number{0};
  return "test " + std::to_string(getpid()) + " " + std::to_string(++number);
}

/// What the ranks of a world on this host pass.
inline shardc::rt::ControlOptions optionsOf(uint32_t rank, uint32_t size, const std::string &job,
                                            double timeout = 20) {
  shardc::rt::ControlOptions options;
  options.rank = rank;
  options.worldSize = size;
  options.job = job;
  options.oneHost = true;
  options.timeoutSeconds = timeout;
  return options;
}

/// What each rank's join came to.
struct Joined {
  std::vector<Plane> planes;
  std::vector<std::string> errors;
  std::vector<int32_t> status;
};

/// Joins all of these at the same time.
inline Joined joinAll(const std::vector<shardc::rt::ControlOptions> &options) {
  Joined out;
  size_t n = options.size();
  out.planes.resize(n);
  out.errors.resize(n);
  out.status.resize(n);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      try {
        out.planes[i] = shardc::rt::joinControlPlane(options[i]);
      } catch (const shardc::rt::Failure &failure) {
        out.errors[i] = failure.message;
        out.status[i] = failure.status;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return out;
}

/// A world of `size` that must come about.
inline std::vector<Plane> makeWorld(uint32_t size, double timeout = 60) {
  std::string job = freshJob();
  std::vector<shardc::rt::ControlOptions> options;
  for (uint32_t r = 0; r < size; ++r)
    options.push_back(optionsOf(r, size, job, timeout));
  Joined joined = joinAll(options);
  for (uint32_t r = 0; r < size; ++r)
    EXPECT_EQ(joined.errors[r], "") << "rank " << r;
  return std::move(joined.planes);
}

/// Runs `body(plane)` on a thread for each, and returns what it threw, or "".
inline std::vector<std::string> onAll(std::vector<Plane> &planes,
                                      const std::function<void(shardc::rt::ControlPlane &)> &body) {
  std::vector<std::string> out(planes.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < planes.size(); ++i)
    if (planes[i])
      threads.emplace_back([&, i] {
        try {
          body(*planes[i]);
        } catch (const shardc::rt::Failure &failure) {
          out[i] = failure.message;
        }
      });
  for (std::thread &thread : threads)
    thread.join();
  return out;
}

/// All ranks say that they leave, and end at the same time, as processes do.
inline void endWorld(std::vector<Plane> &planes) {
  std::vector<std::thread> threads;
  for (Plane &plane : planes)
    threads.emplace_back([&plane] {
      if (plane)
        plane->leave("done");
      plane.reset();
    });
  for (std::thread &thread : threads)
    thread.join();
}

inline shardc::rt::Clock::time_point in(double seconds) {
  return shardc::rt::deadlineAfter(seconds);
}

/// Deadlines of what must be noticed without waiting for them; tests would seem to hang.
constexpr double never = 600;

inline double secondsSince(shardc::rt::Clock::time_point start) {
  return std::chrono::duration<double>(shardc::rt::Clock::now() - start).count();
}

/// Waits until it holds; false after a minute, which is long for a machine however busy it is.
inline bool eventually(const std::function<bool()> &holds, double seconds = 60) {
  auto until = in(seconds);
  while (!holds()) {
    if (shardc::rt::Clock::now() > until)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}
#define EXPECT_CONTAINS(text, part) EXPECT_PRED2(test::contains, std::string(text), part)

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_CONTROL_PLANES_H
