// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Settings.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <unistd.h>

namespace shardc::emulator {
namespace {

std::optional<uint64_t> number(const std::string &text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::string variable(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

/// The number of the process stands for %p, so that each has a file of its own.
std::string fileName(const char *name) {
  std::string text = variable(name);
  if (size_t at = text.find("%p"); at != std::string::npos)
    text.replace(at, 2, std::to_string(getpid()));
  return text;
}

struct FromEnvironment {
  Settings settings;
  std::string error;

  void wrong(const char *name, const char *expected) {
    error += std::string(error.empty() ? "" : "; ") + name + " is '" + variable(name) +
             "', expected " + expected;
  }

  void readSwitch(const char *name, bool &value) {
    if (std::string text = variable(name); text == "0" || text == "off")
      value = false;
    else if (!text.empty() && text != "1" && text != "on")
      wrong(name, "on or off");
  }

  FromEnvironment() {
    if (std::string text = variable("CUDA_EMULATED_ORDER");
        !text.empty() && !parseOrder(text, settings))
      wrong("CUDA_EMULATED_ORDER", "eager, lazy or random:SEED");
    if (!parseDrop(variable("CUDA_EMULATED_DROP"), settings))
      wrong("CUDA_EMULATED_DROP", "wait:N, barrier:N or check:N");
    readSwitch("CUDA_EMULATED_CHECKS", settings.checks);
    readSwitch("CUDA_EMULATED_PEERS", settings.peers);
    if (std::string text = variable("CUDA_EMULATED_DEVICES"); !text.empty()) {
      std::optional<uint64_t> n = number(text);
      if (n && *n <= 64)
        settings.devices = int(*n);
      else
        wrong("CUDA_EMULATED_DEVICES", "a number up to 64");
    }
    if (std::string text = variable("CUDA_EMULATED_MEMORY"); !text.empty()) {
      std::optional<uint64_t> n = number(text);
      if (n && *n <= settings.memoryBytes)
        settings.memoryBytes = *n;
      else
        wrong("CUDA_EMULATED_MEMORY", "a number of bytes up to 16 GiB");
    }
    settings.reportsFile = fileName("CUDA_EMULATED_REPORTS");
    settings.countsFile = fileName("CUDA_EMULATED_COUNTS");
    settings.mutantsFile = fileName("CUDA_EMULATED_MUTANTS");
    settings.codeFolder = variable("CUDA_EMULATED_CACHE");
  }
};

FromEnvironment &fromEnvironment() {
  static auto *instance = new FromEnvironment; // is used until the process ends
  return *instance;
}

} // namespace

Settings &settings() { return fromEnvironment().settings; }

const std::string &settingsError() { return fromEnvironment().error; }

bool parseOrder(const std::string &text, Settings &settings) {
  if (text == "eager" || text == "lazy") {
    settings.order = text == "lazy" ? StreamOrder::Lazy : StreamOrder::Eager;
    return true;
  }
  if (!text.starts_with("random:"))
    return false;
  std::optional<uint64_t> seed = number(text.substr(7));
  if (!seed)
    return false;
  settings.order = StreamOrder::Random;
  settings.seed = *seed;
  return true;
}

bool parseDrop(const std::string &text, Settings &settings) {
  if (text.empty()) {
    settings.dropped = Dropped::Nothing;
    return true;
  }
  size_t colon = text.find(':');
  if (colon == std::string::npos)
    return false;
  std::string kind = text.substr(0, colon);
  std::optional<uint64_t> n = number(text.substr(colon + 1));
  if (!n || (kind != "wait" && kind != "barrier" && kind != "check"))
    return false;
  settings.dropped = kind == "wait"      ? Dropped::Wait
                     : kind == "barrier" ? Dropped::Barrier
                                         : Dropped::Check;
  settings.droppedNumber = *n;
  return true;
}

bool Counts::next(Dropped kind) {
  uint64_t &count = kind == Dropped::Wait ? waits : kind == Dropped::Barrier ? barriers : checks;
  return count++ == settings().droppedNumber && settings().dropped == kind;
}

Counts &counts() {
  static Counts instance;
  return instance;
}

Held &held() {
  static Held instance;
  return instance;
}

void writeCounts() {
  const std::string &file = settings().countsFile;
  if (file.empty())
    return;
  std::FILE *out = std::fopen(file.c_str(), "w");
  if (!out) {
    std::fprintf(stderr, "cuda-emulated: cannot write %s (CUDA_EMULATED_COUNTS)\n", file.c_str());
    return;
  }
  std::fprintf(out, "wait %llu\nbarrier %llu\ncheck %llu\nreached %d\n",
               (unsigned long long)counts().waits, (unsigned long long)counts().barriers,
               (unsigned long long)counts().checks, counts().reached);
  std::fclose(out);
}

} // namespace shardc::emulator
