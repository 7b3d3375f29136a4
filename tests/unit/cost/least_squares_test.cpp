#include "cost/least_squares.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>

namespace bodega::cost {
namespace {

using Row = std::array<double, 3>;

Row random_row(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(0.1, 4.0);
  return {uniform(random), uniform(random), uniform(random)};
}

double truth(const Row& row) { return 3.0 * row[0] + 0.4 * row[1] + 1.5 * row[2]; }

TEST(LeastSquares, FindsTheFactorsThroughNoise) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(1.0, 0.08);
  LeastSquares squares(3, 1.0, 0.5);
  for (int i = 0; i < 400; ++i) {
    const Row row = random_row(random);
    squares.observe(row, truth(row) * noise(random));
  }
  EXPECT_NEAR(squares.factors()[0], 3.0, 0.2);
  EXPECT_NEAR(squares.factors()[1], 0.4, 0.2);
  EXPECT_NEAR(squares.factors()[2], 1.5, 0.2);
  EXPECT_NEAR(squares.noise(), 0.08, 0.03);
}

TEST(LeastSquares, AFewStepsDelayedByOtherProgramsMoveLittle) {
  std::mt19937 random(2);
  LeastSquares squares(3, 1.0, 0.5);
  for (int i = 0; i < 200; ++i) {
    const Row row = random_row(random);
    squares.observe(row, truth(row));
  }
  for (int i = 0; i < 20; ++i) {
    const Row row = random_row(random);
    squares.observe(row, truth(row) * (i % 4 == 0 ? 30.0 : 1.0));
  }
  const Row row{1, 1, 1};
  EXPECT_NEAR(squares.predict(row) / truth(row), 1.0, 0.15);
}

TEST(LeastSquares, FollowsAMachineThatBecameSlower) {
  std::mt19937 random(3);
  LeastSquares squares(3, 1.0, 0.5);
  for (int i = 0; i < 1000; ++i) {
    const Row row = random_row(random);
    squares.observe(row, truth(row));
  }
  for (int i = 0; i < 300; ++i) {
    const Row row = random_row(random);
    squares.observe(row, 2.5 * truth(row));
  }
  const Row row{1, 2, 1};
  EXPECT_NEAR(squares.predict(row) / (2.5 * truth(row)), 1.0, 0.1);
}

TEST(LeastSquares, OneObservationMovesWhatItDidNotShow) {
  LeastSquares squares(2, 1.0, 0.2);
  for (int i = 0; i < 5; ++i) squares.observe(std::array<double, 2>{1, 0}, 4.0);
  EXPECT_GT(squares.factors()[1], 2.0);  // the whole machine is slower than its profile
}

TEST(LeastSquares, NonsenseIsIgnored) {
  LeastSquares squares(2, 1.0, 0.2);
  for (const double y : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::quiet_NaN()}) {
    squares.observe(std::array<double, 2>{1, 1}, y);
  }
  squares.observe(std::array<double, 2>{0, 0}, 1.0);
  EXPECT_EQ(squares.factors(), (std::vector<double>{1.0, 1.0}));
}

}  // namespace
}  // namespace bodega::cost
