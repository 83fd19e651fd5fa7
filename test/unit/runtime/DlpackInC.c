/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The header in C. */
#include "runtime/include/shardrt_dlpack.h"

int shardrtDlpackInC(void);
int shardrtDlpackInC(void) {
  int64_t extent = 2;
  double data[2] = {1, 2};
  shardrt_dl_device device = {SHARDRT_DL_CPU, 0};
  shardrt_tensor view = {data, SHARDRT_F64, 1, &extent, NULL, SHARDRT_GLOBAL, 0, NULL}, back;
  shardrt_dlpack_use use = {SHARDRT_DL_CPU, -1, SHARDRT_GLOBAL, 1};
  shardrt_dl_managed *managed = NULL;
  int same;
  if (shardrt_dlpack_wrap(&view, device, NULL, NULL, &managed, NULL) != SHARDRT_OK)
    return 0;
  same = shardrt_dlpack_view_managed(managed, &use, &back, NULL, 0) == SHARDRT_OK &&
         back.data == data && back.type == SHARDRT_F64 && back.extents[0] == 2;
  managed->deleter(managed);
  return same;
}
