// The parts of the CUDA backend that run on the host: the weights' layout and the cutting of
// attention into tiles and splits. The kernels themselves: device_records_test.cpp, on a machine
// that has one.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ops/cuda/packed_matrix.h"
#include "ops/cuda/step.h"
#include "random_weights.h"

namespace bodega::ops::cuda {
namespace {

struct Case {
  int bits;
  int group;
  FloatType type;
  int rows;
  int cols;
  bool pair;
};

class Packing : public testing::TestWithParam<Case> {};

TEST_P(Packing, KeepsEveryValue) {
  const Case& c = GetParam();
  const WeightFormat format{WeightFormat::Kind::kAffine, c.bits, c.group, c.type};
  ASSERT_TRUE(packable(format, c.cols));
  const RandomWeights source(format, {c.rows, c.cols}, 7);
  ThreadPool pool(2);
  const HostMatrix m = pack(source, c.pair, pool);
  EXPECT_EQ(0, m.tiles % 2);
  const std::vector<float> want = source.all();
  std::vector<float> got(c.cols);
  for (int row = 0; row < c.rows; ++row) {
    const auto tile = static_cast<std::size_t>(tile_of(m, row));
    unpack_row(m, row, m.codes.data() + tile * m.units * m.code_bytes(),
               m.scales.data() + tile * m.units * m.scale_bytes(), got.data());
    for (int k = 0; k < c.cols; ++k) {
      ASSERT_FLOAT_EQ(want[static_cast<std::size_t>(row) * c.cols + k], got[k]) << row << " " << k;
    }
  }
}

// What a lane of a warp takes out of a unit, as kernels/args.h says it, is what mma wants.
TEST_P(Packing, PutsEveryCodeWhereItsLaneReadsIt) {
  const Case& c = GetParam();
  const WeightFormat format{WeightFormat::Kind::kAffine, c.bits, c.group, c.type};
  const RandomWeights source(format, {c.rows, c.cols}, 8);
  ThreadPool pool(1);
  const HostMatrix m = pack(source, c.pair, pool);
  std::vector<std::uint8_t> codes(c.cols);
  std::vector<float> scales(c.cols / c.group), biases(c.cols / c.group);
  for (int tile = 0; tile < m.tiles; ++tile) {
    for (int local = 0; local < 16; ++local) {
      const int row = m.row_of(tile, local);
      if (row < 0) continue;
      source.read_codes(row, 1, codes.data(), scales.data(), biases.data());
      for (int k = 0; k < c.cols; ++k) {
        const int unit = k / 64, half = k / 32 % 2, lane = 4 * (local % 8) + k % 32 / 8, j = k % 8;
        const std::uint8_t* at =
            m.codes.data() + (static_cast<std::size_t>(tile) * m.units + unit) * m.code_bytes();
        int code = 0;
        if (c.bits == 4) {
          std::uint32_t word = 0;
          std::memcpy(&word, at + 16 * lane + 4 * (2 * half + local / 8), 4);
          code = static_cast<int>((word >> (4 * (j / 2 + 4 * (j % 2)))) & 15U);
        } else {
          code = at[512 * half + 16 * lane + 8 * (local / 8) + j];
        }
        ASSERT_EQ(codes[k], code) << "row " << row << " column " << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Packing,
                         testing::Values(Case{4, 64, FloatType::kF16, 48, 128, false},
                                         Case{4, 64, FloatType::kBF16, 33, 192, false},
                                         Case{4, 32, FloatType::kF16, 64, 96, true},
                                         Case{4, 128, FloatType::kF16, 40, 256, true},
                                         Case{8, 32, FloatType::kF16, 17, 32, false},
                                         Case{8, 64, FloatType::kBF16, 96, 64, true}));

TEST(CudaFormats, RefusesWhatTheKernelsDoNotRead) {
  using Kind = WeightFormat::Kind;
  EXPECT_FALSE(packable({Kind::kDense, 0, 0, FloatType::kF16}, 64));
  EXPECT_FALSE(packable({Kind::kAffine, 6, 64, FloatType::kF16}, 64));
  EXPECT_FALSE(packable({Kind::kAffine, 4, 16, FloatType::kF16}, 64));
  EXPECT_FALSE(packable({Kind::kAffine, 4, 64, FloatType::kF32}, 64));
  EXPECT_FALSE(packable({Kind::kMxfp4, 4, 32, FloatType::kF16}, 64));
}

core::Batch batch_of(const std::vector<std::pair<int, int>>& slices) {  // (rows, position)
  core::Batch batch;
  for (const auto& [rows, position] : slices) {
    core::SequenceSlice slice;
    slice.row_begin = batch.rows();
    slice.row_count = rows;
    slice.position = position;
    slice.block_begin = static_cast<int>(batch.blocks.size());
    slice.block_count = core::blocks_for(position + rows);
    batch.blocks.resize(batch.blocks.size() + slice.block_count);
    batch.tokens.resize(batch.tokens.size() + rows);
    batch.sequences.push_back(slice);
  }
  return batch;
}

// Every visible key of every (row, head) pair is covered once, whatever runs beside it.
void expect_covered(const core::Batch& batch, const AttentionShape& shape, int window,
                    int processors) {
  const AttentionTable table = attention_table(batch, shape, window, processors);
  const int group = shape.heads / shape.kv_heads;
  std::map<std::pair<int, int>, std::multiset<int>> splits;  // (first row of the slice, pair)
  std::set<int> states;
  for (int w = 0; w < 2; ++w) {
    for (const AttentionItem& item : table.items[w]) {
      for (int i = 0; i < (w == 0 ? 16 : 64) && item.first + i < item.row_count * group; ++i) {
        for (int s = item.split_begin; s < item.split_end; ++s) {
          splits[{item.row_begin, item.first + i}].insert(s);
        }
      }
      if (item.partial >= 0) {
        EXPECT_EQ(1, item.split_end - item.split_begin);
        EXPECT_TRUE(states.insert(item.partial).second);
      }
    }
  }
  std::set<int> folded;
  for (const FoldItem& item : table.folds) {
    for (int s = 0; s < item.splits; ++s) folded.insert(item.partial + s);
  }
  EXPECT_EQ(states, folded);
  EXPECT_EQ(table.states, states.size());
  for (const core::SequenceSlice& slice : batch.sequences) {
    for (int pair = 0; pair < slice.row_count * group; ++pair) {
      const int position = slice.position + pair / group;
      const int first = window > 0 ? std::max(0, position - window + 1) / kSplit : 0;
      const auto& seen = splits[{slice.row_begin, pair}];
      for (int s = first; s <= position / kSplit; ++s) {
        EXPECT_EQ(1U, seen.count(s)) << "pair " << pair << " split " << s;
      }
    }
  }
}

TEST(CudaAttentionTable, CoversEveryKeyOnce) {
  const std::vector<std::vector<std::pair<int, int>>> batches = {
      {{1, 0}}, {{1, 127}, {1, 128}, {1, 5000}}, {{300, 0}}, {{37, 200}, {1, 1000}, {5, 3}}};
  for (const auto& slices : batches) {
    for (const AttentionShape& shape :
         {AttentionShape{32, 8, 128}, AttentionShape{9, 3, 64}, AttentionShape{16, 1, 64}}) {
      for (int window : {0, 1, 100, 128}) {
        for (int processors : {1, 132}) expect_covered(batch_of(slices), shape, window, processors);
      }
    }
  }
}

}  // namespace
}  // namespace bodega::ops::cuda
