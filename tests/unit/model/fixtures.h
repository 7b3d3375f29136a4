#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/checkpoint.h"

namespace bodega::model {

// tests/golden/model/<name>; a GGUF fixture's file.
std::filesystem::path fixture_path(const std::string& name);
std::vector<std::string> fixture_names();

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& bytes);

// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // A copy of a fixture's files to spoil; the path to open.
  std::filesystem::path copy_fixture(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

// Reads every tensor that a plan of this architecture asks for, then check_all_used(): what loading
// does, without a device. Throws what the checkpoint throws; the sum keeps the reads from
// vanishing.
double read_all(const Checkpoint& checkpoint);

// The message of the Error(kBadModelFile) that opening and reading `path` ends with, "" for none.
std::string load_error(const std::filesystem::path& path);

}  // namespace bodega::model
