// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>

namespace shardc::emulator {
namespace {

constexpr uint64_t gap = 1024;
constexpr uint64_t writtenWord = 0x0101010101010101 * Written;

uint64_t roundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

void *reserve(uint64_t bytes) {
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    throw std::runtime_error("cannot reserve " + std::to_string(bytes >> 30) +
                             " GiB of addresses for the emulated devices (ulimit -v?)");
  return at;
}

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", (unsigned long long)value);
  return text;
}

std::string text(const Allocation &a) {
  return "the allocation of " + std::to_string(a.bytes) + " bytes at " + hex(a.address) +
         (a.pinned ? " (pinned, number " : " (device " + std::to_string(a.device) + ", number ") +
         std::to_string(a.number) + (a.freed ? ", freed)" : ")");
}

} // namespace

Memory &Memory::instance() {
  static Memory *memory = new Memory; // never destroyed: it is used until the process ends
  return *memory;
}

Memory::Memory() {
  base = reinterpret_cast<uint64_t>(reserve(size));
  states = static_cast<uint8_t *>(reserve(size));
  cells = static_cast<uint32_t *>(reserve(size * sizeof(uint32_t)));
  pages = static_cast<uint8_t *>(reserve(size / pageBytes));
}

uint64_t Memory::allocate(uint64_t bytes, int device, bool pinned) {
  uint64_t length = roundUp(bytes + gap, pageBytes);
  if (length > size || length < bytes)
    return 0;
  for (int turn = 0; turn < 2; ++turn) {
    // The next free range from the cursor on.
    uint64_t at = cursor;
    for (auto it = allocations.lower_bound(base + at); it != allocations.end(); ++it) {
      if (base + at + length <= it->first)
        break;
      at = roundUp(it->first - base + it->second.bytes + gap, pageBytes);
    }
    if (at + length <= size) {
      cursor = at + length;
      Allocation allocation{base + at, bytes, nextNumber++, device, pinned, false};
      past.erase(past.lower_bound(base + at), past.lower_bound(base + at + length));
      allocations[base + at] = allocation;
      setState(base + at, bytes, pinned ? Written : Unwritten);
      return base + at;
    }
    cursor = 0;
  }
  return 0;
}

bool Memory::release(uint64_t address, bool pinned) {
  auto it = allocations.find(address);
  if (it == allocations.end() || it->second.pinned != pinned)
    return false;
  Allocation allocation = it->second;
  allocations.erase(it);
  allocation.freed = true;
  past[address] = allocation;
  uint64_t length = roundUp(allocation.bytes, pageBytes);
  madvise(reinterpret_cast<void *>(address), length, MADV_DONTNEED);
  madvise(cell(address), length * sizeof(uint32_t), MADV_DONTNEED);
  madvise(state(address), length, MADV_DONTNEED); // pages of zeros: NoMemory
  return true;
}

const Allocation *Memory::find(uint64_t address) const {
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin())
    return nullptr;
  --it;
  return it->second.contains(address) ? &it->second : nullptr;
}

uint64_t Memory::used(int device) const {
  uint64_t sum = 0;
  for (const auto &[address, allocation] : allocations)
    if (allocation.device == device && !allocation.pinned)
      sum += allocation.bytes;
  return sum;
}

std::vector<Allocation> Memory::live(int device) const {
  std::vector<Allocation> out;
  for (const auto &[address, allocation] : allocations)
    if (allocation.device == device)
      out.push_back(allocation);
  return out;
}

void Memory::setState(uint64_t address, uint64_t bytes, ByteState value) {
  std::memset(state(address), value, bytes);
}

std::string Memory::describe(uint64_t address) const {
  if (!owns(address))
    return hex(address) + " is no memory of a device";
  if (const Allocation *in = find(address))
    return hex(address) + " is byte " + std::to_string(address - in->address) + " of " + text(*in);
  auto freed = past.upper_bound(address);
  if (freed != past.begin() && (--freed)->second.contains(address))
    return hex(address) + " is byte " + std::to_string(address - freed->first) + " of " +
           text(freed->second);
  auto after = allocations.lower_bound(address);
  const Allocation *before = after == allocations.begin() ? nullptr : &std::prev(after)->second;
  uint64_t behind = before ? address - before->address - before->bytes : ~uint64_t(0);
  uint64_t ahead = after == allocations.end() ? ~uint64_t(0) : after->first - address;
  if (before && behind <= ahead)
    return hex(address) + " is " + std::to_string(behind) + " bytes after the end of " +
           text(*before);
  if (after != allocations.end())
    return hex(address) + " is " + std::to_string(ahead) + " bytes before " + text(after->second);
  return hex(address) + " is in no allocation";
}

std::string Memory::problem(uint64_t address, uint64_t bytes, bool read) const {
  if (bytes == 0 || !owns(address))
    return "";
  const char *verb = read ? "reads" : "writes";
  if (address - base + bytes > size)
    return std::string(verb) + " beyond the memory of the device";
  const uint8_t *states = state(address);
  for (uint64_t i = 0; i < bytes;) {
    if (states[i] == Written) {
      // Words of written bytes at once.
      uint64_t word = writtenWord;
      while (i + 8 <= bytes && word == writtenWord) {
        std::memcpy(&word, states + i, 8);
        i += word == writtenWord ? 8 : 0;
      }
      while (i < bytes && states[i] == Written)
        ++i;
      continue;
    }
    if (states[i] == NoMemory)
      return std::string(verb) +
             (past.empty() ? " outside of allocations: " : " outside of live allocations: ") +
             describe(address + i);
    if (read)
      return "reads bytes that nothing has written: " + describe(address + i);
    ++i;
  }
  return "";
}

void Memory::beginLaunch(int device, const std::vector<bool> *peers) {
  launchDevice = device;
  launchPeers = peers;
}

bool Memory::touchPage(uint64_t address) {
  uint8_t *flag = page(address);
  if (*flag)
    return true;
  const Allocation *in = find(address);
  if (in && !in->pinned && in->device != launchDevice &&
      !(launchPeers && size_t(in->device) < launchPeers->size() && (*launchPeers)[in->device]))
    return false;
  *flag = 1;
  touched.push_back(address / pageBytes * pageBytes);
  return true;
}

Effects Memory::takeTouched() {
  std::sort(touched.begin(), touched.end());
  Effects out;
  // Runs of bytes of one kind: 0 untouched, 1 read, 2 written.
  int kind = 0;
  uint64_t begin = 0, expected = 0;
  auto change = [&](uint64_t at, int next) {
    if (kind == 1)
      out.reads.push_back({begin, at});
    else if (kind == 2)
      out.writes.push_back({begin, at});
    kind = next;
    begin = at;
  };
  constexpr uint64_t step = 16;
  for (uint64_t address : touched) {
    if (address != expected && kind)
      change(expected, 0);
    uint32_t *first = cell(address);
    for (uint64_t i = 0; i < pageBytes; i += step) {
      uint32_t all = ~0u, any = 0, zeros = 0;
      for (uint64_t j = 0; j < step; ++j) {
        all &= first[i + j];
        any |= first[i + j];
        zeros |= first[i + j] == 0;
      }
      int same = any == 0 ? 0 : all >> 31 ? 2 : (!zeros && !(any >> 31)) ? 1 : -1;
      if (same >= 0) {
        if (same != kind)
          change(address + i, same);
        continue;
      }
      for (uint64_t j = 0; j < step; ++j) {
        uint32_t value = first[i + j];
        int next = value == 0 ? 0 : value >> 31 ? 2 : 1;
        if (next != kind)
          change(address + i + j, next);
      }
    }
    std::memset(first, 0, pageBytes * sizeof(uint32_t));
    *page(address) = 0;
    expected = address + pageBytes;
  }
  if (kind)
    change(expected, 0);
  touched.clear();
  return out;
}

} // namespace shardc::emulator
