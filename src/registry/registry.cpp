#include "registry/registry.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/errors.h"

namespace bodega::registry {
namespace {

std::string make_folder() {
  // Short, because the path of a Unix socket may have hardly more than a hundred bytes.
  std::error_code ignored;
  std::filesystem::path base = std::filesystem::temp_directory_path(ignored);
  if (ignored || base.string().size() > 60) base = "/tmp";
  std::string path = (base / "bodega-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {  // mode 0700
    throw Error(ErrorKind::kConfig, "No folder for the workers' sockets in " + base.string() +
                                        ": " + std::strerror(errno));
  }
  return path;
}

}  // namespace

Registry::Registry(Environment environment)
    : environment_(std::move(environment)), folder_(make_folder()) {}

Registry::~Registry() {
  entries_.clear();
  gone_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<Registry::Entry>::iterator Registry::entry_of(std::string_view id) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.worker->id() == id; });
}

void Registry::load(const std::string& id, Worker::MakeCommand make_command, OnLoaded on_loaded) {
  auto entry = entry_of(id);
  if (entry == entries_.end()) {
    const std::string prefix = folder_ + "/" + std::to_string(next_++) + ".";
    auto worker = std::make_shared<Worker>(environment_, id, prefix, std::move(make_command),
                                           [this](Worker& changed) { on_change(changed); });
    entries_.push_back({worker, {}, {}});
    if (on_loaded) entries_.back().on_loaded.push_back(std::move(on_loaded));
    worker->start();
    return;
  }
  if (!on_loaded) return;
  if (entry->worker->state() == WorkerState::kLoading) {
    entry->on_loaded.push_back(std::move(on_loaded));
  } else {
    on_loaded(*entry->worker);
  }
}

void Registry::on_change(Worker& worker) {
  const auto entry = entry_of(worker.id());
  if (entry == entries_.end()) return;
  const WorkerState state = worker.state();
  if (state == WorkerState::kRestarting) return;
  const auto loaded = std::exchange(entry->on_loaded, {});
  for (const OnLoaded& callback : loaded) callback(worker);
  if (state == WorkerState::kStopped) forget(worker);
}

void Registry::forget(Worker& worker) {
  const auto entry = entry_of(worker.id());
  const auto callbacks = std::move(entry->on_gone);
  gone_.push_back(std::move(entry->worker));
  entries_.erase(entry);
  environment_.post([this, weak = std::weak_ptr<Worker>(gone_.back())] {
    if (const auto worker = weak.lock()) std::erase(gone_, worker);
  });
  for (const auto& callback : callbacks) callback();
}

void Registry::unload(std::string_view id, std::chrono::milliseconds grace,
                      std::function<void()> on_gone) {
  const auto entry = entry_of(id);
  if (entry == entries_.end()) {
    if (on_gone) on_gone();
    return;
  }
  if (on_gone) entry->on_gone.push_back(std::move(on_gone));
  const auto worker = entry->worker;  // stopping may erase the entry
  worker->stop(grace);
}

void Registry::unload_all(std::chrono::milliseconds grace, const std::function<void()>& on_gone) {
  auto last = std::make_shared<std::size_t>(entries_.size());
  if (*last == 0) return on_gone();
  for (Worker* worker : workers()) {
    unload(std::string(worker->id()), grace, [last, on_gone] {
      if (--*last == 0) on_gone();
    });
  }
}

Worker* Registry::find(std::string_view id) const {
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& item) { return item.worker->id() == id; });
  return entry == entries_.end() ? nullptr : entry->worker.get();
}

Worker* Registry::default_model() const {
  return entries_.empty() ? nullptr : entries_.front().worker.get();
}

std::vector<Worker*> Registry::workers() const {
  std::vector<Worker*> out;
  out.reserve(entries_.size());
  for (const Entry& entry : entries_) out.push_back(entry.worker.get());
  return out;
}

}  // namespace bodega::registry
