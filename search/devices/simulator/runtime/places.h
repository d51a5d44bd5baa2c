// Lines together with the calls that led to them, numbered: a mark has room for a number, not for both.
#pragma once

#include "checking.h"

struct ksr_line_and_path {
    ksr_u32 line, path;
};

// Makes room for them; false when there is none.
bool ksr_prepare_places();

// The place (in a mark) of `line` after the calls of `path`; the line alone once there is no number left.
ksr_u32 ksr_place_with_calls(ksr_u32 path, ksr_u32 line);
ksr_line_and_path ksr_line_and_path_of(ksr_u32 place);
