# MLX comes from the wheel in the virtual environment; its version is pinned in deps/requirements.txt.
set(BODEGA_PYTHON "${CMAKE_SOURCE_DIR}/.venv/bin/python" CACHE FILEPATH "Python that has the MLX wheel")
execute_process(COMMAND ${BODEGA_PYTHON} -m mlx --cmake-dir
  OUTPUT_VARIABLE BODEGA_MLX_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "No MLX in ${BODEGA_PYTHON}: run ./setup.sh first.")
endif()
list(APPEND CMAKE_PREFIX_PATH ${BODEGA_MLX_ROOT})
find_package(MLX CONFIG REQUIRED)

if(APPLE)
  # The wheel names the frameworks by their path in the Xcode of the machine that built it.
  set_target_properties(mlx PROPERTIES INTERFACE_LINK_LIBRARIES
    "-framework Metal;-framework Foundation;-framework QuartzCore;-framework Accelerate")
endif()

add_library(bodega_mlx INTERFACE)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # The Linux wheel bundles a reference BLAS twenty times slower than OpenBLAS; cblas_sgemm is looked
  # up in load order, so OpenBLAS has to come first.
  find_library(OPENBLAS_LIBRARY NAMES openblas REQUIRED)
  target_link_libraries(bodega_mlx INTERFACE -Wl,--no-as-needed ${OPENBLAS_LIBRARY} -Wl,--as-needed)
endif()
target_link_libraries(bodega_mlx INTERFACE mlx)
# MLX's headers bind lambdas, and g++ 12's std::bind names a deprecated type: clang warns of that.
target_compile_options(bodega_mlx INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
