// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fibers: stacks that a host thread changes between. Only one thread uses them at a time.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_FIBERS_H
#define SHARDC_TOOLS_CUDA_EMULATOR_FIBERS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardc::emulator {

class Fibers {
public:
  using Body = void (*)(void *argument, uint32_t fiber);

  /// Makes at least `n` stacks of at least `bytes`. Throws std::runtime_error without memory.
  void prepare(size_t n, size_t bytes);
  /// Makes fiber i begin with body(argument, i) when it is resumed next.
  void reset(uint32_t i, Body body, void *argument);
  /// Runs fiber i until it suspends. A body that returns suspends for good.
  void resume(uint32_t i);
  /// Called by a fiber: goes on after its resume.
  void suspend();
  /// Whether the address is in the stack of a fiber.
  bool inStack(uint64_t address) const {
    return address - reinterpret_cast<uint64_t>(memory) < stackBytes * count;
  }

private:
  static void begin();

  uint8_t *memory = nullptr;
  size_t stackBytes = 0, count = 0;
  void *host = nullptr; ///< where resume was called
  std::vector<void *> saved;
  uint32_t current = 0;
  Body body = nullptr;
  void *argument = nullptr;
};

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_FIBERS_H
