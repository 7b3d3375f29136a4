bodega_fuzz(template SEEDS ${CMAKE_SOURCE_DIR}/tests/golden/text/templates STAGES base text)
