#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "registry/worker.h"

namespace bodega::registry {

// The models of this server and their workers, in the order in which they were loaded. The first is
// the default model. Host's thread only.
class Registry {
 public:
  // Makes a folder for the sockets that only this user may enter. Throws Error(kConfig).
  explicit Registry(Environment environment);
  ~Registry();  // kills the workers that still run and removes the folder
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // `on_loaded` is called once: when the model is ready, or has failed. Loading an id that is
  // already there waits for that one load.
  using OnLoaded = std::function<void(Worker& worker)>;
  void load(const std::string& id, Worker::MakeCommand make_command, OnLoaded on_loaded = {});

  // `on_gone` is called when the process has ended; at once for an unknown id.
  void unload(std::string_view id, std::chrono::milliseconds grace,
              std::function<void()> on_gone = {});
  void unload_all(std::chrono::milliseconds grace, const std::function<void()>& on_gone);

  Worker* find(std::string_view id) const;  // null when absent
  Worker* default_model() const;            // null when nothing is loaded
  std::vector<Worker*> workers() const;

 private:
  struct Entry {
    std::shared_ptr<Worker> worker;
    std::vector<OnLoaded> on_loaded;
    std::vector<std::function<void()>> on_gone;
  };

  void on_change(Worker& worker);
  void forget(Worker& worker);
  std::vector<Entry>::iterator entry_of(std::string_view id);

  const Environment environment_;
  std::string folder_;
  std::vector<Entry> entries_;
  std::vector<std::shared_ptr<Worker>> gone_;  // until nothing of theirs is on the stack
  int next_ = 0;
};

}  // namespace bodega::registry
