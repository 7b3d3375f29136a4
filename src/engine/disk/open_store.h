#pragma once

#include <memory>

#include "engine/disk/block_io.h"
#include "engine/engine.h"
#include "engine/runner.h"

namespace bodega::engine {

// The I/O thread of an engine's SSD rung, and in the runner's prices how fast it is. Null when the
// configuration has none, when the runner's blocks cannot be reached, or the folder cannot be used.
std::unique_ptr<BlockIo> open_block_io(const EngineConfig& config, Runner& runner,
                                       std::function<void()> wake);

// Blocks that are written together: about two MiB.
int blocks_per_file(Runner& runner);

}  // namespace bodega::engine
