# Writes OUTPUT, a C++ file that holds the kernel sources of FOLDER as strings. Long ones are cut: a
# string literal has a limit.
function(literal result file)
  file(READ ${FOLDER}/${file} text)
  string(REPLACE "#pragma once\n" "" text "${text}")
  string(LENGTH "${text}" length)
  set(all "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 part)
    string(APPEND all "    R\"cuda(${part})cuda\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  set(${result} "${all}" PARENT_SCOPE)
endfunction()

literal(args args.h)
literal(common common.cuh)
literal(rows rows.cu)
literal(attention paged_attention.cu)
literal(linear quant_linear.cu)
file(WRITE ${OUTPUT} "#include \"ops/cuda/kernel_library.h\"

namespace bodega::ops::cuda {

const KernelSources kKernelSources = {
${args}${common}    ,
${rows}    ,
${attention}    ,
${linear}};

}  // namespace bodega::ops::cuda
")
