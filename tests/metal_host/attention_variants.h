#pragma once

#include <array>

#include "ops/metal/params.h"
#include "shim/buffer.h"

// The attention and rotary kernels for small, common and large heads.
namespace metal_host::msl {

using namespace bodega::ops::metal;  // the parameters

using Slabs = std::array<Buffer<half>, 4>;

struct AttentionBuffers {
  Buffer<float> qkv;
  Buffer<AttentionItem> items;
  Buffer<FoldItem> folds;
  Buffer<BlockPlace> blocks;
  Buffer<float> sinks;
  const Slabs& slabs;
  Buffer<float> out;
  Buffer<float> partial_values;
  Buffer<float2> partial_state;
};

struct RopeBuffers {
  Buffer<float> qkv;
  Buffer<float> inv_freq;
  Buffer<float> q_norm;
  Buffer<float> k_norm;
  Buffer<RowPlace> places;
  Buffer<BlockPlace> blocks;
  Slabs& slabs;
};

}  // namespace metal_host::msl

#define BODEGA_VARIANT d32
#define BODEGA_HEAD_DIM 32
#include "attention_variant.h"

#define BODEGA_VARIANT d64
#define BODEGA_HEAD_DIM 64
#include "attention_variant.h"

#define BODEGA_VARIANT d96
#define BODEGA_HEAD_DIM 96
#include "attention_variant.h"

#define BODEGA_VARIANT d128
#define BODEGA_HEAD_DIM 128
#include "attention_variant.h"

#define BODEGA_VARIANT d256
#define BODEGA_HEAD_DIM 256
#include "attention_variant.h"
