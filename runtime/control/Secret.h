// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The secret that the ranks of a world share, and what is made of it: keys, and tags that show that
// bytes come from somebody who knows it. Primitives are libsodium's (HMAC-SHA-512-256).
#ifndef SHARDC_RUNTIME_CONTROL_SECRET_H
#define SHARDC_RUNTIME_CONTROL_SECRET_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace shardc::rt {

using Key = std::array<unsigned char, 32>;
using Tag = std::array<unsigned char, 32>;

/// Secrets that are shorter could be guessed.
constexpr size_t shortestSecret = 16;

/// The tag of the parts one after the other. The parts must have fixed lengths, or lengths that are
/// among them.
Tag tagOf(const Key &key, std::initializer_list<std::string_view> parts);
/// Takes the same time wherever they differ.
bool sameTag(const Tag &tag, std::string_view bytes);
/// The key of a world with this secret.
Key worldKey(std::string_view secret);

/// From the kernel. Throws Failure (SHARDRT_INTERNAL) if it has none.
void randomBytes(unsigned char *bytes, size_t count);
/// 64 hexadecimal digits that nobody can guess.
std::string makeSecret();
std::string hexOf(std::string_view bytes);

template <size_t n> std::string_view viewOf(const std::array<unsigned char, n> &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), n};
}

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_SECRET_H
