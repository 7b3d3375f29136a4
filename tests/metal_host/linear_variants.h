#pragma once

#include "ops/metal/params.h"
#include "shim/buffer.h"

// Every format, kind of scale, row tile, input type and epilogue of the linear kernels at least
// once, each in a namespace of its own.
namespace metal_host::msl {

using namespace bodega::ops::metal;  // the parameters

template <class Input>
struct LinearBuffers {
  const Buffer<float>* x;
  const Buffer<int>* index;
  const Buffer<float>* norm;
  Buffer<Input>* prepared;
  Buffer<float>* sums;
  const Buffer<uchar>* weights;
  const Buffer<float>* bias;
  Buffer<float>* out;
};

}  // namespace metal_host::msl

#define BODEGA_VARIANT f4x1
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT f4x2
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT f4x4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT residual4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 32
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 1
#include "linear_variant.h"

#define BODEGA_VARIANT swiglu4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 128
#define BODEGA_SCALE 1
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 2
#include "linear_variant.h"

#define BODEGA_VARIANT geglu4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 2
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 3
#include "linear_variant.h"

#define BODEGA_VARIANT logits8
#define BODEGA_BITS 8
#define BODEGA_CODES 0
#define BODEGA_GROUP 32
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 4
#include "linear_variant.h"

#define BODEGA_VARIANT bfloat8
#define BODEGA_BITS 8
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 1
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT residual8
#define BODEGA_BITS 8
#define BODEGA_CODES 0
#define BODEGA_GROUP 128
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 1
#include "linear_variant.h"

#define BODEGA_VARIANT wide4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT wide8
#define BODEGA_BITS 8
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 2
#define BODEGA_ROW_TILES 2
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 2
#include "linear_variant.h"

#define BODEGA_VARIANT dense_half
#define BODEGA_BITS 16
#define BODEGA_CODES 0
#define BODEGA_GROUP 32
#define BODEGA_SCALE 0
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT dense_bfloat
#define BODEGA_BITS 16
#define BODEGA_CODES 0
#define BODEGA_GROUP 32
#define BODEGA_SCALE 1
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 2
#include "linear_variant.h"

#define BODEGA_VARIANT dense_wide
#define BODEGA_BITS 16
#define BODEGA_CODES 0
#define BODEGA_GROUP 32
#define BODEGA_SCALE 1
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT float
#define BODEGA_INPUT2 float2
#define BODEGA_EPILOGUE 4
#include "linear_variant.h"

#define BODEGA_VARIANT mxfp4
#define BODEGA_BITS 4
#define BODEGA_CODES 1
#define BODEGA_GROUP 32
#define BODEGA_SCALE 1
#define BODEGA_ROW_TILES 1
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 0
#include "linear_variant.h"

#define BODEGA_VARIANT mxfp8
#define BODEGA_BITS 8
#define BODEGA_CODES 1
#define BODEGA_GROUP 32
#define BODEGA_SCALE 1
#define BODEGA_ROW_TILES 4
#define BODEGA_INPUT half
#define BODEGA_INPUT2 half2
#define BODEGA_EPILOGUE 2
#include "linear_variant.h"
