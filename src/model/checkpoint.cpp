#include "model/checkpoint.h"

#include <algorithm>
#include <system_error>

#include "model/checkpoint_formats.h"
#include "model/names.h"
#include "model/tensor_entry.h"

namespace bodega::model {
namespace {

namespace fs = std::filesystem;

bool lies_under(const fs::path& path, const fs::path& folder) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

}  // namespace

std::unique_ptr<Checkpoint> Checkpoint::open(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  const std::string name = printable(path.string());
  if (status.type() == fs::file_type::not_found) {
    fail_file(name, "there is no such file or folder.");
  }
  if (error) fail_file(name, error.message() + ".");
  if (fs::is_directory(status)) return open_folder(path);
  if (path.extension() == ".safetensors") {
    fail_file(name, "name the folder that holds it together with config.json.");
  }
  return open_gguf(path);
}

std::vector<std::string> list_folder(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) fail_file(printable(folder.string()), error.message() + ".");
  std::ranges::sort(names);
  return names;
}

std::shared_ptr<const MappedFile> open_in_folder(const fs::path& folder, const std::string& name) {
  std::error_code error;
  const bool there = fs::exists(fs::symlink_status(folder / name, error));
  if (!there) return nullptr;
  const fs::path home = fs::canonical(folder, error);
  const fs::path target = fs::canonical(folder / name, error);
  if (error) fail_file(printable(name), "is a link that leads nowhere.");
  const bool snapshot = home.parent_path().filename() == "snapshots";
  const fs::path limit = snapshot ? home.parent_path().parent_path() : home;
  if (!lies_under(target, limit)) {
    fail_file(printable(name), "is a link that leads out of the model's folder.");
  }
  return MappedFile::open(folder / name);
}

void fail_on_stray(const Checkpoint& checkpoint, const UsedNames& used, const std::string& file) {
  for (const std::string& name : checkpoint.names()) {
    const bool unused_head = checkpoint.config().tied_embeddings && name.starts_with("lm_head.");
    if (used.contains(name) || is_harmless_leftover(name) || unused_head) continue;
    fail_tensor(file, name,
                "belongs to no part of a " + checkpoint.config().architecture +
                    " model; it would be ignored.");
  }
}

}  // namespace bodega::model
