bodega_fuzz(safetensors SEEDS ${CMAKE_SOURCE_DIR}/tests/golden/model/mlx_mxfp4 STAGES model)
