// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COLLECTIVES_ATTENTION_RINGMODE_H
#define SHARDC_PASSES_COLLECTIVES_ATTENTION_RINGMODE_H

#include <optional>
#include <string>
#include <string_view>

namespace shardc {

/// What the option of passes and tools says: off; auto; all: rings wherever they are possible;
/// balanced: and causal ones in which all ranks have the same work.
enum class RingMode { Off, Auto, All, Balanced };

inline std::optional<RingMode> parseRingMode(std::string_view text, std::string &error) {
  for (auto [name, mode] :
       {std::pair("off", RingMode::Off), std::pair("auto", RingMode::Auto),
        std::pair("all", RingMode::All), std::pair("balanced", RingMode::Balanced)})
    if (text == name)
      return mode;
  error = "'" + std::string(text) + "' is neither off, auto, all nor balanced";
  return std::nullopt;
}

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ATTENTION_RINGMODE_H
