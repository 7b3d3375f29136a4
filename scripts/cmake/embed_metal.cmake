# Writes OUTPUT, a C++ file that holds the Metal sources of FOLDER: what they share (parameters, common
# functions) and each kernel's own text.
set(text "// Written by scripts/cmake/embed_metal.cmake.\n#include \"ops/metal/kernel_sources.h\"\n
namespace bodega::ops::metal {\n
std::string_view kernel_source(std::string_view file) {\n")
file(GLOB files ${FOLDER}/*)
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} source)
  string(APPEND text "  if (file == \"${name}\") return R\"metal(${source})metal\";\n")
endforeach()
string(APPEND text "  return {};\n}\n\n}  // namespace bodega::ops::metal\n")
file(WRITE ${OUTPUT} "${text}")
