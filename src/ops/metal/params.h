#pragma once

namespace bodega::ops::metal {

#include "ops/metal/kernels/params.h"

}  // namespace bodega::ops::metal
