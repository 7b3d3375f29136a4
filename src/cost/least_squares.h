#pragma once

#include <span>
#include <vector>

namespace bodega::cost {

// Recursive least squares in relative terms: y ~ sum of factor[i] * feature[i], where every feature
// is already a prediction in the unit of y, so that all factors are near 1 and errors are shares of
// y. A Kalman filter whose factors drift slowly; observations far outside the noise seen so far are
// given Huber's weight (Huber 1964), so that a step that another program delayed moves little.
class LeastSquares {
 public:
  // `common`, `own`: how far the factors may be off, all together and each by itself.
  LeastSquares(std::size_t size, double common, double own);

  double predict(std::span<const double> features) const;
  // Returns the relative error of the prediction before the update.
  double observe(std::span<const double> features, double y);

  const std::vector<double>& factors() const { return factors_; }
  double noise() const { return noise_; }  // typical relative error
  // Starts from factors that were right before; later observations correct them.
  void restore(std::vector<double> factors);

 private:
  double& covariance(std::size_t row, std::size_t column) {
    return covariance_[row * factors_.size() + column];
  }
  void forget();
  void follow(double error);

  std::vector<double> factors_;
  std::vector<double> covariance_;  // [size, size]
  std::vector<double> gain_;        // scratch, [size]
  double largest_variance_;
  double noise_;
  double bias_ = 0;  // of the errors, smoothed: far from 0 when the machine has changed
};

}  // namespace bodega::cost
