// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_DIALECTS_EXEC_TYPES_TD
#define SHARDC_DIALECTS_EXEC_TYPES_TD

include "dialects/exec/ExecBase.td"

def Exec_TokenType : Exec_Type<"Token", "token"> {
  let summary = "Stands for a collective in flight";
  let description = [{
    A token is the result of `exec.start`. It can only be waited for, at most once (`exec.wait`); until
    then the memory of the collective's inputs and outputs is in use.

    ```mlir
    %t = exec.start all_reduce sum over #tp (...) -> (...)
    exec.wait %t
    ```
  }];
}

#endif // SHARDC_DIALECTS_EXEC_TYPES_TD
