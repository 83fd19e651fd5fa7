// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of shardrt_dlpack.h for those who cannot include it, which libshardrt_device.so
// exports.
#include "runtime/include/shardrt_dlpack.h"

#define SHARDRT_DLPACK_EXPORT extern "C" __attribute__((visibility("default")))

SHARDRT_DLPACK_EXPORT shardrt_status shardrt_dlpackf_view(const shardrt_dl_tensor *tensor,
                                                          const shardrt_dlpack_use *use,
                                                          shardrt_tensor *view, char *message,
                                                          size_t bytes) {
  return shardrt_dlpack_view(tensor, use, view, message, bytes);
}

SHARDRT_DLPACK_EXPORT shardrt_status shardrt_dlpackf_view_managed(const shardrt_dl_managed *managed,
                                                                  const shardrt_dlpack_use *use,
                                                                  shardrt_tensor *view,
                                                                  char *message, size_t bytes) {
  return shardrt_dlpack_view_managed(managed, use, view, message, bytes);
}

SHARDRT_DLPACK_EXPORT shardrt_status
shardrt_dlpackf_view_versioned(const shardrt_dl_versioned *versioned, const shardrt_dlpack_use *use,
                               shardrt_tensor *view, char *message, size_t bytes) {
  return shardrt_dlpack_view_versioned(versioned, use, view, message, bytes);
}

SHARDRT_DLPACK_EXPORT shardrt_status shardrt_dlpackf_wrap(
    const shardrt_tensor *view, shardrt_dl_device device, shardrt_dlpack_release_fn release,
    void *context, shardrt_dl_managed **managed, shardrt_dl_versioned **versioned) {
  return shardrt_dlpack_wrap(view, device, release, context, managed, versioned);
}
