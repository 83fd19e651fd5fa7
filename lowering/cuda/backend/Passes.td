// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_CUDA_BACKEND_PASSES_TD
#define SHARDC_LOWERING_CUDA_BACKEND_PASSES_TD

include "mlir/Pass/PassBase.td"

def CudaEmbedConstants : Pass<"cuda-embed-constants", "::mlir::ModuleOp"> {
  let summary = "Makes parameters of constants that entries use";
  let description = [{
    A constant is data of the host, which kernels of a device do not reach. It becomes a parameter of the program, whose data
    is part of the artifact: the runtime brings it to the device once, as it does with weights.

    Before:
    ```mlir
    module attributes {exec.program = {mesh = {axes = [{name = "tp", size = 2} ]}, parameters = []}} {
      memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]>
      func.func @f(%y: memref<2xf32> {exec.argument = #exec.argument<output>}) attributes {exec.arena_bytes = 0 : i64, exec.entry} {
        %x = memref.get_global @table : memref<2xf32>
        exec.launch @copy(%x, %y) : memref<2xf32>, memref<2xf32>
        return
      }
      func.func private @copy(%x: memref<2xf32>, %y: memref<2xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
        linalg.copy ins(%x : memref<2xf32>) outs(%y : memref<2xf32>)
        return
      }
    }
    ```
    After, in part:
    ```mlir
    module attributes {exec.program = {..., parameters = [{constant = true, data = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>, layout = "[R]", mutable = false, names = ["constant:table"], shape = [2], ...
      func.func @f(%y: memref<2xf32> {exec.argument = #exec.argument<output>, exec.index = 0 : i64}, %x: memref<2xf32> {exec.argument = #exec.argument<parameter>, exec.index = 0 : i64}) ...
        exec.launch @copy(%x, %y) : memref<2xf32>, memref<2xf32>
    ```
  }];
  let dependentDialects = ["::shardc::exec::ExecDialect"];
  let statistics = [Statistic<"constants", "constants", "Constants that became parameters">];
}

def CudaOutlineKernels : Pass<"cuda-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Makes functions of the device from launches, and gives kernels their binary interface";
  let description = [{
    A kernel in device-launch form is a function of the host with launches in it (docs/cuda.md). The body of each launch
    becomes a function of one `gpu.module`, whose arguments are the values that the body uses: of memory a pointer to its
    first element (`memref<T>`), marked `llvm.noalias` and, where the kernel does not write it, `llvm.readonly`, and one index for each size, stride and offset that is not static; a
    bit as a byte. The kernel keeps the launch (`gpu.launch_func`), and its own arguments become those that the
    host program calls it with: the frame of the run and the location come first.

    Shared memory of up to 48 KiB stays static. What needs more gets all of it as dynamic shared memory, whose size the kernel's
    table says. Buffers that the kernel allocates are memory of the device that the runtime keeps (`exec.scratch`). A grid that
    is computed, and has more blocks than a device takes, is a failure of the run.

    What a device cannot launch is refused, all at once: blocks of unknown size or of more than 1024 threads, more than
    99 KiB of shared memory (what all devices from sm_80 on have), clusters, asynchronous launches.

    Before:
    ```mlir
    func.func private @copy(%x: memref<?xf32>, %y: memref<?xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c256 = arith.constant 256 : index
      %n = memref.dim %x, %c0 : memref<?xf32>
      %blocks = arith.ceildivui %n, %c256 : index
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
        %first = arith.muli %bx, %c256 : index
        %i = arith.addi %first, %tx : index
        %inside = arith.cmpi ult, %i, %n : index
        scf.if %inside {
          %a = memref.load %x[%i] : memref<?xf32>
          memref.store %a, %y[%i] : memref<?xf32>
        }
        gpu.terminator
      }
      return
    }
    ```
    After, in part:
    ```mlir
    func.func private @copy(%frame: !llvm.ptr, %location: !llvm.ptr, %x: memref<f32> {llvm.noalias}, %nx: index, %y: memref<f32> {llvm.noalias}, %ny: index) attributes {exec.kernel, exec.outlined, exec.writes = array<i64: 4>} {
      ...
      exec.fail_if %too_many, "more elements than a launch has blocks for"
      %blocks = arith.minui ...
      gpu.launch_func @kernels::@copy blocks in (%blocks, %one, %one) threads in (%c256, %one, %one) args(...
    gpu.module @kernels {
      gpu.func @copy(...: memref<f32> {llvm.noalias, llvm.readonly}, ...) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    ```
  }];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::LLVM::LLVMDialect"];
  let statistics = [Statistic<"launches", "launches", "Launches that became functions of the device">,
                    Statistic<"numDynamic", "dynamic-shared", "Functions with dynamic shared memory">,
                    Statistic<"scratch", "scratch", "Buffers of kernels in the device's memory">];
}

def CudaMergeFunctions : Pass<"cuda-merge-functions", "::mlir::ModuleOp"> {
  let summary = "Keeps one of functions of the device that are equal";
  let description = [{
    Kernels that differ may launch the same function: a reduction in two steps, say, of which the second is alike in many kernels.

    Before:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @kernels {
        gpu.func @a(%x: memref<f32>) kernel {
          gpu.return
        }
        gpu.func @b(%x: memref<f32>) kernel {
          gpu.return
        }
      }
      func.func private @k(%x: memref<f32>) {
        %c1 = arith.constant 1 : index
        gpu.launch_func @kernels::@a blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<f32>)
        gpu.launch_func @kernels::@b blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<f32>)
        return
      }
    }
    ```
    After:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @kernels {
        gpu.func @a(%x: memref<f32>) kernel {
          gpu.return
        }
      }
      func.func private @k(%x: memref<f32>) {
        %c1 = arith.constant 1 : index
        gpu.launch_func @kernels::@a blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<f32>)
        gpu.launch_func @kernels::@a blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<f32>)
        return
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
  let statistics = [Statistic<"merged", "merged", "Functions that equal an earlier one">];
}

def CudaNarrowIndices : Pass<"cuda-narrow-indices", "::mlir::ModuleOp"> {
  let summary = "Lets functions of the device compute indices in 32 bits where these are enough";
  let description = [{
    Registers of a device have 32 bits: an index of 64 takes two, and arithmetic on it several instructions. A function is
    marked (`narrow_indices`) where every index in it, every number that indices are computed from, and every offset into its
    memory, in elements, is less than 2^31 in magnitude, so that 32 bits with sign give what 64 bits give. Bounds follow from the
    sizes of the launch, of its grid and of memory.

    Sizes that are known when the program runs make bounds that the host computes in front of the launch. The function then has
    a variant for 32 bits, and the host launches the one that the bounds allow. What is computed from data, or from one turn of
    a loop to the next, has no bound, and its function keeps 64 bits; only positions in memory need none, as accesses are in range.
    Parameters stay 64 bits.

    Before:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @kernels {
        gpu.func @k(%x: memref<f32>, %n: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
          %t = gpu.thread_id x
          %b = gpu.block_id x
          %at = arith.muli %b, %n : index
          %i = arith.addi %at, %t : index
          %memory = memref.reinterpret_cast %x to offset: [0], sizes: [4096], strides: [1] : memref<f32> to memref<4096xf32>
          %v = memref.load %memory[%i] : memref<4096xf32>
          gpu.return
        }
      }
      func.func private @f(%x: memref<f32>, %n: index, %blocks: index) {
        %c1 = arith.constant 1 : index
        %c32 = arith.constant 32 : index
        gpu.launch_func @kernels::@k blocks in (%blocks, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<f32>, %n : index)
        return
      }
    }
    ```
    After, in part:
    ```mlir
    gpu.func @k_narrow(%x: memref<f32>, %wide: i64) kernel attributes {known_block_size = array<i32: 32, 1, 1>, narrow_indices} {
      %n = arith.index_cast %wide : i64 to index
    ...
    %span = arith.muli %blocks, %size : index
    ...
    %fits = arith.cmpi ule, %span, %most : index
    ...
    scf.if %all {
      %passed = arith.index_cast %size : index to i64
      gpu.launch_func @kernels::@k_narrow blocks in ...
    } else {
      gpu.launch_func @kernels::@k blocks in ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"narrowed", "narrowed", "Functions whose indices have 32 bits">,
                    Statistic<"variants", "variants", "Of these, the ones that exist for 64 bits too">,
                    Statistic<"wide", "wide", "Functions with indices that have 64 bits only">];
}

def CudaConvertHost : Pass<"cuda-convert-host", "::mlir::ModuleOp"> {
  let summary = "Converts the host's part of kernels to LLVM's dialect";
  let description = [{
    A `gpu.launch_func` becomes a call of the runtime's service `launch`, with a shardrt_launch on the stack
    (runtime/abi/shardrt_program.h): the number of the kernel, its grid, and the addresses of its parameters. The number is that
    of the function among the functions of the `gpu.module`, which is the order of the program's table.

    Before:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @kernels {
        gpu.func @relu(%x: memref<f32>, %n: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
          gpu.return
        }
      }
      func.func private @k(%frame: !llvm.ptr, %location: !llvm.ptr, %x: memref<f32>, %n: index)
          attributes {exec.kernel, exec.outlined, exec.writes = array<i64: 2>} {
        %c1 = arith.constant 1 : index
        %c256 = arith.constant 256 : index
        gpu.launch_func @kernels::@relu blocks in (%n, %c1, %c1) threads in (%c256, %c1, %c1) args(%x : memref<f32>, %n : index)
        return
      }
    }
    ```
    After, in part:
    ```mlir
    llvm.func @k(%frame: !llvm.ptr, %location: !llvm.ptr, %x: !llvm.ptr, %n: i64) attributes {exec.kernel, ...
      %list_at = llvm.getelementptr %launch[8] : (!llvm.ptr) -> !llvm.ptr, i8
      llvm.store %list, %list_at : !llvm.ptr, !llvm.ptr
      %kernel_at = llvm.getelementptr %launch[16] : (!llvm.ptr) -> !llvm.ptr, i8
      llvm.store %number, %kernel_at : i32, !llvm.ptr
      %blocks = llvm.trunc %n : i64 to i32
      %grid_at = llvm.getelementptr %launch[20] : (!llvm.ptr) -> !llvm.ptr, i8
      llvm.store %blocks, %grid_at : i32, !llvm.ptr
      %status = llvm.call %service(%runtime, %launch) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> i32
      llvm.return
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let statistics = [Statistic<"functions", "functions", "Functions converted">];
}

def CudaLowerChecks : Pass<"cuda-lower-checks", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Gives functions of the device the run's error word, and writes failed checks to it";
  let description = [{
    Every kernel gets two more parameters, which come first: the address of the error word of the run, and the number of the
    launch. An `exec.fail_if` becomes a compare-and-swap of the word with 0, so that the first failure is kept; what it writes is
    the number of the launch and of the message, and the messages of each kernel are its attribute `exec.messages`.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%x: memref<i64>) kernel {
        %zero = arith.constant 0 : i64
        %i = memref.load %x[] : memref<i64>
        %bad = arith.cmpi slt, %i, %zero : i64
        exec.fail_if %bad, "index out of range"
        gpu.return
      }
    }
    ```
    After, in part:
    ```mlir
    gpu.func @k(%word: !llvm.ptr, %launch: i32, %x: memref<i64>) kernel attributes {exec.messages = ["index out of range"]} {
      scf.if %bad {
        %wide = arith.extui %launch : i32 to i64
        %one = arith.constant 1 : i64
        %number = arith.addi %wide, %one : i64
        %bits = arith.constant 32 : i64
        %high = arith.shli %number, %bits : i64
        %message = arith.constant 0 : i64
        %code = arith.ori %high, %message : i64
        %none = arith.constant 0 : i64
        %old = llvm.cmpxchg %word, %none, %code monotonic monotonic : !llvm.ptr, i64
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numChecks", "checks", "Checks that write to the error word">];
}

def CudaExpandDeviceOps : Pass<"cuda-expand-device-ops", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Expands reductions among threads and vectors of several dims";
  let description = [{
    A `gpu.subgroup_reduce` becomes shuffles among the 32 threads of a warp, which combine in one order (a butterfly), so that
    all of them get the same bits. Vector ops of several dims become ops on vectors of one. Memory of a thread that is
    allocated in a loop is allocated once.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%x: memref<f32>) kernel {
        %a = memref.load %x[] : memref<f32>
        %s = gpu.subgroup_reduce add %a : (f32) -> f32
        memref.store %s, %x[] : memref<f32>
        gpu.return
      }
    }
    ```
    After, in part:
    ```mlir
    %a = memref.load %x[] : memref<f32>
    %b, ... = gpu.shuffle xor %a, ...
    %c = arith.addf %a, %b : f32
    %d, ... = gpu.shuffle xor %c, ...
    %e = arith.addf %c, %d : f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::vector::VectorDialect", "::mlir::ub::UBDialect"];
  let statistics = [Statistic<"hoisted", "hoisted", "Allocations that left a loop">];
}

def CudaConvertDevice : Pass<"cuda-convert-device", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Converts functions of the device to the dialects of LLVM and NVVM";
  let description = [{
    Indices are 64 bits, or 32 in the functions that `cuda-narrow-indices` marked. Functions that a chip has exact instructions for (a root, a rounding) become LLVM's intrinsics;
    the others (exp, tanh, a remainder) become calls of NVIDIA's libdevice, which are accurate to a few units in the last
    place. No fast-math flag is added. Ops that cannot be converted are reported, of all functions at once.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%word: !llvm.ptr, %launch: i32, %x: memref<f32> {llvm.noalias}) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
        %a = memref.load %x[] : memref<f32>
        %e = math.exp %a : f32
        %r = math.sqrt %e : f32
        memref.store %r, %x[] : memref<f32>
        gpu.return
      }
    }
    ```
    After, in part:
    ```mlir
    llvm.func @k(%word: !llvm.ptr, %launch: i32, %x: !llvm.ptr {llvm.noalias}) attributes {gpu.kernel, ...nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
      ...
      %a = llvm.load ...
      %e = llvm.call @__nv_expf(%a) : (f32) -> f32
      %r = llvm.intr.sqrt(%e) : (f32) -> f32
      ...
      llvm.store %r, ...
      llvm.return
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
  let statistics = [Statistic<"functions", "functions", "Functions converted">];
}

#endif // SHARDC_LOWERING_CUDA_BACKEND_PASSES_TD
