// Where in the source a call stands, as a default argument of what is called. Of a macro it is where the macro is used.
#pragma once

#if !defined(__clang__)
namespace std {
// GCC tells a call's column through this class alone, under this name and with these members.
struct source_location {
    struct __impl {
        const char* _M_file_name;
        const char* _M_function_name;
        unsigned _M_line, _M_column;
    };
    const __impl* at;
    static consteval source_location current(const void* here = __builtin_source_location()) {
        return {static_cast<const __impl*>(here)};
    }
};
}  // namespace std
#endif

namespace ksr {

// Lines past the last that has room, and columns, count as the last one.
constexpr ksr_u64 place(uint line, uint column) {
    constexpr uint lines = (1u << (KSR_PATH_AT - KSR_LINE_AT)) - 1, columns = (1u << (KSR_LINE_AT - KSR_COLUMN_AT)) - 1;
    return ksr_u64(line < lines ? line : lines) << KSR_LINE_AT | ksr_u64(column < columns ? column : columns) << KSR_COLUMN_AT;
}
#if !defined(__clang__)
constexpr ksr_u64 place(std::source_location here) { return place(here.at->_M_line, here.at->_M_column); }
#endif

}  // namespace ksr

// The same for a kernel's own function, of a type that no argument of its calls has.
struct ksr_called {
    ksr_u64 place;
    constexpr explicit ksr_called(ksr_u64 at) : place(at) {}
};

#if defined(__clang__)
#define KSR_HERE ksr::place(__builtin_LINE(), __builtin_COLUMN())
#else
#define KSR_HERE ksr::place(std::source_location::current())
#endif
#define KSR_AT ksr_u64 ksr_at = KSR_HERE
#define KSR_CALLED ksr_called ksr_at = ksr_called(KSR_HERE)
// What only the checked mode asks for.
#ifdef KSR_CHECKED
#define KSR_TRACED(...) __VA_ARGS__
#else
#define KSR_TRACED(...)
#endif
#define KSR_IN_LINE uint ksr_line = __builtin_LINE()
