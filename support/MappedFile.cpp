// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardc {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string &path, std::string &error) {
  auto fail = [&](const char *what) {
    error = path + ": " + what;
    return nullptr;
  };
  // Without O_NONBLOCK, opening a pipe waits for somebody who writes to it.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return fail(std::strerror(errno));
  struct stat status;
  if (::fstat(descriptor, &status) != 0) {
    int code = errno;
    ::close(descriptor);
    return fail(std::strerror(code));
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return fail("not a regular file");
  }
  std::shared_ptr<MappedFile> file(new MappedFile());
  file->name = path;
  file->size = static_cast<size_t>(status.st_size);
  if (file->size != 0) {
    void *address = ::mmap(nullptr, file->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    int code = errno;
    if (address == MAP_FAILED) {
      ::close(descriptor);
      file->size = 0;
      return fail(std::strerror(code));
    }
    file->data = static_cast<const std::byte *>(address);
  }
  ::close(descriptor);
  return file;
}

MappedFile::~MappedFile() {
  if (data)
    ::munmap(const_cast<std::byte *>(data), size);
}

} // namespace shardc
