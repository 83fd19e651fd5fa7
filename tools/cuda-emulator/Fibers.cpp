// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Fibers.h"

#include <stdexcept>
#include <string>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace shardc::emulator {
namespace {
Fibers *active = nullptr; // the ones whose fiber runs
} // namespace
} // namespace shardc::emulator

#if defined(__x86_64__)
// Stores what a call keeps on the stack, changes it, and takes from the other one what is there.
extern "C" void shardcEmulatorSwitch(void **save, void *load);
asm(R"(
  .text
  .hidden shardcEmulatorSwitch
  .globl shardcEmulatorSwitch
  .type shardcEmulatorSwitch, @function
shardcEmulatorSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size shardcEmulatorSwitch, .-shardcEmulatorSwitch
)");

namespace shardc::emulator {
namespace {
void change(void *&save, void *load) { shardcEmulatorSwitch(&save, load); }

void *fresh(uint8_t *stack, size_t bytes, void (*begin)()) {
  void **top = reinterpret_cast<void **>(stack + bytes);
  *--top = nullptr; // where `begin` would return to
  *--top = reinterpret_cast<void *>(begin);
  for (int i = 0; i < 6; ++i)
    *--top = nullptr;
  return top;
}
} // namespace
} // namespace shardc::emulator
#else
namespace shardc::emulator {
namespace {
void change(void *&save, void *load) {
  ucontext_t *from = static_cast<ucontext_t *>(save);
  if (!from)
    save = from = new ucontext_t;
  swapcontext(from, static_cast<ucontext_t *>(load));
}

// The context lies at the low end of the stack.
void *fresh(uint8_t *stack, size_t bytes, void (*begin)()) {
  ucontext_t *context = reinterpret_cast<ucontext_t *>(stack);
  getcontext(context);
  context->uc_stack.ss_sp = stack + sizeof(ucontext_t);
  context->uc_stack.ss_size = bytes - sizeof(ucontext_t);
  context->uc_link = nullptr;
  makecontext(context, begin, 0);
  return context;
}
} // namespace
} // namespace shardc::emulator
#endif

namespace shardc::emulator {

constexpr size_t guardBytes = 4096;

void Fibers::prepare(size_t n, size_t bytes) {
  bytes = (bytes + guardBytes + 4095) / 4096 * 4096;
  if (n <= count && bytes <= stackBytes)
    return;
  if (memory)
    munmap(memory, stackBytes * count);
  memory = nullptr;
  count = 0;
  size_t all = n * bytes;
  void *at = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
  if (at == MAP_FAILED)
    throw std::runtime_error("no memory for the stacks of " + std::to_string(n) + " threads");
  memory = static_cast<uint8_t *>(at);
  stackBytes = bytes;
  count = n;
  for (size_t i = 0; i < n; ++i)
    mprotect(memory + i * bytes, guardBytes, PROT_NONE);
  saved.assign(n, nullptr);
}

void Fibers::begin() {
  Fibers &fibers = *active;
  fibers.body(fibers.argument, fibers.current);
  for (;;)
    active->suspend();
}

void Fibers::reset(uint32_t i, Body run, void *with) {
  body = run;
  argument = with;
  saved[i] = fresh(memory + i * stackBytes + guardBytes, stackBytes - guardBytes, &Fibers::begin);
}

void Fibers::resume(uint32_t i) {
  active = this;
  current = i;
  change(host, saved[i]);
}

void Fibers::suspend() { change(saved[current], host); }

} // namespace shardc::emulator
