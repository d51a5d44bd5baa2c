// The functions that a kernel may call: the scheduler's, and the mathematics that it would otherwise link.
#include <math.h>

#include "process.h"

namespace {

float exp10_of(float x) { return float(pow(10.0, double(x))); }
float rsqrt_of(float x) { return 1.0f / sqrtf(x); }
double exp10_of_double(double x) { return pow(10.0, x); }

}  // namespace

const ksr_runtime runtime = {ksr_block, ksr_pause, ksr_enter, expf,  exp2f, exp10_of, logf,   log2f,  log10f, sinf,
                             cosf,      tanf,      asinf, acosf, atanf,    sinhf,  coshf,  tanhf,  asinhf,
                             acoshf,    atanhf,    rsqrt_of, atan2f, powf, fmodf,  ldexpf, frexpf,
                             erff, erfcf, expm1f, log1pf, cbrtf, lgammaf, tgammaf,
                             {exp, exp2, exp10_of_double, log, log2, log10, sin, cos, tan, asin, acos, atan, sinh,
                              cosh, tanh, asinh, acosh, atanh, erf, erfc, expm1, log1p, cbrt, lgamma, tgamma, atan2,
                              pow, fmod},
                             fail_assertion};
