// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of the emulated devices, and what is known of every byte of it.
//
// All devices have their memory in one reserved range of addresses. Addresses are not used again
// while there are others, and allocations have a gap between them, so that accesses beyond an
// allocation or after its end are found. Beside the memory lie, at fixed distances,
//   state   one byte a byte: ByteState;
//   cells   one 32-bit word a byte: who has touched it in the launch that runs (Checks.cpp);
//   pages   one byte for 4 KiB: whether a cell of the page is set.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_MEMORY_H
#define SHARDC_TOOLS_CUDA_EMULATOR_MEMORY_H

#include "tools/cuda-emulator/Clocks.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardc::emulator {

enum ByteState : uint8_t {
  NoMemory = 0,
  Unwritten = 1,
  Written = 2,
  InFlight = 3 ///< shared memory: a cp.async has not been waited for
};

struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t number = 0; ///< in order of allocation, from 1
  int device = 0;
  bool pinned = false; ///< memory of the host
  bool freed = false;

  bool contains(uint64_t at) const { return at >= address && at - address < bytes; }
};

class Memory {
public:
  static constexpr uint64_t size = uint64_t(64) << 30;
  static constexpr uint64_t pageBytes = 4096;

  /// The one of the process. Throws std::runtime_error if the addresses cannot be reserved.
  static Memory &instance();

  /// 0: there is no room.
  uint64_t allocate(uint64_t bytes, int device, bool pinned);
  /// False if no live allocation of this kind begins there.
  bool release(uint64_t address, bool pinned);
  /// The live allocation that the address lies in.
  const Allocation *find(uint64_t address) const;
  uint64_t used(int device) const;
  std::vector<Allocation> live(int device) const;

  bool owns(uint64_t address) const { return address - base < size; }
  uint8_t *state(uint64_t address) const { return states + (address - base); }
  uint32_t *cell(uint64_t address) const { return cells + (address - base); }
  uint8_t *page(uint64_t address) const { return pages + (address - base) / pageBytes; }
  void setState(uint64_t address, uint64_t bytes, ByteState value);

  /// "12 bytes after the allocation of 4096 bytes at 0x... (device 0, number 7)", or where else the
  /// address is.
  std::string describe(uint64_t address) const;
  /// What is wrong with reading or writing these bytes from outside of kernels; empty: nothing.
  /// Memory of the host that no function has allocated is taken for good.
  std::string problem(uint64_t address, uint64_t bytes, bool read) const;

  /// A kernel touches the page for the first time. False: kernels of the device may not reach it.
  bool touchPage(uint64_t address);
  /// What the launch has touched; clears all cells. `device` is that of the next launch.
  Effects takeTouched();
  void beginLaunch(int device, const std::vector<bool> *peers);

private:
  Memory();

  uint64_t base = 0;
  uint8_t *states = nullptr;
  uint32_t *cells = nullptr;
  uint8_t *pages = nullptr;
  uint64_t cursor = 0;
  uint64_t nextNumber = 1;
  std::map<uint64_t, Allocation> allocations; ///< live ones, by address
  std::map<uint64_t, Allocation> past;        ///< freed ones whose addresses are not used again
  std::vector<uint64_t> touched;              ///< pages, as addresses
  int launchDevice = 0;
  const std::vector<bool> *launchPeers = nullptr;
};

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_MEMORY_H
