bodega_fuzz(gguf SEEDS ${CMAKE_SOURCE_DIR}/tests/golden/model/gguf_q4_0 STAGES model)
