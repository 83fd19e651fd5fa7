# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Targets that use MLIR. LLVM is linked as a shared library: start-up of a tool stays near 20 ms.
# LLVM's version file wants major and minor to match exactly, so the major version is checked here.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "shardc needs LLVM and MLIR 22, found ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_LINK_LLVM_DYLIB ON)
set(LLVM_EXTERNAL_LIT ${LLVM_TOOLS_BINARY_DIR}/lit)
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(SHARDC_MLIR_INCLUDES ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
# Passes are compiled with -O1 in release builds: they spend their time in LLVM's libraries, and compiling them takes
# a quarter less time. IR-free cores and the runtime keep -O3.
set(SHARDC_MLIR_FLAGS -fno-rtti -fno-exceptions ${SHARDC_WARNINGS} $<$<CONFIG:Release>:-O1>)

set(SHARDC_PCH_HEADERS
  <mlir/IR/BuiltinOps.h> <mlir/IR/BuiltinTypes.h> <mlir/IR/PatternMatch.h> <mlir/IR/OpImplementation.h>
  <mlir/IR/DialectImplementation.h> <mlir/Interfaces/InferTypeOpInterface.h> <mlir/Interfaces/SideEffectInterfaces.h>
  <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/Arith/IR/Arith.h> <mlir/Pass/Pass.h>
  <mlir/Transforms/DialectConversion.h> <llvm/ADT/TypeSwitch.h>)

# shardc_add_pch(NAME HEADERS... [TABLEGEN targets...])
# Adds a precompiled header of SHARDC_PCH_HEADERS and HEADERS, of which TABLEGEN generate parts. A folder whose targets are to
# use it sets SHARDC_MLIR_PCH to NAME. A file must still include all that it uses, so that it compiles without the header too.
function(shardc_add_pch name)
  cmake_parse_arguments(ARG "" "" "TABLEGEN" ${ARGN})
  if(NOT SHARDC_PCH)
    return()
  endif()
  add_library(${name} STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cpp)
  target_include_directories(${name} SYSTEM PUBLIC ${SHARDC_MLIR_INCLUDES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_compile_options(${name} PRIVATE ${SHARDC_MLIR_FLAGS} ${SHARDC_PCH_OPTIONS})
  target_compile_definitions(${name} PRIVATE ${LLVM_DEFINITIONS_LIST})
  target_precompile_headers(${name} PRIVATE ${SHARDC_PCH_HEADERS} ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_TABLEGEN)
    add_dependencies(${name} ${ARG_TABLEGEN})
  endif()
endfunction()

# This is the precompiled header of folders that set no other. Those behind the tensor dialects have one with the dialects
# (dialects/CMakeLists.txt).
shardc_add_pch(ShardcPch)
set(SHARDC_MLIR_PCH ShardcPch)

function(shardc_mlir_settings name)
  target_include_directories(${name} SYSTEM PUBLIC ${SHARDC_MLIR_INCLUDES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_compile_options(${name} PRIVATE ${SHARDC_MLIR_FLAGS})
  if(SHARDC_PCH)
    target_compile_options(${name} PRIVATE ${SHARDC_PCH_OPTIONS})
    target_precompile_headers(${name} REUSE_FROM ${SHARDC_MLIR_PCH})
  endif()
endfunction()

# shardc_add_mlir_library(NAME SOURCES... [DEPS targets...] [TABLEGEN targets...])
function(shardc_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;TABLEGEN" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  shardc_mlir_settings(${name})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} MLIR)
  if(ARG_TABLEGEN)
    add_dependencies(${name} ${ARG_TABLEGEN})
  endif()
endfunction()

# shardc_add_tool(NAME SOURCES... [DEPS targets...])
function(shardc_add_tool name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  shardc_mlir_settings(${name})
  # -fPIC as the libraries, not -fPIE: a precompiled header fits only one of the two.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} MLIR LLVM)
endfunction()

# shardc_add_mlir_unit_test(NAME SOURCES... [DEPS targets...])
# Does the same as shardc_add_unit_test, for tests that make IR.
function(shardc_add_mlir_unit_test name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  shardc_add_tool(${name} ${ARG_UNPARSED_ARGUMENTS} DEPS ${ARG_DEPS})
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/unit)
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# shardc_tablegen(TARGET TD_FILE  -gen-x out1 -gen-y out2 ...)
# Outputs land beside the source's path in the build tree, e.g. dialects/dist/Dist.h.inc. A dialect or
# a set of passes gets its reference page too (target shardc-docs): docs/dialects/NAME.md, docs/FOLDER.md.
function(shardc_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(args ${ARGN})
  set(TABLEGEN_OUTPUT)
  while(args)
    list(POP_FRONT args generator output)
    string(REPLACE "," ";" flags "${generator}")
    set(written ${output})
    if(generator MATCHES "^-gen-pass-decls")
      set(written ${output}.tblgen)
      add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${output}
        COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_CURRENT_BINARY_DIR}/${written}
                -DOUT=${CMAKE_CURRENT_BINARY_DIR}/${output}
                -P ${CMAKE_SOURCE_DIR}/cmake/PassStatistic.cmake
        DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${written} ${CMAKE_SOURCE_DIR}/cmake/PassStatistic.cmake
        VERBATIM)
      list(APPEND TABLEGEN_OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${output})
    endif()
    mlir_tablegen(${written} ${flags} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
    if(generator MATCHES "^-gen-dialect-decls,-dialect=(.*)$")
      shardc_reference_page(dialects/${CMAKE_MATCH_1} ${td} -gen-dialect-doc -dialect=${CMAKE_MATCH_1})
    elseif(generator MATCHES "^-gen-pass-decls")
      file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
      shardc_reference_page(${folder} ${td} -gen-pass-doc)
    endif()
  endwhile()
  add_public_tablegen_target(${target})
  set_property(GLOBAL APPEND PROPERTY SHARDC_TABLEGEN_TARGETS ${target})
endfunction()

# The reference pages of all dialects and passes, made from what their .td files say.
add_custom_target(shardc-docs ALL COMMENT "Reference pages in ${CMAKE_BINARY_DIR}/docs")
function(shardc_reference_page page td)
  set(output ${CMAKE_BINARY_DIR}/docs/${page}.md)
  get_filename_component(folder ${output} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  string(MAKE_C_IDENTIFIER ${page} id)
  add_custom_command(OUTPUT ${output}
    COMMAND ${MLIR_TABLEGEN_EXE} ${ARGN} -I ${CMAKE_CURRENT_SOURCE_DIR} -I ${CMAKE_SOURCE_DIR}
            -I ${LLVM_INCLUDE_DIR} ${td} -o ${output} -d ${output}.d
    DEPENDS ${td} DEPFILE ${output}.d
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} VERBATIM)
  add_custom_target(shardc-docs-${id} DEPENDS ${output})
  add_dependencies(shardc-docs shardc-docs-${id})
endfunction()
