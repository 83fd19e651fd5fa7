// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/nccl/Mailbox.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

namespace shardc::emulator {

namespace {

constexpr const char *folderPrefix = "shardc-nccl-";
constexpr const char *herePrefix = "here.";

std::runtime_error failed(const std::string &what) {
  return std::runtime_error(what + ": " + std::strerror(errno));
}

bool writeAll(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t done = ::write(file, text.data(), text.size());
    if (done < 0 && errno != EINTR)
      return false;
    if (done > 0)
      text.remove_prefix(size_t(done));
  }
  return true;
}

/// Whether a process is in the folder.
bool hasRanks(const std::filesystem::path &folder) {
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename();
    if (!name.starts_with(herePrefix))
      continue;
    auto process = pid_t(std::atoi(name.c_str() + name.rfind('.') + 1));
    if (kill(process, 0) == 0 || errno != ESRCH)
      return true;
  }
  return false;
}

/// Removes what ranks that were all killed have left behind some time ago.
void removeOld(const std::string &base) {
  std::error_code error;
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(10);
  for (const auto &entry : std::filesystem::directory_iterator(base, error))
    if (entry.path().filename().string().starts_with(folderPrefix) &&
        entry.last_write_time(error) < old && !error && !hasRanks(entry.path()))
      std::filesystem::remove_all(entry.path(), error);
}

} // namespace

std::string Mailbox::newName() {
  std::random_device random;
  char name[64];
  std::snprintf(name, sizeof name, "/%s%d-%08x%08x", folderPrefix, int(getpid()), random(),
                random());
  const char *chosen = std::getenv("CUDA_EMULATED_NCCL_FOLDER");
  std::string base = chosen ? chosen : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  removeOld(base);
  return base + name;
}

Mailbox::Mailbox(std::string folderName, int rank)
    : folder(std::move(folderName)),
      own(herePrefix + std::to_string(rank) + "." + std::to_string(getpid())) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw failed("making " + folder);
  post({own}, "", "");
}

Mailbox::~Mailbox() {
  unlink(path(own).c_str());
  std::error_code ignored;
  if (!hasRanks(folder))
    std::filesystem::remove_all(folder, ignored);
}

void Mailbox::post(const std::vector<std::string> &names, std::string_view head,
                   std::string_view body) {
  if (names.empty())
    return;
  std::string fresh = path("new." + own + "." + std::to_string(posted++));
  int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0)
    throw failed("making " + fresh);
  bool written = writeAll(file, head) && writeAll(file, body);
  if (!written) {
    std::runtime_error error =
        failed("writing " + std::to_string(head.size() + body.size()) + " bytes to " + fresh);
    close(file);
    unlink(fresh.c_str());
    throw error;
  }
  close(file);
  for (size_t i = 1; i < names.size(); ++i)
    if (link(fresh.c_str(), path(names[i]).c_str()) != 0)
      throw failed("making " + path(names[i]));
  if (rename(fresh.c_str(), path(names[0]).c_str()) != 0)
    throw failed("making " + path(names[0]));
}

std::optional<std::string> Mailbox::look(const std::string &name) const {
  int file = ::open(path(name).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return std::nullopt;
  struct stat facts{};
  fstat(file, &facts);
  std::string text(size_t(facts.st_size), '\0');
  size_t got = 0;
  while (got < text.size()) {
    ssize_t more = read(file, text.data() + got, text.size() - got);
    if (more <= 0 && errno != EINTR)
      break;
    if (more > 0)
      got += size_t(more);
  }
  close(file);
  text.resize(got);
  return text;
}

std::optional<std::string> Mailbox::take(const std::string &name) {
  std::optional<std::string> text = look(name);
  if (text)
    unlink(path(name).c_str());
  return text;
}

bool Mailbox::isThere(const std::string &name) const {
  return access(path(name).c_str(), F_OK) == 0;
}

} // namespace shardc::emulator
