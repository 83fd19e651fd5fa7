// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/OrderedReduction.h"

#include "runtime/plugins/cuda/ReductionText.h"

namespace shardc::plugin::cuda {

namespace {

constexpr unsigned threads = 256;

} // namespace

std::string reductionPtx(shardrt_type type, uint32_t reduction) {
  const ReductionText text = reductionTextPtx(type, reduction);
  return fillText(R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry reduce(.param .u64 out, .param .u64 own, .param .u64 blocks, .param .u64 count,
                       .param .u64 stride, .param .u32 n, .param .u32 p)
{
 .reg .pred %outside, %isown, %isfirst, %more, %better, %isnan;
 .reg .b16 %h, %zero;
 .reg .b32 %block, %size, %thread, %n, %p, %q;
 .reg .b64 %out, %own, %blocks, %count, %stride, %i, %wide, %offset, %base, %at;
 .reg .$t %v, %a, %o;
 ld.param.u64 %out, [out];
 ld.param.u64 %own, [own];
 ld.param.u64 %blocks, [blocks];
 ld.param.u64 %count, [count];
 ld.param.u64 %stride, [stride];
 ld.param.u32 %n, [n];
 ld.param.u32 %p, [p];
 cvta.to.global.u64 %out, %out;
 cvta.to.global.u64 %own, %own;
 cvta.to.global.u64 %blocks, %blocks;
 mov.u16 %zero, 0;
 mov.u32 %block, %ctaid.x;
 mov.u32 %size, %ntid.x;
 mov.u32 %thread, %tid.x;
 mul.wide.u32 %i, %block, %size;
 cvt.u64.u32 %wide, %thread;
 add.s64 %i, %i, %wide;
 setp.ge.u64 %outside, %i, %count;
 @%outside ret;
 mul.lo.s64 %offset, %i, $bytes;
 mov.u32 %q, 0;
loop:
 cvt.u64.u32 %wide, %q;
 mul.lo.s64 %wide, %wide, %stride;
 add.s64 %base, %blocks, %wide;
 setp.eq.u32 %isown, %q, %p;
 selp.b64 %base, %own, %base, %isown;
 add.s64 %at, %base, %offset;
 $load
 $combine
 add.s32 %q, %q, 1;
 setp.lt.u32 %more, %q, %n;
 @%more bra loop;
 $finish
 add.s64 %at, %out, %offset;
 $store
 ret;
}
)",
                  {{"$load", text.load},
                   {"$combine", text.combine},
                   {"$finish", text.finish},
                   {"$store", text.store},
                   {"$bytes", std::to_string(elementBytes(type))},
                   {"$t", text.type}});
}

std::string reductionIr(shardrt_type type, uint32_t reduction) {
  const ReductionText text = reductionTextIr(type, reduction);
  return fillText(R"(target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define ptx_kernel void @reduce(ptr %out, ptr %own, ptr %blocks, i64 %count, i64 %stride, i32 %n, i32 %p) {
entry:
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %blockw = zext i32 %block to i64
  %sizew = zext i32 %size to i64
  %threadw = zext i32 %thread to i64
  %before.i = mul i64 %blockw, %sizew
  %i = add i64 %before.i, %threadw
  %inside = icmp ult i64 %i, %count
  br i1 %inside, label %body, label %exit
body:
  %offset = mul i64 %i, $bytes
  br label %loop
loop:
  %q = phi i32 [ 0, %body ], [ %later, %loop ]
  %a = phi $t [ $zero, %body ], [ %next, %loop ]
  %isown = icmp eq i32 %q, %p
  %qw = zext i32 %q to i64
  %distance = mul i64 %qw, %stride
  %other = getelementptr i8, ptr %blocks, i64 %distance
  %base = select i1 %isown, ptr %own, ptr %other
  %at = getelementptr i8, ptr %base, i64 %offset
$load$combine  %isfirst = icmp eq i32 %q, 0
  %next = select i1 %isfirst, $t %v, $t %o
  %later = add i32 %q, 1
  %more = icmp ult i32 %later, %n
  br i1 %more, label %loop, label %last
last:
$finish  %to = getelementptr i8, ptr %out, i64 %offset
$store  br label %exit
exit:
  ret void
}
)",
                  {{"$load", text.load},
                   {"$combine", text.combine},
                   {"$finish", text.finish},
                   {"$store", text.store},
                   {"$bytes", std::to_string(elementBytes(type))},
                   {"$zero", text.zero},
                   {"$t", text.type}});
}

OrderedReduction::~OrderedReduction() {
  for (auto &[what, loaded] : kernels)
    device.driver().moduleUnload(loaded.module);
}

FunctionHandle OrderedReduction::kernel(shardrt_type type, uint32_t reduction) {
  Loaded &loaded = kernels[{type, reduction}];
  if (loaded.function)
    return loaded.function;
  const Driver &driver = device.driver();
  if (device.isEmulated()) {
    std::string text = reductionIr(type, reduction);
    device.check(driver.loadBitcode(&loaded.module, text.c_str(), text.size() + 1),
                 "loading a reduction");
  } else {
    std::string text = reductionPtx(type, reduction);
    device.check(driver.moduleLoad(&loaded.module, text.c_str(), 0, nullptr, nullptr),
                 "loading a reduction");
  }
  device.check(driver.moduleFunction(&loaded.function, loaded.module, "reduce"),
               "loading a reduction");
  return loaded.function;
}

void OrderedReduction::run(shardrt_type type, uint32_t reduction, char *out, const Blocks &blocks,
                           uint64_t count, StreamHandle stream) {
  if (count == 0)
    return;
  uint64_t stride = blocks.stride;
  Blocks values = blocks;
  void *params[] = {&out, &values.own, &values.others, &count, &stride, &values.n, &values.p};
  const uint64_t grid = (count + threads - 1) / threads;
  if (grid > 0x7fffffff)
    throw Failure{SHARDRT_INCOMPATIBLE,
                  "a reduction of " + std::to_string(count) + " elements is too large"};
  device.check(device.driver().launch(kernel(type, reduction), unsigned(grid), 1, 1, threads, 1, 1,
                                      0, stream, params, nullptr),
               "a reduction");
}

} // namespace shardc::plugin::cuda
