#pragma once

#include "attention_variants.h"
#include "host_gpu.h"
#include "linear_variants.h"

// What a model with 4-bit weights (groups of 64, fp16 scales) and heads of 64 asks of the GPU.

#define BODEGA_VARIANT model_half_t1_e0
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT model_half_t2_e0
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT model_half_t4_e0
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT model_half_t1_e1
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 1
#include "linear_variant.h"

#define BODEGA_VARIANT model_half_t2_e1
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 1
#include "linear_variant.h"

#define BODEGA_VARIANT model_half_t4_e1
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 1
#include "linear_variant.h"

#define BODEGA_VARIANT model_half_t1_e2
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 2
#include "linear_variant.h"

#define BODEGA_VARIANT model_half_t2_e2
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 2
#include "linear_variant.h"

#define BODEGA_VARIANT model_half_t4_e2
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 2
#include "linear_variant.h"

#define BODEGA_VARIANT model_half_t1_e4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 4
#include "linear_variant.h"

#define BODEGA_VARIANT model_half_t2_e4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 4
#include "linear_variant.h"

#define BODEGA_VARIANT model_half_t4_e4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 4
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t1_e0
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t2_e0
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t4_e0
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t1_e1
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 1
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t2_e1
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 1
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t4_e1
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 1
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t1_e2
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 2
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t2_e2
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 2
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t4_e2
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 2
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t1_e4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 4
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t2_e4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 4
#include "linear_variant.h"

#define BODEGA_VARIANT model_float_t4_e4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 4
#include "linear_variant.h"

namespace metal_host::msl {
#define BODEGA_VARIANT model_embed
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#include "embed_variant.h"
}  // namespace metal_host::msl

namespace metal_host {

inline void add_model_kernels(HostGpu& gpu) {
  const std::string linear = "bodega_quant_linear_4_0_64_0_";
  gpu.add(linear + "1_half_half2_0 prepare_rows", msl::model_half_t1_e0::prepare_rows);
  gpu.add(linear + "1_float_float2_0 prepare_rows", msl::model_float_t1_e0::prepare_rows);
  gpu.add(linear + "1_half_half2_0 quant_linear", msl::model_half_t1_e0::quant_linear);
  gpu.add(linear + "2_half_half2_0 quant_linear", msl::model_half_t2_e0::quant_linear);
  gpu.add(linear + "4_half_half2_0 quant_linear", msl::model_half_t4_e0::quant_linear);
  gpu.add(linear + "1_half_half2_1 quant_linear", msl::model_half_t1_e1::quant_linear);
  gpu.add(linear + "2_half_half2_1 quant_linear", msl::model_half_t2_e1::quant_linear);
  gpu.add(linear + "4_half_half2_1 quant_linear", msl::model_half_t4_e1::quant_linear);
  gpu.add(linear + "1_half_half2_2 quant_linear", msl::model_half_t1_e2::quant_linear);
  gpu.add(linear + "2_half_half2_2 quant_linear", msl::model_half_t2_e2::quant_linear);
  gpu.add(linear + "4_half_half2_2 quant_linear", msl::model_half_t4_e2::quant_linear);
  gpu.add(linear + "1_half_half2_4 quant_linear", msl::model_half_t1_e4::quant_linear);
  gpu.add(linear + "2_half_half2_4 quant_linear", msl::model_half_t2_e4::quant_linear);
  gpu.add(linear + "4_half_half2_4 quant_linear", msl::model_half_t4_e4::quant_linear);
  gpu.add(linear + "1_float_float2_0 quant_linear", msl::model_float_t1_e0::quant_linear);
  gpu.add(linear + "2_float_float2_0 quant_linear", msl::model_float_t2_e0::quant_linear);
  gpu.add(linear + "4_float_float2_0 quant_linear", msl::model_float_t4_e0::quant_linear);
  gpu.add(linear + "1_float_float2_1 quant_linear", msl::model_float_t1_e1::quant_linear);
  gpu.add(linear + "2_float_float2_1 quant_linear", msl::model_float_t2_e1::quant_linear);
  gpu.add(linear + "4_float_float2_1 quant_linear", msl::model_float_t4_e1::quant_linear);
  gpu.add(linear + "1_float_float2_2 quant_linear", msl::model_float_t1_e2::quant_linear);
  gpu.add(linear + "2_float_float2_2 quant_linear", msl::model_float_t2_e2::quant_linear);
  gpu.add(linear + "4_float_float2_2 quant_linear", msl::model_float_t4_e2::quant_linear);
  gpu.add(linear + "1_float_float2_4 quant_linear", msl::model_float_t1_e4::quant_linear);
  gpu.add(linear + "2_float_float2_4 quant_linear", msl::model_float_t2_e4::quant_linear);
  gpu.add(linear + "4_float_float2_4 quant_linear", msl::model_float_t4_e4::quant_linear);
  gpu.add("bodega_embed_4_0_64_0 embed", msl::model_embed::embed);
  gpu.add("bodega_rope_and_cache_write_64 rope_and_cache_write",
          msl::d64::rope::rope_and_cache_write);
  gpu.add("bodega_paged_attention_64 paged_attention", msl::d64::attention::paged_attention);
  gpu.add("bodega_paged_attention_64 fold_splits", msl::d64::attention::fold_splits);
}

}  // namespace metal_host
