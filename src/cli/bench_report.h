#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

namespace bodega::cli {

// One request of a measurement, in seconds of one clock.
struct RequestTrace {
  double sent = 0;
  std::vector<double> pieces;  // arrival of each piece of the answer, ascending
  int prompt_tokens = 0;
  int cached_tokens = 0;
  int completion_tokens = 0;
  std::string error;  // not empty: the request failed
};

// What one number of parallel streams gave.
struct BenchRow {
  int streams = 0;
  int failed = 0;
  double prompt_tokens = 0;  // median of the prompts
  double first_token_s = 0;  // median
  double first_token_p95_s = 0;
  double prefill_tokens_per_s = 0;  // median over requests; meaningful at one stream
  double decode_tokens_per_s = 0;   // all streams together, while all of them decode
  double total_tokens_per_s = 0;    // answers' tokens over the whole time
};

BenchRow summarise(int streams, const std::vector<RequestTrace>& traces);

// The row whose decode rate is the median, so that its numbers belong together.
BenchRow median_row(std::vector<BenchRow> repeats);

std::string table(const std::vector<BenchRow>& rows);
boost::json::array to_json(const std::vector<BenchRow>& rows);

}  // namespace bodega::cli
