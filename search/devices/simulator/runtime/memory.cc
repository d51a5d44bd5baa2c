// The four functions that a compiler may call for plain C++ code. Kernels are linked with nothing else.
typedef __SIZE_TYPE__ size;

extern "C" void* memcpy(void* to, const void* from, size bytes) {
    for (size i = 0; i < bytes; ++i) static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
    return to;
}

extern "C" void* memmove(void* to, const void* from, size bytes) {
    if (to <= from) return memcpy(to, from, bytes);
    for (size i = bytes; i-- > 0;) static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
    return to;
}

extern "C" void* memset(void* to, int value, size bytes) {
    for (size i = 0; i < bytes; ++i) static_cast<char*>(to)[i] = static_cast<char>(value);
    return to;
}

extern "C" int memcmp(const void* left, const void* right, size bytes) {
    for (size i = 0; i < bytes; ++i)
        if (int difference = static_cast<const unsigned char*>(left)[i] - static_cast<const unsigned char*>(right)[i])
            return difference;
    return 0;
}
