#include "model/checkpoint.h"

#include <system_error>

#include "model/checkpoint_formats.h"
#include "model/names.h"
#include "model/tensor_entry.h"

namespace bodega::model {

std::unique_ptr<Checkpoint> Checkpoint::open(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const std::string name = printable(path.string());
  if (status.type() == std::filesystem::file_type::not_found) {
    fail_file(name, "there is no such file or folder.");
  }
  if (error) fail_file(name, error.message() + ".");
  if (std::filesystem::is_directory(status)) return open_folder(path);
  return open_gguf(path);
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
