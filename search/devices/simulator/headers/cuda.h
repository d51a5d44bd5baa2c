// CUDA's words, given their meaning on a CPU. Shared memory, function qualifiers and constants of the host are handled
// before this header sees a source (see cuda_dialect.py); everything else that CUDA has and C++ has not is here.
#pragma once

#define KSR_CUDA 1
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 4
#define CUDART_VERSION 12040
#define CUDA_VERSION 12040

#include "../runtime/abi.h"
#include "metal/scalars.h"
#include "metal/vectors.h"
#include "metal/math.h"
#include "metal/integers.h"
#include "metal/places.h"
#include "metal/lanes.h"
#include "metal/atomics.h"
#include "metal/traits.h"
#include "cuda/words.h"
#include "cuda/types.h"
#include "cuda/threads.h"
#include "cuda/math.h"
#include "cuda/integers.h"
#include "cuda/half.h"
#include "cuda/warp.h"
#include "cuda/atomics.h"
#include "cuda/memory.h"
#include "cuda/std.h"
#include "cuda/groups.h"
#include "cuda/cub.h"
#include "cuda/launch.h"
