#pragma once

#include <atomic>
#include <thread>

#include "http/io.h"
#include "http/loop.h"

namespace bodega::http {

class Loop::Core {
 public:
  asio::io_context io{1};
  asio::executor_work_guard<Executor> work{io.get_executor()};
  std::thread thread;
  std::atomic<std::thread::id> thread_id{};
};

}  // namespace bodega::http
