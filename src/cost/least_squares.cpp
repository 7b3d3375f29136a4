#include "cost/least_squares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace bodega::cost {
namespace {

constexpr double kFirstNoise = 0.5;  // nothing is an outlier before noise is known
constexpr double kLeastNoise = 0.02;
constexpr double kMostNoise = 1.0;
constexpr double kNoiseWeight = 0.05;
constexpr double kOutlier = 2.5;             // times the noise
constexpr double kAbsoluteToSigma = 1.2533;  // of a normal distribution
constexpr double kDrift = 2e-5;              // variance that a factor gains a step
constexpr double kLeastFactor = 0.02;
constexpr double kMostFactor = 50;
constexpr double kRestored = 0.1;
constexpr double kOneSided = 0.6;  // share of the errors' size that is bias: a change, not noise
constexpr double kChange = 0.1;    // relative; below it a bias is left to the ordinary update
constexpr double kRelearn = 1.3;

}  // namespace

LeastSquares::LeastSquares(std::size_t size, double common, double own)
    : factors_(size, 1.0),
      covariance_(size * size, common * common),
      gain_(size),
      largest_variance_(common * common + own * own),
      noise_(kFirstNoise) {
  for (std::size_t i = 0; i < size; ++i) covariance(i, i) += own * own;
}

double LeastSquares::predict(std::span<const double> features) const {
  return std::inner_product(features.begin(), features.end(), factors_.begin(), 0.0);
}

double LeastSquares::observe(std::span<const double> features, double y) {
  const double predicted = predict(features);
  if (!(predicted > 0) || !(y > 0) || !std::isfinite(y)) return 0;
  const double error = y / predicted - 1;
  const double distance = std::abs(error);
  const double scatter =
      std::sqrt(std::max(kLeastNoise * kLeastNoise, noise_ * noise_ - bias_ * bias_));
  const double weight = distance > kOutlier * noise_ ? kOutlier * noise_ / distance : 1.0;
  const std::size_t size = factors_.size();

  double spread = scatter * scatter / weight;
  for (std::size_t i = 0; i < size; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < size; ++j) {
      if (features[j] != 0) sum += covariance(i, j) * features[j];
    }
    gain_[i] = sum / predicted;
    spread += gain_[i] * features[i] / predicted;
  }
  for (std::size_t i = 0; i < size; ++i) {
    factors_[i] = std::clamp(factors_[i] + gain_[i] / spread * error, kLeastFactor, kMostFactor);
    for (std::size_t j = 0; j < size; ++j) covariance(i, j) -= gain_[i] * gain_[j] / spread;
  }
  forget();
  follow(error);
  return error;
}

// Errors that stay on one side mean that the machine itself has changed: what is known is then
// worth less, and the next steps say more.
void LeastSquares::follow(double error) {
  const double seen = std::clamp(error, -4 * noise_, 4 * noise_) * kAbsoluteToSigma;
  noise_ = std::clamp(noise_ + kNoiseWeight * (std::abs(seen) - noise_), kLeastNoise, kMostNoise);
  bias_ += kNoiseWeight * (seen - bias_);
  if (std::abs(bias_) < std::max(kChange, kOneSided * noise_)) return;
  if (*std::max_element(covariance_.begin(), covariance_.end()) * kRelearn > largest_variance_)
    return;
  for (double& value : covariance_) value *= kRelearn;
}

// Old observations lose their say, but what has not been seen for long never becomes less certain
// than at the start.
void LeastSquares::forget() {
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    double& variance = covariance(i, i);
    variance = std::max(variance, 0.0);
    if (variance < largest_variance_) variance += kDrift;
  }
}

void LeastSquares::restore(std::vector<double> factors) {
  factors_ = std::move(factors);
  std::fill(covariance_.begin(), covariance_.end(), kRestored * kRestored);
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    factors_[i] = std::clamp(factors_[i], kLeastFactor, kMostFactor);
    covariance(i, i) += kRestored * kRestored;
  }
}

}  // namespace bodega::cost
