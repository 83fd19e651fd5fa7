/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shardrt_dlpack.h: tensors of other libraries as arguments of shardrt_run, and memory of the
 * caller as tensors of other libraries, by DLPack: the structs that it publishes (versions 0.x
 * and 1.x), and functions over them, which are inline in C and C++. For other languages
 * libshardrt_device.so exports them under the same names, with an f behind "shardrt_dlpack":
 * shardrt_dlpackf_view, ...
 *
 * A view takes nothing over: the caller keeps the tensor until shardrt_run has returned, and then
 * calls its deleter. Memory is used where it is, or copied by the runtime, as shardrt_tensor says.
 */
#ifndef SHARDRT_DLPACK_H
#define SHARDRT_DLPACK_H

#include "shardrt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What DLPack publishes (dlpack.h has other names for it) ---- */

/* Where memory is: device_type. */
enum {
  SHARDRT_DL_CPU = 1,
  SHARDRT_DL_CUDA = 2,
  SHARDRT_DL_CUDA_HOST = 3,     /* pinned memory of the host */
  SHARDRT_DL_CUDA_MANAGED = 13, /* both use it where it is */
};
/* What elements are: code. */
enum {
  SHARDRT_DL_INT = 0,
  SHARDRT_DL_UINT = 1,
  SHARDRT_DL_FLOAT = 2,
  SHARDRT_DL_OPAQUE = 3,
  SHARDRT_DL_BFLOAT = 4,
  SHARDRT_DL_COMPLEX = 5,
  SHARDRT_DL_BOOL = 6,
};
enum { SHARDRT_DL_MAJOR = 1, SHARDRT_DL_MINOR = 0 };
/* Of a versioned tensor: flags. */
enum { SHARDRT_DL_READ_ONLY = 1, SHARDRT_DL_IS_COPIED = 2 };

typedef struct shardrt_dl_device {
  int32_t device_type;
  int32_t device_id;
} shardrt_dl_device;

typedef struct shardrt_dl_type {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} shardrt_dl_type;

typedef struct shardrt_dl_tensor {
  void *data;
  shardrt_dl_device device;
  int32_t ndim;
  shardrt_dl_type dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: row-major */
  uint64_t byte_offset;
} shardrt_dl_tensor;

/* DLManagedTensor: "dltensor" of Python's capsules. */
typedef struct shardrt_dl_managed {
  shardrt_dl_tensor tensor;
  void *manager;
  void (*deleter)(struct shardrt_dl_managed *self);
} shardrt_dl_managed;

/* DLManagedTensorVersioned: "dltensor_versioned". */
typedef struct shardrt_dl_versioned {
  struct {
    uint32_t major;
    uint32_t minor;
  } version;
  void *manager;
  void (*deleter)(struct shardrt_dl_versioned *self);
  uint64_t flags;
  shardrt_dl_tensor tensor;
} shardrt_dl_versioned;

/* ---- Element types ---- */

typedef struct shardrt_dlpack_pair {
  shardrt_dl_type dl;
  int32_t type;
  int32_t bytes;
  const char *name;
} shardrt_dlpack_pair;

/* All that have one; *n of them. */
static inline const shardrt_dlpack_pair *shardrt_dlpack_types(size_t *n) {
  static const shardrt_dlpack_pair pairs[] = {
      {{SHARDRT_DL_FLOAT, 32, 1}, SHARDRT_F32, 4, "f32"},
      {{SHARDRT_DL_FLOAT, 64, 1}, SHARDRT_F64, 8, "f64"},
      {{SHARDRT_DL_FLOAT, 16, 1}, SHARDRT_F16, 2, "f16"},
      {{SHARDRT_DL_BFLOAT, 16, 1}, SHARDRT_BF16, 2, "bf16"},
      {{SHARDRT_DL_INT, 64, 1}, SHARDRT_I64, 8, "i64"},
      {{SHARDRT_DL_INT, 32, 1}, SHARDRT_I32, 4, "i32"},
      {{SHARDRT_DL_INT, 16, 1}, SHARDRT_I16, 2, "i16"},
      {{SHARDRT_DL_INT, 8, 1}, SHARDRT_I8, 1, "i8"},
      {{SHARDRT_DL_UINT, 8, 1}, SHARDRT_U8, 1, "u8"},
      {{SHARDRT_DL_BOOL, 8, 1}, SHARDRT_BOOL, 1, "bool"},
  };
  *n = sizeof pairs / sizeof *pairs;
  return pairs;
}

/* ---- From DLPack ---- */

/* What a tensor is to be. */
typedef struct shardrt_dlpack_use {
  int32_t device_type; /* where the program computes: SHARDRT_DL_CPU or SHARDRT_DL_CUDA */
  int32_t device_id;   /* number of its device; -1: memory of other devices is copied */
  int32_t scope;       /* SHARDRT_LOCAL, _GLOBAL, _SHARED or _ROOT */
  int32_t is_output;   /* it is written */
} shardrt_dlpack_use;

static inline const char *shardrt_dlpack_device_name(int32_t device_type) {
  static const char *const names[] = {NULL,      "CPU",
                                      "CUDA",    "CUDA's pinned host memory",
                                      "OpenCL",  "Vulkan",
                                      NULL,      NULL,
                                      "Metal",   "VPI",
                                      "ROCm",    "ROCm's pinned host memory",
                                      "ExtDev",  "CUDA's managed memory",
                                      "oneAPI",  "WebGPU",
                                      "Hexagon", "MAIA"};
  const int32_t n = (int32_t)(sizeof names / sizeof *names);
  const char *name = device_type >= 0 && device_type < n ? names[device_type] : NULL;
  return name ? name : "an unknown device";
}

/* A view of a tensor, whose extents and strides it points to: the tensor outlives it. Returns
 * SHARDRT_INVALID_ARGUMENT with a message (of at most `message_bytes`; may be NULL) of why this
 * cannot be an argument: its element type, lanes, device, address or shape. */
static inline shardrt_status shardrt_dlpack_view(const shardrt_dl_tensor *tensor,
                                                 const shardrt_dlpack_use *use,
                                                 shardrt_tensor *view, char *message,
                                                 size_t message_bytes) {
  char unused[1];
  const shardrt_dlpack_pair *pairs, *type = NULL;
  size_t n, i;
  int32_t d, is_empty = 0, device_type;
  uintptr_t address;
  if (!message || message_bytes == 0) {
    message = unused;
    message_bytes = sizeof unused;
  }
#define SHARDRT_DLPACK_REFUSE(...)                                                                 \
  return snprintf(message, message_bytes, __VA_ARGS__), SHARDRT_INVALID_ARGUMENT
  if (!tensor || !use || !view)
    SHARDRT_DLPACK_REFUSE("a null pointer");
  pairs = shardrt_dlpack_types(&n);
  for (i = 0; i < n; ++i)
    if (pairs[i].dl.code == tensor->dtype.code && pairs[i].dl.bits == tensor->dtype.bits)
      type = &pairs[i];
  if (tensor->dtype.lanes != 1)
    SHARDRT_DLPACK_REFUSE("its elements are vectors of %u lanes, and programs have scalars only",
                          (unsigned)tensor->dtype.lanes);
  if (!type)
    SHARDRT_DLPACK_REFUSE("its element type (code %u, %u bits) is none of f32, f64, f16, bf16, "
                          "i64, i32, i16, i8, u8 and bool",
                          (unsigned)tensor->dtype.code, (unsigned)tensor->dtype.bits);
  if (tensor->ndim < 0 || tensor->ndim > SHARDRT_MAX_RANK)
    SHARDRT_DLPACK_REFUSE("it has %d dims, and programs have at most %d", (int)tensor->ndim,
                          SHARDRT_MAX_RANK);
  if (tensor->ndim > 0 && !tensor->shape)
    SHARDRT_DLPACK_REFUSE("it has %d dims, and no shape", (int)tensor->ndim);
  for (d = 0; d < tensor->ndim; ++d) {
    if (tensor->shape[d] < 0)
      SHARDRT_DLPACK_REFUSE("dim %d has %lld elements", (int)d, (long long)tensor->shape[d]);
    is_empty |= tensor->shape[d] == 0;
  }
  device_type = tensor->device.device_type;
  if (device_type == SHARDRT_DL_CUDA && use->device_type != SHARDRT_DL_CUDA)
    SHARDRT_DLPACK_REFUSE("it lies on CUDA device %d, and the program computes on the CPU",
                          (int)tensor->device.device_id);
  if (device_type == SHARDRT_DL_CUDA && use->device_id >= 0 &&
      tensor->device.device_id != use->device_id)
    SHARDRT_DLPACK_REFUSE("it lies on CUDA device %d, and the program computes on device %d",
                          (int)tensor->device.device_id, (int)use->device_id);
  if (device_type != SHARDRT_DL_CPU && device_type != SHARDRT_DL_CUDA &&
      device_type != SHARDRT_DL_CUDA_HOST && device_type != SHARDRT_DL_CUDA_MANAGED)
    SHARDRT_DLPACK_REFUSE("it lies on %s (device type %d), and programs use memory of the CPU and "
                          "of CUDA",
                          shardrt_dlpack_device_name(device_type), (int)device_type);
  if (!tensor->data && !is_empty)
    SHARDRT_DLPACK_REFUSE("its data is a null pointer");
  address = tensor->data ? (uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset : 0;
  if (address % (uintptr_t)type->bytes)
    SHARDRT_DLPACK_REFUSE("its address 0x%llx is no multiple of the %d bytes of %s",
                          (unsigned long long)address, (int)type->bytes, type->name);
  if (use->is_output && tensor->strides)
    for (d = 0; d < tensor->ndim; ++d)
      if (tensor->shape[d] > 1 && tensor->strides[d] < 1)
        SHARDRT_DLPACK_REFUSE("it is an output, and dim %d has stride %lld", (int)d,
                              (long long)tensor->strides[d]);
#undef SHARDRT_DLPACK_REFUSE
  memset(view, 0, sizeof *view);
  view->data = (void *)address;
  view->type = type->type;
  view->rank = tensor->ndim;
  view->extents = tensor->shape;
  view->strides = tensor->strides;
  view->scope = use->scope;
  return SHARDRT_OK;
}

/* The same of the two that a producer hands out. */
static inline shardrt_status shardrt_dlpack_view_managed(const shardrt_dl_managed *managed,
                                                         const shardrt_dlpack_use *use,
                                                         shardrt_tensor *view, char *message,
                                                         size_t message_bytes) {
  return shardrt_dlpack_view(managed ? &managed->tensor : NULL, use, view, message, message_bytes);
}
static inline shardrt_status shardrt_dlpack_view_versioned(const shardrt_dl_versioned *versioned,
                                                           const shardrt_dlpack_use *use,
                                                           shardrt_tensor *view, char *message,
                                                           size_t message_bytes) {
  /* Of other major versions only the version and the deleter are known. */
  if (versioned && versioned->version.major != SHARDRT_DL_MAJOR) {
    if (message && message_bytes)
      snprintf(message, message_bytes, "it is of DLPack %u.%u, and this knows %d.x",
               (unsigned)versioned->version.major, (unsigned)versioned->version.minor,
               (int)SHARDRT_DL_MAJOR);
    return SHARDRT_INVALID_ARGUMENT;
  }
  if (versioned && use && use->is_output && (versioned->flags & SHARDRT_DL_READ_ONLY)) {
    if (message && message_bytes)
      snprintf(message, message_bytes, "it is an output, and read-only");
    return SHARDRT_INVALID_ARGUMENT;
  }
  return shardrt_dlpack_view(versioned ? &versioned->tensor : NULL, use, view, message,
                             message_bytes);
}

/* ---- To DLPack ---- */

/* Called once, when the consumer has no more use for the memory; may be NULL. */
typedef void (*shardrt_dlpack_release_fn)(void *context, void *data);

typedef struct shardrt_dlpack_owner {
  shardrt_dl_managed managed;
  shardrt_dl_versioned versioned;
  shardrt_dlpack_release_fn release;
  void *context;
  void *data;
  int64_t shape[SHARDRT_MAX_RANK], strides[SHARDRT_MAX_RANK];
} shardrt_dlpack_owner;

static inline void shardrt_dlpack_end(shardrt_dlpack_owner *owner) {
  if (owner->release)
    owner->release(owner->context, owner->data);
  free(owner);
}
static inline void shardrt_dlpack_end_managed(shardrt_dl_managed *self) {
  shardrt_dlpack_end((shardrt_dlpack_owner *)self->manager);
}
static inline void shardrt_dlpack_end_versioned(shardrt_dl_versioned *self) {
  shardrt_dlpack_end((shardrt_dlpack_owner *)self->manager);
}

/* The caller's memory, an output of shardrt_run for example, as a tensor of DLPack in one of the
 * two forms (the other argument is NULL), whose deleter calls `release`. The memory stays the
 * caller's until then. Its device is where it is: SHARDRT_DL_CPU, _CUDA, _CUDA_HOST or
 * _CUDA_MANAGED. Returns SHARDRT_INVALID_ARGUMENT for a view that is none, or
 * SHARDRT_OUT_OF_MEMORY; nothing is released then. */
static inline shardrt_status shardrt_dlpack_wrap(const shardrt_tensor *view,
                                                 shardrt_dl_device device,
                                                 shardrt_dlpack_release_fn release, void *context,
                                                 shardrt_dl_managed **managed,
                                                 shardrt_dl_versioned **versioned) {
  const shardrt_dlpack_pair *pairs, *type = NULL;
  shardrt_dlpack_owner *owner;
  shardrt_dl_tensor *tensor;
  int64_t dense = 1;
  size_t n, i;
  int32_t d;
  pairs = shardrt_dlpack_types(&n);
  for (i = 0; view && i < n; ++i)
    if (pairs[i].type == view->type)
      type = &pairs[i];
  if (!type || view->rank < 0 || view->rank > SHARDRT_MAX_RANK ||
      (view->rank > 0 && !view->extents) || !managed == !versioned)
    return SHARDRT_INVALID_ARGUMENT;
  owner = (shardrt_dlpack_owner *)calloc(1, sizeof *owner);
  if (!owner)
    return SHARDRT_OUT_OF_MEMORY;
  owner->release = release;
  owner->context = context;
  owner->data = view->data;
  for (d = view->rank; d-- > 0;) {
    owner->shape[d] = view->extents[d];
    owner->strides[d] = view->strides ? view->strides[d] : dense;
    dense *= view->extents[d];
  }
  tensor = managed ? &owner->managed.tensor : &owner->versioned.tensor;
  tensor->data = view->data;
  tensor->device = device;
  tensor->ndim = view->rank;
  tensor->dtype = type->dl;
  tensor->shape = owner->shape;
  tensor->strides = owner->strides;
  if (managed) {
    owner->managed.manager = owner;
    owner->managed.deleter = shardrt_dlpack_end_managed;
    *managed = &owner->managed;
  } else {
    owner->versioned.version.major = SHARDRT_DL_MAJOR;
    owner->versioned.version.minor = SHARDRT_DL_MINOR;
    owner->versioned.manager = owner;
    owner->versioned.deleter = shardrt_dlpack_end_versioned;
    *versioned = &owner->versioned;
  }
  return SHARDRT_OK;
}

#ifdef __cplusplus
}
#endif
#endif /* SHARDRT_DLPACK_H */
