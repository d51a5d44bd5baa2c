// Metal's words, given their meaning on a CPU. Address spaces, literals, swizzles and threadgroup storage are handled
// before this header sees a kernel (see dialect.py); everything else that Metal has and C++ has not is here.
#pragma once

#define __METAL__ 1
#define __METAL_MACOS__ 1
#define __METAL_VERSION__ 310
#define __HAVE_BFLOAT__ 1

#include "../runtime/abi.h"
#include "metal/scalars.h"
#include "metal/vectors.h"
#include "metal/math.h"
#include "metal/integers.h"
#include "metal/packing.h"
#include "metal/places.h"
#include "metal/lanes.h"
#include "metal/matrix.h"
#include "metal/atomics.h"
#include "metal/traits.h"
#include "metal/matrices.h"
#include "metal/complex.h"
#include "metal/mlx.h"
