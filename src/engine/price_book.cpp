#include "engine/price_book.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <system_error>

#include "base/hash.h"
#include "base/log.h"

namespace bodega::engine {

namespace fs = std::filesystem;

PriceBook::PriceBook(const std::string& cache_folder, const std::string& subject)
    : file_(cache_folder.empty() ? fs::path()
                                 : fs::path(cache_folder) / "prices" /
                                       (to_hex(hash128(std::string_view(subject))) + ".txt")) {}

bool PriceBook::load(cost::CostModel& prices) const {
  if (file_.empty()) return false;
  std::ifstream file(file_, std::ios::binary);
  if (!file) return false;
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return prices.restore(text);
}

// Written aside and renamed: another process of the same model may read or write it meanwhile.
void PriceBook::save(const cost::CostModel& prices) const {
  if (file_.empty()) return;
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  const fs::path aside = file_.string() + "." + std::to_string(::getpid());
  std::ofstream file(aside, std::ios::binary | std::ios::trunc);
  file << prices.to_text();
  file.close();
  if (file) fs::rename(aside, file_, error);
  if (!file || error) {
    fs::remove(aside, error);
    log_warn("the prices of this machine could not be kept", {{"file", file_.string()}});
  }
}

}  // namespace bodega::engine
