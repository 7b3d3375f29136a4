# The part of the project that needs neither MLX nor any other library: the CPU kernels, the sampler and
# their tests. It cross-compiles with a compiler alone and runs in an emulator (preset arm64).
find_package(Threads REQUIRED)
# Debian's googletest package brings the sources; its libraries are the host's.
add_subdirectory(/usr/src/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
enable_testing()

add_library(bodega_base STATIC
  src/base/bytes.cpp src/base/cpu.cpp src/base/env.cpp src/base/thread_pool.cpp)
target_link_libraries(bodega_base PUBLIC bodega_flags Threads::Threads)
foreach(folder src/core src/ops src/sample tests/unit/ops tests/unit/sample)
  add_subdirectory(${folder})
endforeach()
