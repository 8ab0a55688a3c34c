cimport cython

cpdef void split_numbers(
    const unsigned char[::1] types, const long long[::1] values, long long wanted,
    long long otherwise, long long[::1] out,
) noexcept
cpdef void split_codes(
    const unsigned char[::1] types, const long long[::1] values, long long wanted,
    long long otherwise, int[::1] out,
) noexcept
@cython.locals(size=cython.longlong, start=cython.longlong, to=cython.longlong)
cpdef bint copy_stretches(
    const unsigned char[::1] source, const long long[::1] starts, const long long[::1] offsets,
    unsigned char[::1] out,
) noexcept
