// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops of plan functions, which compute where buffers lie whose sizes depend on symbols.

#ifndef SHARDC_DIALECTS_EXEC_PLANOPS_TD
#define SHARDC_DIALECTS_EXEC_PLANOPS_TD

include "dialects/exec/ExecBase.td"

def Exec_SetOffsetOp : Exec_Op<"set_offset"> {
  let summary = "Sets the offset of a buffer in the arena, by its slot";
  let description = [{
    The offset is in bytes. A plan function sets the offset of each slot once.

    ```mlir
    exec.set_offset %offset slot 3
    ```
  }];
  let arguments = (ins Index:$offset, ConfinedAttr<I64Attr, [IntNonNegative]>:$slot);
  let assemblyFormat = "$offset `slot` $slot attr-dict";
  let hasVerifier = 1;
}

def Exec_SetArenaBytesOp : Exec_Op<"set_arena_bytes"> {
  let summary = "Sets the size of the arena";
  let description = [{
    A plan function does this once, for all its buffers.

    ```mlir
    exec.set_arena_bytes %bytes
    ```
  }];
  let arguments = (ins Index:$bytes);
  let assemblyFormat = "$bytes attr-dict";
  let hasVerifier = 1;
}

#endif // SHARDC_DIALECTS_EXEC_PLANOPS_TD
