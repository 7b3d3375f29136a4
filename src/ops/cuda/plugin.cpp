// Compiled against the headers of MLX's CUDA wheel alone; everything else of the backend needs
// none.
#include <mlx/backend/cuda/device.h>
#include <mlx/backend/cuda/utils.h>

#include "ops/cuda/mlx_bridge.h"

namespace bodega::ops::cuda {
namespace {

namespace mx = mlx::core;

StreamHandle stream_of(const mx::Stream& stream) {
  mx::cu::CommandEncoder& encoder = mx::cu::get_command_encoder(stream);
  encoder.commit();
  return static_cast<cudaStream_t>(encoder.stream());
}

DeviceAddress address_of(const mx::array& array) {
  return reinterpret_cast<DeviceAddress>(mx::gpu_ptr<void>(array));
}

void adopt(mx::array& array, DeviceAddress memory, std::size_t bytes, int device,
           StreamHandle stream, MlxBridge::Release release) {
  auto* buffer = new mx::cu::CudaBuffer{reinterpret_cast<void*>(memory), bytes, device};
  array.set_data(mx::allocator::Data(
      mx::allocator::Buffer(buffer), [buffer, stream, release](mx::allocator::Buffer) {
        release(reinterpret_cast<DeviceAddress>(buffer->data), stream, buffer->device < 0);
        delete buffer;
      }));
}

}  // namespace
}  // namespace bodega::ops::cuda

extern "C" __attribute__((visibility("default")))
const bodega::ops::cuda::MlxBridge bodega_cuda_mlx_bridge;
const bodega::ops::cuda::MlxBridge bodega_cuda_mlx_bridge = {
    bodega::ops::cuda::MlxBridge::kVersion, bodega::ops::cuda::stream_of,
    bodega::ops::cuda::address_of, bodega::ops::cuda::adopt};
