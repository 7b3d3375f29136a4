#include "ops/cuda/driver.h"

#include <dlfcn.h>

#include <algorithm>

#include "base/errors.h"
#include "base/log.h"

namespace bodega::ops::cuda {
namespace {

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
constexpr int kMaxDynamicShared = 8;
constexpr int kComputeMajor = 75, kComputeMinor = 76, kMultiprocessors = 16;
constexpr unsigned kProgrammaticSerialization = 6;

struct LaunchAttribute {  // CUlaunchAttribute
  unsigned id = kProgrammaticSerialization;
  char pad[4] = {};
  alignas(8) int value[16] = {1};
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {  // CUlaunchConfig
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

template <typename F>
bool resolve(void* library, const char* name, F*& call) {
  call = reinterpret_cast<F*>(dlsym(library, name));
  return call != nullptr;
}

void* open_compiler() {
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

}  // namespace

struct Driver::Calls {
  int (*init)(unsigned);
  int (*device_get)(int*, int);
  int (*device_get_attribute)(int*, int, int);
  int (*retain_primary)(void**, int);
  int (*set_current)(void*);
  int (*error_string)(int, const char**);
  int (*memory_info)(std::size_t*, std::size_t*);
  int (*allocate)(DeviceAddress*, std::size_t);
  int (*release)(DeviceAddress);
  int (*allocate_async)(DeviceAddress*, std::size_t, StreamHandle);
  int (*release_async)(DeviceAddress, StreamHandle);
  int (*allocate_host)(void**, std::size_t);
  int (*release_host)(void*);
  int (*upload)(DeviceAddress, const void*, std::size_t);
  int (*upload_async)(DeviceAddress, const void*, std::size_t, StreamHandle);
  int (*download)(void*, DeviceAddress, std::size_t);
  int (*download_async)(void*, DeviceAddress, std::size_t, StreamHandle);
  int (*copy_async)(DeviceAddress, DeviceAddress, std::size_t, StreamHandle);
  int (*clear_async)(DeviceAddress, unsigned char, std::size_t, StreamHandle);
  int (*event_create)(EventHandle*, unsigned);
  int (*event_record)(EventHandle, StreamHandle);
  int (*event_wait)(EventHandle);
  int (*event_destroy)(EventHandle);
  int (*stream_create)(StreamHandle*, unsigned);
  int (*stream_destroy)(StreamHandle);
  int (*begin_capture)(StreamHandle, int);
  int (*end_capture)(StreamHandle, struct CUgraph_st**);
  int (*graph_instantiate)(GraphHandle*, struct CUgraph_st*, unsigned long long);
  int (*graph_destroy)(struct CUgraph_st*);
  int (*graph_launch)(GraphHandle, StreamHandle);
  int (*graph_exec_destroy)(GraphHandle);
  int (*module_load)(ModuleHandle*, const void*);
  int (*module_function)(FunctionHandle*, ModuleHandle, const char*);
  int (*function_attribute)(FunctionHandle, int, int);
  int (*launch)(const LaunchConfig*, FunctionHandle, void**, void**);

  using Program = void*;
  int (*program_create)(Program*, const char*, const char*, int, const char* const*,
                        const char* const*);
  int (*program_compile)(Program, int, const char* const*);
  int (*program_destroy)(Program*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*binary_size)(Program, std::size_t*);
  int (*binary)(Program, char*);

  bool find(void* driver, void* compiler) {
    return resolve(driver, "cuInit", init) && resolve(driver, "cuDeviceGet", device_get) &&
           resolve(driver, "cuDeviceGetAttribute", device_get_attribute) &&
           resolve(driver, "cuDevicePrimaryCtxRetain", retain_primary) &&
           resolve(driver, "cuCtxSetCurrent", set_current) &&
           resolve(driver, "cuGetErrorString", error_string) &&
           resolve(driver, "cuMemGetInfo_v2", memory_info) &&
           resolve(driver, "cuMemAlloc_v2", allocate) && resolve(driver, "cuMemFree_v2", release) &&
           resolve(driver, "cuMemAllocAsync", allocate_async) &&
           resolve(driver, "cuMemFreeAsync", release_async) &&
           resolve(driver, "cuMemAllocHost_v2", allocate_host) &&
           resolve(driver, "cuMemFreeHost", release_host) &&
           resolve(driver, "cuMemcpyHtoD_v2", upload) &&
           resolve(driver, "cuMemcpyHtoDAsync_v2", upload_async) &&
           resolve(driver, "cuMemcpyDtoH_v2", download) &&
           resolve(driver, "cuMemcpyDtoHAsync_v2", download_async) &&
           resolve(driver, "cuMemcpyDtoDAsync_v2", copy_async) &&
           resolve(driver, "cuMemsetD8Async", clear_async) &&
           resolve(driver, "cuEventCreate", event_create) &&
           resolve(driver, "cuEventRecord", event_record) &&
           resolve(driver, "cuEventSynchronize", event_wait) &&
           resolve(driver, "cuEventDestroy_v2", event_destroy) &&
           resolve(driver, "cuStreamCreate", stream_create) &&
           resolve(driver, "cuStreamDestroy_v2", stream_destroy) &&
           resolve(driver, "cuStreamBeginCapture_v2", begin_capture) &&
           resolve(driver, "cuStreamEndCapture", end_capture) &&
           resolve(driver, "cuGraphInstantiateWithFlags", graph_instantiate) &&
           resolve(driver, "cuGraphDestroy", graph_destroy) &&
           resolve(driver, "cuGraphLaunch", graph_launch) &&
           resolve(driver, "cuGraphExecDestroy", graph_exec_destroy) &&
           resolve(driver, "cuModuleLoadData", module_load) &&
           resolve(driver, "cuModuleGetFunction", module_function) &&
           resolve(driver, "cuFuncSetAttribute", function_attribute) &&
           resolve(driver, "cuLaunchKernelEx", launch) && find_compiler(compiler);
  }

  bool find_compiler(void* compiler) {
    return resolve(compiler, "nvrtcCreateProgram", program_create) &&
           resolve(compiler, "nvrtcCompileProgram", program_compile) &&
           resolve(compiler, "nvrtcDestroyProgram", program_destroy) &&
           resolve(compiler, "nvrtcGetProgramLogSize", log_size) &&
           resolve(compiler, "nvrtcGetProgramLog", log) &&
           resolve(compiler, "nvrtcGetCUBINSize", binary_size) &&
           resolve(compiler, "nvrtcGetCUBIN", binary);
  }
};

const Driver* Driver::find() {
  static const Driver* const driver = []() -> const Driver* {
    static Driver found;
    return found.open() ? &found : nullptr;
  }();
  return driver;
}

bool Driver::open() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* compiler = driver != nullptr ? open_compiler() : nullptr;
  if (compiler == nullptr) return false;
  static Calls calls;
  if (!calls.find(driver, compiler)) return false;
  int device = 0;
  int major = 0;
  int minor = 0;
  if (calls.init(0) != 0 || calls.device_get(&device, 0) != 0 ||
      calls.retain_primary(&context_, device) != 0) {
    return false;
  }
  calls.device_get_attribute(&major, kComputeMajor, device);
  calls.device_get_attribute(&minor, kComputeMinor, device);
  calls.device_get_attribute(&multiprocessors_, kMultiprocessors, device);
  architecture_ = major * 10 + minor;
  calls_ = &calls;
  return true;
}

void Driver::check(int result, const char* what) const {
  if (result == 0) return;
  const char* text = nullptr;
  calls_->error_string(result, &text);
  const std::string words = text == nullptr ? std::to_string(result) : text;
  if (result == kOutOfMemory) {
    throw Error(ErrorKind::kUnavailable, "The GPU has no memory left: lower --memory-budget.");
  }
  throw Error(ErrorKind::kInternal, std::string("CUDA: ") + what + ": " + words);
}

void Driver::make_current() const { check(calls_->set_current(context_), "context"); }

std::size_t Driver::free_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  check(calls_->memory_info(&free, &total), "memory");
  return free;
}

DeviceAddress Driver::allocate(std::size_t bytes) const {
  DeviceAddress address = 0;
  check(calls_->allocate(&address, bytes), "allocation");
  return address;
}
void Driver::release(DeviceAddress address) const noexcept { calls_->release(address); }
DeviceAddress Driver::allocate_async(std::size_t bytes, StreamHandle stream) const {
  DeviceAddress address = 0;
  check(calls_->allocate_async(&address, bytes, stream), "allocation");
  return address;
}
void Driver::release_async(DeviceAddress address, StreamHandle stream) const noexcept {
  calls_->release_async(address, stream);
}
void* Driver::allocate_host(std::size_t bytes) const {
  void* memory = nullptr;
  check(calls_->allocate_host(&memory, bytes), "host allocation");
  return memory;
}
void Driver::release_host(void* memory) const noexcept { calls_->release_host(memory); }
void Driver::upload(DeviceAddress to, const void* from, std::size_t bytes) const {
  if (bytes > 0) check(calls_->upload(to, from, bytes), "upload");
}
void Driver::upload_async(DeviceAddress to, const void* from, std::size_t bytes,
                          StreamHandle s) const {
  if (bytes > 0) check(calls_->upload_async(to, from, bytes, s), "upload");
}
void Driver::download(void* to, DeviceAddress from, std::size_t bytes) const {
  if (bytes > 0) check(calls_->download(to, from, bytes), "download");
}
void Driver::download_async(void* to, DeviceAddress from, std::size_t bytes, StreamHandle s) const {
  if (bytes > 0) check(calls_->download_async(to, from, bytes, s), "download");
}
void Driver::copy_async(DeviceAddress to, DeviceAddress from, std::size_t bytes,
                        StreamHandle s) const {
  if (bytes > 0) check(calls_->copy_async(to, from, bytes, s), "copy");
}
void Driver::clear_async(DeviceAddress at, std::size_t bytes, StreamHandle stream) const {
  if (bytes > 0) check(calls_->clear_async(at, 0, bytes, stream), "clear");
}

EventHandle Driver::make_event() const {
  EventHandle event = nullptr;
  check(calls_->event_create(&event, 2), "event");  // without timing
  return event;
}
void Driver::record(EventHandle event, StreamHandle stream) const {
  check(calls_->event_record(event, stream), "event");
}
void Driver::wait(EventHandle event) const { check(calls_->event_wait(event), "event"); }
void Driver::release(EventHandle event) const noexcept { calls_->event_destroy(event); }

StreamHandle Driver::make_stream() const {
  StreamHandle stream = nullptr;
  check(calls_->stream_create(&stream, 1), "stream");  // apart from the default stream
  return stream;
}
void Driver::release(StreamHandle stream) const noexcept { calls_->stream_destroy(stream); }
void Driver::begin_capture(StreamHandle stream) const {
  check(calls_->begin_capture(stream, 2), "capture");  // relaxed: other threads go on
}
GraphHandle Driver::end_capture(StreamHandle stream) const {
  struct CUgraph_st* graph = nullptr;
  GraphHandle executable = nullptr;
  if (calls_->end_capture(stream, &graph) != 0 || graph == nullptr) return nullptr;
  if (calls_->graph_instantiate(&executable, graph, 0) != 0) executable = nullptr;
  calls_->graph_destroy(graph);
  return executable;
}
void Driver::launch(GraphHandle graph, StreamHandle stream) const {
  check(calls_->graph_launch(graph, stream), "graph");
}
void Driver::release(GraphHandle graph) const noexcept { calls_->graph_exec_destroy(graph); }

std::string Driver::compile(const std::string& source,
                            const std::vector<std::string>& options) const {
  void* program = nullptr;
  std::vector<const char*> list;
  list.reserve(options.size());
  for (const std::string& option : options) list.push_back(option.c_str());
  if (calls_->program_create(&program, source.c_str(), "bodega.cu", 0, nullptr, nullptr) != 0) {
    throw Error(ErrorKind::kInternal, "CUDA: the run-time compiler refused a program.");
  }
  const int result = calls_->program_compile(program, static_cast<int>(list.size()), list.data());
  std::size_t size = 0;
  std::string text;
  if (result != 0) {
    calls_->log_size(program, &size);
    text.resize(size);
    calls_->log(program, text.data());
  } else {
    calls_->binary_size(program, &size);
    text.resize(size);
    calls_->binary(program, text.data());
  }
  calls_->program_destroy(&program);
  if (result != 0) throw Error(ErrorKind::kInternal, "CUDA: a kernel does not compile: " + text);
  return text;
}

ModuleHandle Driver::load_module(const std::string& binary) const {
  ModuleHandle module = nullptr;
  check(calls_->module_load(&module, binary.data()), "kernels");
  return module;
}
FunctionHandle Driver::function(ModuleHandle module, const char* name) const {
  FunctionHandle function = nullptr;
  check(calls_->module_function(&function, module, name), name);
  return function;
}
void Driver::allow_shared(FunctionHandle function, int bytes) const {
  check(calls_->function_attribute(function, kMaxDynamicShared, bytes), "shared memory");
}

void Driver::launch(FunctionHandle function, Grid grid, unsigned threads, unsigned shared,
                    StreamHandle stream, const void* arguments, bool overlap) const {
  LaunchAttribute attribute;
  const LaunchConfig config{{grid.x, grid.y, grid.z}, {threads, 1, 1}, shared, stream, &attribute,
                            overlap ? 1U : 0U};
  void* parameters[] = {const_cast<void*>(arguments)};
  check(calls_->launch(&config, function, parameters, nullptr), "launch");
}

void DeviceMemory::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return;
  const Driver& driver = *Driver::find();
  release();
  address_ = driver.allocate(bytes);
  bytes_ = bytes;
}

void DeviceMemory::release() noexcept {
  if (address_ != 0) Driver::find()->release(address_);
  address_ = 0;
  bytes_ = 0;
}

}  // namespace bodega::ops::cuda
