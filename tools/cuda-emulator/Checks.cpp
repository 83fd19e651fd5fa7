// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of single accesses to memory, called by generated code before each.
//
// A cell of global memory says who has touched its byte in this launch, as the bits
//   31      the byte is written
//   30, 29  0: read by one thread, 1: written last, 2: read by several threads of the block,
//           3: read by several blocks
//   28..19  thread, 18..10 barriers that the block had passed (modulo 512), 9..1 block (modulo 512)
//   0       set
// Threads of one block are ordered by barriers of the block, blocks by nothing. Blocks run one
// after the other, so only the last one's threads need be told apart.
//
// A byte of shared memory has two cells, one of the last write and one of the reads after it: a
// write has to come after both. A cell has the time (bits 31..12; it goes on with every barrier),
// the thread (11..2) and 0: read by one, 1: written, 2: read by several of a warp, 3: read by
// several warps.
#include "tools/cuda-emulator/Block.h"

#include <algorithm>
#include <cstring>

namespace shardc::emulator {
namespace {

constexpr uint32_t writtenBit = 1u << 31;
enum : uint32_t { ReadByOne, WrittenLast, ReadInBlock, ReadByMany };
constexpr uint32_t many = ReadByMany << 29 | 1;

uint32_t stateOf(uint32_t cell) { return cell >> 29 & 3; }
uint32_t threadOf(uint32_t cell) { return cell >> 19 & 1023; }
uint32_t epochOf(uint32_t cell) { return cell >> 10 & 511; }
uint32_t blockOf(uint32_t cell) { return cell >> 1 & 511; }

uint32_t mine(const Block &block, uint32_t thread) {
  return thread << 19 | (block.epoch & 511) << 10 | (block.serial & 511) << 1 | 1;
}

/// What the cell becomes; 0: the access races with an earlier one.
uint32_t afterRead(uint32_t cell, uint32_t own) {
  if (cell == 0)
    return own;
  uint32_t written = cell & writtenBit;
  if (blockOf(cell) != blockOf(own) || stateOf(cell) == ReadByMany)
    return written ? 0 : many;
  bool sameThread = threadOf(cell) == threadOf(own);
  if (stateOf(cell) != WrittenLast && epochOf(cell) != epochOf(own))
    return own | written; // all that read it before have passed a barrier
  switch (stateOf(cell)) {
  case ReadByOne:
    return sameThread ? own | written : (own & ~(1023u << 19)) | ReadInBlock << 29 | written;
  case WrittenLast:
    // A read after a barrier counts for itself: others may not write there before the next one.
    if (epochOf(cell) != epochOf(own))
      return own | written;
    return sameThread ? cell : 0;
  default:
    return (own & ~(1023u << 19)) | ReadInBlock << 29 | written;
  }
}

uint32_t afterWrite(uint32_t cell, uint32_t own) {
  uint32_t next = own | WrittenLast << 29 | writtenBit;
  if (cell == 0)
    return next;
  if (stateOf(cell) == ReadByMany || blockOf(cell) != blockOf(own))
    return 0;
  if (stateOf(cell) != ReadInBlock && threadOf(cell) == threadOf(own))
    return next;
  return epochOf(cell) == epochOf(own) ? 0 : next;
}

std::string bytesText(uint64_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

[[noreturn]] void failRace(Block &block, uint64_t address, uint32_t cell, bool write,
                           uint32_t thread, uint32_t site) {
  std::string who;
  if (stateOf(cell) == ReadByMany)
    who = "several blocks";
  else if (blockOf(cell) != (block.serial & 511))
    who = "thread " + std::to_string(threadOf(cell)) + " of another block";
  else if (stateOf(cell) == ReadInBlock)
    who = "several threads of the block";
  else
    who = "thread " + std::to_string(threadOf(cell)) + " of the block (counted from 0)";
  block.fail(
      CUDA_ERROR_LAUNCH_FAILED, thread, site,
      std::string("race in global memory: ") + (write ? "writes" : "reads") + " what " + who +
          (cell & writtenBit ? " wrote" : " read") +
          " in this launch without a barrier between: " + Memory::instance().describe(address));
}

[[noreturn]] void failState(Block &block, uint64_t address, uint64_t bytes, bool write,
                            uint32_t thread, uint32_t site) {
  Memory &memory = Memory::instance();
  const char *verb = write ? "writes " : "reads ";
  for (uint64_t i = 0; i < bytes; ++i) {
    uint64_t at = address + i;
    if (!memory.owns(at) || *memory.state(at) == NoMemory)
      block.fail(CUDA_ERROR_ILLEGAL_ADDRESS, thread, site,
                 verb + bytesText(bytes) + " outside of live allocations: " + memory.describe(at));
    if (!write && *memory.state(at) == Unwritten)
      block.fail(CUDA_ERROR_ILLEGAL_ADDRESS, thread, site,
                 verb + bytesText(bytes) + " that nothing has written: " + memory.describe(at));
  }
  block.fail(CUDA_ERROR_ILLEGAL_ADDRESS, thread, site,
             verb + bytesText(bytes) +
                 " of a device whose memory this one has no access to "
                 "(cuCtxEnablePeerAccess): " +
                 memory.describe(address));
}

/// Marks cells one by one. `bytes` may be many.
void markCells(Block &block, uint64_t address, uint64_t bytes, bool write, uint32_t thread,
               uint32_t site) {
  Memory &memory = Memory::instance();
  uint32_t own = mine(block, thread);
  uint32_t *cells = memory.cell(address);
  for (uint64_t i = 0; i < bytes; ++i) {
    if ((i == 0 || (address + i) % Memory::pageBytes == 0) && !memory.touchPage(address + i))
      failState(block, address, bytes, write, thread, site);
    uint32_t next = write ? afterWrite(cells[i], own) : afterRead(cells[i], own);
    if (!next)
      failRace(block, address + i, cells[i], write, thread, site);
    cells[i] = next;
  }
}

template <unsigned N> struct Word;
template <> struct Word<1> {
  using Type = uint8_t;
};
template <> struct Word<2> {
  using Type = uint16_t;
};
template <> struct Word<4> {
  using Type = uint32_t;
};
template <> struct Word<8> {
  using Type = uint64_t;
};
template <> struct Word<16> {
  using Type = unsigned __int128;
};

template <unsigned N> bool allWritten(const uint8_t *states) {
  typename Word<N>::Type word, expected;
  std::memcpy(&word, states, N);
  std::memset(&expected, Written, N);
  return word == expected;
}

template <unsigned N> bool all(const uint32_t *cells, uint32_t value) {
  uint32_t difference = 0;
  for (unsigned i = 0; i < N; ++i)
    difference |= cells[i] ^ value;
  return difference == 0;
}

/// Where memory lies that is neither of the device nor shared: on the stack of a thread, or a
/// global variable of the module.
void otherAccess(Block &block, uint64_t address, uint64_t bytes, bool write, uint32_t thread,
                 uint32_t site) {
  if (block.fibers.inStack(address))
    return;
  for (auto [begin, end] : block.kernel->constants)
    if (address >= begin && address + bytes <= end) {
      if (write)
        block.fail(CUDA_ERROR_ILLEGAL_ADDRESS, thread, site, "writes a constant of the module");
      return;
    }
  failState(block, address, bytes, write, thread, site);
}

template <unsigned N, bool write>
inline void checked(Block *block, uint64_t address, uint32_t thread, uint32_t siteAndAlignment) {
  Memory &memory = Memory::instance();
  uint32_t alignment = 1u << (siteAndAlignment & 15), site = siteAndAlignment >> 4;
  if (address & (alignment - 1)) [[unlikely]]
    block->misaligned(address, alignment, thread, site);
  if (!memory.owns(address)) [[unlikely]] {
    uint64_t offset = address - reinterpret_cast<uint64_t>(block->shared);
    if (offset < block->sharedBytes)
      return block->sharedAccess(address, N, write, thread, site);
    return otherAccess(*block, address, N, write, thread, site);
  }
  uint8_t *states = memory.state(address);
  if (!allWritten<N>(states)) [[unlikely]] {
    for (unsigned i = 0; i < N; ++i) {
      if (write ? states[i] == NoMemory : states[i] != Written)
        failState(*block, address, N, write, thread, site);
      states[i] = Written;
    }
  }
  uint32_t *cells = memory.cell(address);
  uint32_t own = mine(*block, thread);
  uint32_t first = cells[0];
  bool onePage = address % Memory::pageBytes <= Memory::pageBytes - N;
  if (all<N>(cells, first) && onePage) [[likely]] {
    uint32_t next = write ? afterWrite(first, own) : afterRead(first, own);
    if (next == first)
      return;
    if (next && (first || memory.touchPage(address))) [[likely]] {
      for (unsigned i = 0; i < N; ++i)
        cells[i] = next;
      return;
    }
  }
  markCells(*block, address, N, write, thread, site);
}

/// Whether the access that the cell tells of happens before one of `thread` now.
bool orderedShared(const Block &block, uint32_t cell, uint32_t thread) {
  uint32_t time = cell >> 12, other = cell >> 2 & 1023, state = cell & 3;
  if (time < block.blockSync)
    return true;
  if (state == ReadByMany)
    return false;
  uint32_t warp = thread / warpThreads;
  if (other / warpThreads != warp)
    return false;
  return time < block.warpSync[warp] || (other == thread && state != ReadInBlock);
}

/// What the cell of the last reads becomes.
uint32_t afterSharedRead(const Block &block, uint32_t cell, uint32_t own, uint32_t thread) {
  if (orderedShared(block, cell, thread))
    return own | ReadByOne;
  bool oneWarp =
      (cell & 3) != ReadByMany && (cell >> 2 & 1023) / warpThreads == thread / warpThreads;
  return own | (oneWarp ? ReadInBlock : ReadByMany);
}

template <unsigned N, bool write>
inline void checkedShared(Block *block, uint64_t address, uint32_t thread,
                          uint32_t siteAndAlignment) {
  uint32_t alignment = 1u << (siteAndAlignment & 15), site = siteAndAlignment >> 4;
  if (address & (alignment - 1)) [[unlikely]]
    block->misaligned(address, alignment, thread, site);
  block->sharedAccess(address, N, write, thread, site);
}

} // namespace

void Block::misaligned(uint64_t address, uint32_t alignment, uint32_t thread, uint32_t site) {
  fail(CUDA_ERROR_MISALIGNED_ADDRESS, thread, site,
       "the address is not a multiple of " + std::to_string(alignment) + ": " +
           Memory::instance().describe(address));
}

void Block::sharedAccess(uint64_t address, uint32_t bytes, bool write, uint32_t thread,
                         uint32_t site) {
  uint64_t offset = address - reinterpret_cast<uint64_t>(shared);
  uint32_t own = clock << 12 | thread << 2;
  // Mostly, all bytes have the same history.
  if (offset < sharedBytes && bytes && bytes <= sharedBytes - offset) [[likely]] {
    const uint8_t *states = &sharedStates[offset];
    uint32_t *writes = &sharedWrites[offset], *reads = &sharedReads[offset];
    uint32_t written = writes[0], read = reads[0];
    bool alike = true;
    for (uint32_t i = 0; i < bytes; ++i)
      alike &= states[i] == Written && writes[i] == written && reads[i] == read;
    if (alike && orderedShared(*this, written, thread) &&
        (!write || orderedShared(*this, read, thread))) {
      if (write) {
        std::fill_n(writes, bytes, own | WrittenLast);
        std::fill_n(reads, bytes, 0); // these reads happen before the write
      } else {
        std::fill_n(reads, bytes, afterSharedRead(*this, read, own, thread));
      }
      return;
    }
  }
  const char *verb = write ? "writes " : "reads ";
  for (uint32_t i = 0; i < bytes; ++i) {
    uint64_t at = offset + i;
    if (at >= sharedBytes || sharedStates[at] == NoMemory) [[unlikely]]
      fail(CUDA_ERROR_ILLEGAL_ADDRESS, thread, site,
           verb + bytesText(bytes) + " outside of the variables in shared memory: byte " +
               std::to_string(int64_t(at)) + " of " + std::to_string(sharedBytes));
    if (sharedStates[at] != Written) [[unlikely]] {
      if (sharedStates[at] == InFlight)
        fail(CUDA_ERROR_LAUNCH_FAILED, thread, site,
             verb + bytesText(bytes) +
                 " of shared memory that a cp.async copies to, for which "
                 "nothing has waited");
      if (!write)
        fail(CUDA_ERROR_ILLEGAL_ADDRESS, thread, site,
             verb + bytesText(bytes) +
                 " of shared memory that no thread of the block has written: "
                 "byte " +
                 std::to_string(at));
      sharedStates[at] = Written;
    }
    uint32_t &writer = sharedWrites[at], &reader = sharedReads[at];
    auto check = [&](uint32_t cell) {
      if (orderedShared(*this, cell, thread)) [[likely]]
        return;
      uint32_t kind = cell & 3;
      fail(CUDA_ERROR_LAUNCH_FAILED, thread, site,
           std::string("race in shared memory: ") + verb + "byte " + std::to_string(at) + " that " +
               (kind == ReadByMany || kind == ReadInBlock
                    ? std::string("other threads")
                    : "thread " + std::to_string(cell >> 2 & 1023)) +
               (kind == WrittenLast ? " wrote" : " read") + " without a barrier between");
    };
    check(writer);
    if (!write) {
      reader = afterSharedRead(*this, reader, own, thread);
      continue;
    }
    check(reader);
    writer = own | WrittenLast;
    reader = 0; // these reads happen before the write
  }
}

void Block::access(uint64_t address, uint64_t bytes, bool write, bool atomic, uint32_t thread,
                   uint32_t site) {
  if (!bytes || !checks)
    return;
  uint64_t offset = address - reinterpret_cast<uint64_t>(shared);
  if (offset < sharedBytes)
    return sharedAccess(address, uint32_t(bytes), write, thread, site);
  Memory &memory = Memory::instance();
  if (!memory.owns(address))
    return otherAccess(*this, address, bytes, write, thread, site);
  uint8_t *states = memory.state(address);
  for (uint64_t i = 0; i < bytes; ++i) {
    if (!memory.owns(address + i) ||
        (write && !atomic ? states[i] == NoMemory : states[i] != Written))
      failState(*this, address, bytes, write, thread, site);
    states[i] = Written;
  }
  if (!atomic)
    markCells(*this, address, bytes, write, thread, site);
}

namespace {

template <unsigned N> void read(Block *block, uint64_t address, uint32_t thread, uint32_t site) {
  checked<N, false>(block, address, thread, site);
}
template <unsigned N> void write(Block *block, uint64_t address, uint32_t thread, uint32_t site) {
  checked<N, true>(block, address, thread, site);
}
template <unsigned N>
void sharedRead(Block *block, uint64_t address, uint32_t thread, uint32_t site) {
  checkedShared<N, false>(block, address, thread, site);
}
template <unsigned N>
void sharedWrite(Block *block, uint64_t address, uint32_t thread, uint32_t site) {
  checkedShared<N, true>(block, address, thread, site);
}

/// `flags`: 1 writes, 2 is atomic.
void range(Block *block, uint64_t address, uint64_t bytes, uint32_t thread,
           uint32_t siteAndAlignment, uint32_t flags) {
  uint32_t alignment = 1u << (siteAndAlignment & 15), site = siteAndAlignment >> 4;
  if (bytes && (address & (alignment - 1)))
    block->misaligned(address, alignment, thread, site);
  block->access(address, bytes, flags & 1, flags & 2, thread, site);
}

} // namespace

std::vector<std::pair<const char *, void *>> checkFunctions() {
  return {{"emulated_read1", addressOf(&read<1>)},
          {"emulated_read2", addressOf(&read<2>)},
          {"emulated_read4", addressOf(&read<4>)},
          {"emulated_read8", addressOf(&read<8>)},
          {"emulated_read16", addressOf(&read<16>)},
          {"emulated_write1", addressOf(&write<1>)},
          {"emulated_write2", addressOf(&write<2>)},
          {"emulated_write4", addressOf(&write<4>)},
          {"emulated_write8", addressOf(&write<8>)},
          {"emulated_write16", addressOf(&write<16>)},
          {"emulated_shared_read1", addressOf(&sharedRead<1>)},
          {"emulated_shared_read2", addressOf(&sharedRead<2>)},
          {"emulated_shared_read4", addressOf(&sharedRead<4>)},
          {"emulated_shared_read8", addressOf(&sharedRead<8>)},
          {"emulated_shared_read16", addressOf(&sharedRead<16>)},
          {"emulated_shared_write1", addressOf(&sharedWrite<1>)},
          {"emulated_shared_write2", addressOf(&sharedWrite<2>)},
          {"emulated_shared_write4", addressOf(&sharedWrite<4>)},
          {"emulated_shared_write8", addressOf(&sharedWrite<8>)},
          {"emulated_shared_write16", addressOf(&sharedWrite<16>)},
          {"emulated_range", addressOf(&range)}};
}

} // namespace shardc::emulator
