#include "model/checkpoint_formats.h"
#include "model/tensor_entry.h"

namespace bodega::model {

std::unique_ptr<Checkpoint> open_folder(const std::filesystem::path& path) {
  fail_file(printable(path.string()), "folders cannot be opened yet.");
}

}  // namespace bodega::model
