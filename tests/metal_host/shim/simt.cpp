#include "shim/simt.h"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

namespace metal_host {
namespace {

namespace context = boost::context;

constexpr std::size_t kStackBytes = 128 * 1024;

enum class State { kRunning, kGroupBarrier, kSimdBarrier, kDone };

struct Thread {
  context::fiber fiber;
  context::fiber scheduler;
  State state = State::kRunning;
  Location where;
  int index = 0;
  int arrays = 0;  // threadgroup arrays declared so far
};

struct SimdGroup {
  int epoch = 0;  // barriers passed since the last threadgroup barrier
  alignas(16) unsigned char slots[2][kSimdWidth * Exchange::kStride];
};

struct alignas(16) Line {
  unsigned char bytes[16];
};

struct Array {
  std::vector<Line> data;
  std::unique_ptr<Region> region;
  std::string name;
};

// The threadgroup that runs.
struct Group {
  std::vector<Thread> threads;
  std::vector<SimdGroup> simds;
  std::deque<Array> arrays;
  std::size_t array_bytes = 0;
  int number = 0;
  int epoch = 0;
  std::exception_ptr failure;
};

Group* running_group = nullptr;
Thread* running_thread = nullptr;

SimdGroup& running_simd() { return running_group->simds[running_thread->index / kSimdWidth]; }

std::string place(Location where) {
  std::string file = where.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line());
}

bool same_place(Location a, Location b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::strcmp(a.file_name(), b.file_name()) == 0;
}

void wait(State state, Location where) {
  Thread& self = *running_thread;
  self.state = state;
  self.where = where;
  self.scheduler = std::move(self.scheduler).resume();
  running_thread = &self;
}

std::string describe(const Thread& thread) {
  std::string text = "thread " + std::to_string(thread.index);
  if (thread.state == State::kDone) return text + " has ended";
  return text +
         (thread.state == State::kGroupBarrier ? " waits at the barrier of "
                                               : " waits for its simdgroup at ") +
         place(thread.where);
}

// Runs the thread until it waits or ends.
void resume(Group& group, Thread& thread) {
  running_thread = &thread;
  thread.fiber = std::move(thread.fiber).resume();
  running_thread = nullptr;
  if (group.failure) std::rethrow_exception(group.failure);
}

// Throws unless threads [begin, end) all wait in `state` at one place.
void require_together(const Group& group, int begin, int end, State state) {
  const Thread& first = group.threads[begin];
  for (int t = begin; t < end; ++t) {
    const Thread& thread = group.threads[t];
    if (thread.state == state && same_place(thread.where, first.where)) continue;
    throw Failure("not all threads reach a barrier: " + describe(first) + ", " + describe(thread));
  }
}

// Runs a simdgroup until all its threads wait for the threadgroup or have ended.
void run_simd(Group& group, int simd) {
  const int begin = simd * kSimdWidth;
  const int end = begin + kSimdWidth;
  for (;;) {
    bool at_simd_barrier = false;
    for (int t = begin; t < end; ++t) {
      Thread& thread = group.threads[t];
      if (thread.state == State::kRunning) resume(group, thread);
      at_simd_barrier = at_simd_barrier || thread.state == State::kSimdBarrier;
    }
    if (!at_simd_barrier) return;
    const Thread& first = group.threads[begin];
    if (first.state != State::kSimdBarrier) {
      for (int t = begin; t < end; ++t) {
        if (group.threads[t].state == State::kSimdBarrier) {
          throw Failure("not all threads reach a barrier: " + describe(first) + ", " +
                        describe(group.threads[t]));
        }
      }
    }
    require_together(group, begin, end, State::kSimdBarrier);
    ++group.simds[simd].epoch;
    for (int t = begin; t < end; ++t) group.threads[t].state = State::kRunning;
  }
}

void run_group(Group& group) {
  const int count = static_cast<int>(group.threads.size());
  for (;;) {
    for (int simd = 0; simd < count / kSimdWidth; ++simd) run_simd(group, simd);
    bool all_done = true;
    for (const Thread& thread : group.threads) {
      all_done = all_done && thread.state == State::kDone;
    }
    if (all_done) return;
    require_together(group, 0, count, State::kGroupBarrier);
    ++group.epoch;
    for (SimdGroup& simd : group.simds) simd.epoch = 0;
    for (Thread& thread : group.threads) thread.state = State::kRunning;
  }
}

using Kernel = std::function<void(const ThreadPosition&)>;

struct Start {
  Group* group;
  Thread* thread;
  const Kernel* kernel;
  ThreadPosition position;
};

void start_thread(Start start, context::pooled_fixedsize_stack& stacks) {
  start.thread->fiber =
      context::fiber(std::allocator_arg, stacks, [start](context::fiber&& scheduler) {
        start.thread->scheduler = std::move(scheduler);
        try {
          (*start.kernel)(start.position);
        } catch (const Failure&) {
          start.group->failure = std::current_exception();
        }
        start.thread->state = State::kDone;
        return std::move(start.thread->scheduler);
      });
}

void run_one(int number, uint3_plain at, int threads, const Kernel& kernel,
             context::pooled_fixedsize_stack& stacks) {
  Group group;
  group.number = number;
  group.threads.resize(threads);
  group.simds.resize(threads / kSimdWidth);
  for (int t = 0; t < threads; ++t) {
    group.threads[t].index = t;
    const auto id = static_cast<unsigned>(t);
    start_thread({&group, &group.threads[t], &kernel, {at, id, id / kSimdWidth, id % kSimdWidth}},
                 stacks);
  }
  running_group = &group;
  try {
    run_group(group);
  } catch (...) {
    group.threads.clear();  // unwinds the fibers that wait
    running_group = nullptr;
    running_thread = nullptr;
    throw;
  }
  running_group = nullptr;
}

}  // namespace

void group_barrier(Location where) { wait(State::kGroupBarrier, where); }
void simd_barrier(Location where) { wait(State::kSimdBarrier, where); }
int current_lane() { return running_thread->index % kSimdWidth; }

Exchange exchange(const void* value, std::size_t size, Location where) {
  SimdGroup& simd = running_simd();
  // Two buffers in turn: a lane that runs ahead cannot overwrite what another still reads, because
  // the next but one collective has to wait for all again. `epoch` is the same in all lanes here.
  unsigned char* slots = simd.slots[(simd.epoch + running_group->epoch) % 2];
  std::memcpy(slots + current_lane() * Exchange::kStride, value, size);
  simd_barrier(where);
  return {slots};
}

Region* declare_threadgroup(std::size_t bytes, const char* name, void** data) {
  Group& group = *running_group;
  const int index = running_thread->arrays++;
  if (index == static_cast<int>(group.arrays.size())) {
    group.array_bytes += (bytes + 15) / 16 * 16;
    if (group.array_bytes > kThreadgroupBytes) {
      throw Failure("threadgroup memory: " + std::to_string(group.array_bytes) + " bytes with " +
                    name + ", more than 32 KB");
    }
    Array array;
    array.data.resize((bytes + sizeof(Line) - 1) / sizeof(Line));
    array.name = name;
    array.region =
        std::make_unique<Region>(name, Region::Kind::kThreadgroup, array.data.data(), bytes);
    group.arrays.push_back(std::move(array));
  }
  Array& array = group.arrays[index];
  if (array.name != name || array.region->bytes() != bytes) {
    throw Failure("threads declare their threadgroup memory in different orders: " + array.name +
                  ", " + name);
  }
  *data = array.data.data();
  return array.region.get();
}

// --- memory
// ------------------------------------------------------------------------------------------

namespace {
constexpr std::size_t kGranule = 2;
constexpr int kNobody = -1;
constexpr int kSeveral = -2;
}  // namespace

Region::Region(std::string name, Kind kind, void* data, std::size_t bytes)
    : name_(std::move(name)), kind_(kind), data_(static_cast<unsigned char*>(data)), bytes_(bytes) {
  if (kind == Kind::kThreadgroup) begin_launch();
}

void Region::begin_launch() { cells_.assign((bytes_ + kGranule - 1) / kGranule, Cell{}); }

Region::Stamp Region::now() {
  const Thread& self = *running_thread;
  const int threads = static_cast<int>(running_group->threads.size());
  const int simds = static_cast<int>(running_group->simds.size());
  const int group = running_group->number;
  return {group * threads + self.index, group * simds + self.index / kSimdWidth, group,
          running_group->epoch, running_simd().epoch};
}

// Whether what the stamp tells of certainly happened before now.
bool Region::ordered(const Stamp& stamp) const {
  if (stamp.thread == kNobody) return true;
  const Stamp self = now();
  if (stamp.thread == self.thread) return true;
  if (stamp.group != self.group) return false;
  if (stamp.epoch < self.epoch) return true;
  return stamp.simd == self.simd && stamp.simd_epoch < self.simd_epoch;
}

void Region::note_read(Stamp& stamp) const {
  const Stamp self = now();
  const bool stale = stamp.thread == kNobody || ordered(stamp);
  if (stale || stamp.thread == self.thread) {
    stamp = self;
  } else {
    stamp.thread = kSeveral;
    if (stamp.simd != self.simd) stamp.simd = kSeveral;
    if (stamp.group != self.group) stamp.group = kSeveral;
    stamp.epoch = self.epoch;
    stamp.simd_epoch = self.simd_epoch;
  }
}

void Region::check_bounds(const void* at, std::size_t size, std::size_t alignment,
                          const char* verb) const {
  const auto* p = static_cast<const unsigned char*>(at);
  const std::ptrdiff_t offset = p - data_;
  if (offset < 0 || static_cast<std::size_t>(offset) + size > bytes_) {
    throw Failure(name_ + ": " + verb + " of " + std::to_string(size) + " bytes at byte " +
                  std::to_string(offset) + " of " + std::to_string(bytes_));
  }
  if (reinterpret_cast<std::uintptr_t>(at) % alignment != 0) {
    throw Failure(name_ + ": " + verb + " of " + std::to_string(size) + " bytes at byte " +
                  std::to_string(offset) + " is not aligned");
  }
}

void Region::conflict(const char* verb, const Cell& cell, std::size_t offset) const {
  throw Failure(name_ + ": race: thread " + std::to_string(running_thread->index) + " " + verb +
                " byte " + std::to_string(offset) + ", written by thread " +
                std::to_string(cell.written.thread) + ", read by thread " +
                std::to_string(cell.read.thread) + ", without a barrier between");
}

void Region::check_read(const void* at, std::size_t size, std::size_t alignment) const {
  check_bounds(at, size, alignment, "read");
  if (cells_.empty()) return;
  const std::size_t offset = static_cast<const unsigned char*>(at) - data_;
  for (std::size_t i = offset / kGranule; i < (offset + size + kGranule - 1) / kGranule; ++i) {
    Cell& cell = cells_[i];
    if (kind_ == Kind::kThreadgroup && cell.written.thread == kNobody) {
      throw Failure(name_ + ": byte " + std::to_string(i * kGranule) + " is read, never written");
    }
    if (!ordered(cell.written)) conflict("reads", cell, i * kGranule);
    note_read(cell.read);
  }
}

void Region::check_write(const void* at, std::size_t size, std::size_t alignment) {
  if (kind_ == Kind::kConstant) throw Failure(name_ + " is written, and is not to be");
  check_bounds(at, size, alignment, "write");
  if (cells_.empty()) throw Failure(name_ + " is written, and the launch was not told of it");
  const std::size_t offset = static_cast<const unsigned char*>(at) - data_;
  for (std::size_t i = offset / kGranule; i < (offset + size + kGranule - 1) / kGranule; ++i) {
    Cell& cell = cells_[i];
    if (!ordered(cell.written) || !ordered(cell.read)) conflict("writes", cell, i * kGranule);
    cell.written = now();
    cell.read = Stamp{};
  }
}

void launch(uint3_plain grid, int threads, const std::vector<Region*>& regions,
            const Kernel& kernel) {
  if (threads <= 0 || threads % kSimdWidth != 0 || threads > 1024) {
    throw Failure("a threadgroup of " + std::to_string(threads) + " threads");
  }
  for (Region* region : regions) {
    if (region != nullptr) region->begin_launch();
  }
  static context::pooled_fixedsize_stack stacks(kStackBytes);  // kept between launches
  int number = 0;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        run_one(number++, {x, y, z}, threads, kernel, stacks);
      }
    }
  }
}

}  // namespace metal_host
