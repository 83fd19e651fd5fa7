# Python with PyTorch: schema defaults come from its operator registry at build time, and tests compare
# with it. The set-up scripts put it in .venv; another one can be given as SHARDC_PYTHON.
if(NOT SHARDC_PYTHON)
  if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
    set(SHARDC_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  else()
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    set(SHARDC_PYTHON ${Python3_EXECUTABLE})
  endif()
endif()
execute_process(
  COMMAND ${SHARDC_PYTHON} -c "import importlib.metadata as m; print(m.version('torch'))"
  OUTPUT_VARIABLE SHARDC_TORCH_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR
    "${SHARDC_PYTHON} has no PyTorch, which the importer of .pt2 needs at build time for the operators' default "
    "arguments. Run scripts/setup.sh, or install it (pip install torch==2.13.0) and give the interpreter as "
    "-DSHARDC_PYTHON=PATH. To build the runtime alone, use -DSHARDC_COMPILER=OFF.")
endif()
