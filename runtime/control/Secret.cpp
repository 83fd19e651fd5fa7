// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/control/Secret.h"

#include "runtime/support/Failure.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sodium/crypto_auth_hmacsha512256.h>
#include <sodium/crypto_verify_32.h>
#include <sys/random.h>

// libsodium calls the first when its own functions are used wrongly, which would be a mistake of
// this library, and the second to make keys, which nobody here lets it do. The archive's own ones
// would bring in all of libsodium's algorithms, 200 KB.
extern "C" void sodium_misuse() { std::abort(); }
extern "C" void randombytes_buf(void *const bytes, const size_t count) {
  shardc::rt::randomBytes(static_cast<unsigned char *>(bytes), count);
}

namespace shardc::rt {

static_assert(crypto_auth_hmacsha512256_BYTES == 32);

namespace {

const unsigned char *bytesOf(std::string_view text) {
  return reinterpret_cast<const unsigned char *>(text.data());
}

Tag tagOfBytes(std::string_view key, std::initializer_list<std::string_view> parts) {
  crypto_auth_hmacsha512256_state state;
  crypto_auth_hmacsha512256_init(&state, bytesOf(key), key.size());
  for (std::string_view part : parts)
    crypto_auth_hmacsha512256_update(&state, bytesOf(part), part.size());
  Tag tag;
  crypto_auth_hmacsha512256_final(&state, tag.data());
  return tag;
}

} // namespace

Tag tagOf(const Key &key, std::initializer_list<std::string_view> parts) {
  return tagOfBytes(viewOf(key), parts);
}

bool sameTag(const Tag &tag, std::string_view bytes) {
  return bytes.size() == tag.size() && crypto_verify_32(tag.data(), bytesOf(bytes)) == 0;
}

Key worldKey(std::string_view secret) { return tagOfBytes(secret, {"shardrt control plane"}); }

void randomBytes(unsigned char *bytes, size_t count) {
  while (count > 0) {
    ssize_t got = getrandom(bytes, count, 0);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      throw Failure(SHARDRT_INTERNAL,
                    std::string("the system gives no random numbers: ") + std::strerror(errno));
    bytes += got;
    count -= size_t(got);
  }
}

std::string hexOf(std::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string makeSecret() {
  Key bytes;
  randomBytes(bytes.data(), bytes.size());
  return hexOf(viewOf(bytes));
}

} // namespace shardc::rt
