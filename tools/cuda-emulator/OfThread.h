// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the emulator keeps of each host thread.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_OFTHREAD_H
#define SHARDC_TOOLS_CUDA_EMULATOR_OFTHREAD_H

#include <new>
#include <pthread.h>
#include <stdexcept>

namespace shardc::emulator {

/// The T of the calling thread. It is destroyed behind all thread_local variables of a thread that
/// ends, and not at all when the process ends: the thread that ends it destroys its thread_local
/// variables first, and static objects of the program, which may call the driver, after them.
template <typename T> T &ofThread() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    if (pthread_key_create(&made, [](void *value) { delete static_cast<T *>(value); }))
      throw std::runtime_error("the process has no more keys of threads");
    return made;
  }();
  if (void *known = pthread_getspecific(key))
    return *static_cast<T *>(known);
  T *made = new T;
  if (pthread_setspecific(key, made)) {
    delete made;
    throw std::bad_alloc();
  }
  return *made;
}

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_OFTHREAD_H
