option(BODEGA_BUILD_TESTS "Build the tests" ON)
option(BODEGA_BUILD_BENCH "Build the micro-benchmarks and the load generator" ON)
option(BODEGA_BUILD_FUZZERS "Build the libFuzzer targets (clang only)" OFF)
option(BODEGA_KERNELS_ONLY "Only what links without MLX and other libraries: kernels, sampler, their tests" OFF)
set(BODEGA_SANITIZE "" CACHE STRING "Value for -fsanitize=, e.g. address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# A row's bits may not depend on which template instance computed it, so the compiler never contracts
# a multiply and an add on its own: fma is written out where it is meant.
add_library(bodega_flags INTERFACE)
target_compile_options(bodega_flags INTERFACE
  -Wall -Wextra -Wpedantic -Werror -ffp-contract=off -fno-fast-math)
target_include_directories(bodega_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
# A target with the property BODEGA_PLAIN is left without instrumentation where that would only cost
# minutes: by the thread sanitizer and in the fuzzers' builds.
set(instrumented $<NOT:$<BOOL:$<TARGET_PROPERTY:BODEGA_PLAIN>>>)
if(BODEGA_SANITIZE)
  if(NOT BODEGA_BUILD_FUZZERS AND NOT BODEGA_SANITIZE STREQUAL "thread")
    set(instrumented 1)
  endif()
  target_compile_options(bodega_flags INTERFACE
    $<${instrumented}:-fsanitize=${BODEGA_SANITIZE}> -fno-omit-frame-pointer -g)
  target_link_options(bodega_flags INTERFACE -fsanitize=${BODEGA_SANITIZE})
endif()
if(BODEGA_BUILD_FUZZERS)
  # Every folder tells the fuzzer which branches it reaches.
  target_compile_options(bodega_flags INTERFACE $<${instrumented}:-fsanitize=fuzzer-no-link>)
endif()
