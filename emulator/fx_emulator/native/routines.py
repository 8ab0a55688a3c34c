"""Functions of libc that move memory, in machine code, so that each of their stores is seen.

Assembled by hand from the listing beside each; all return with the direction flag clear.
"""

from __future__ import annotations

TLS_DESCRIPTOR = bytes.fromhex(
    "488b4008"  # mov   8(%rax), %rax        the offset that the linker stored
    "c3"        # ret
)  # fmt: skip

_MEMCPY = bytes.fromhex(
    "4889f8"    # mov   %rdi, %rax
    "4889d1"    # mov   %rdx, %rcx
    "48c1e903"  # shr   $3, %rcx
    "f348a5"    # rep movsq
    "89d1"      # mov   %edx, %ecx
    "83e107"    # and   $7, %ecx
    "f3a4"      # rep movsb
    "c3"        # ret
)  # fmt: skip

_MEMMOVE = bytes.fromhex(
    "4889f8"      # mov   %rdi, %rax
    "4889f9"      # mov   %rdi, %rcx
    "4829f1"      # sub   %rsi, %rcx
    "4839d1"      # cmp   %rdx, %rcx         below: the target begins within the source
    "7212"        # jb    backwards
    "4889d1"      # mov   %rdx, %rcx
    "48c1e903"    # shr   $3, %rcx
    "f348a5"      # rep movsq
    "89d1"        # mov   %edx, %ecx
    "83e107"      # and   $7, %ecx
    "f3a4"        # rep movsb
    "c3"          # ret
    # backwards, byte by byte
    "488d7c17ff"  # lea   -1(%rdi,%rdx), %rdi
    "488d7416ff"  # lea   -1(%rsi,%rdx), %rsi
    "4889d1"      # mov   %rdx, %rcx
    "fd"          # std
    "f3a4"        # rep movsb
    "fc"          # cld
    "c3"          # ret
)  # fmt: skip

_MEMSET = bytes.fromhex(
    "4989f8"                  # mov   %rdi, %r8
    "400fb6c6"                # movzbl %sil, %eax
    "49b90101010101010101"    # movabs $0x0101010101010101, %r9
    "490fafc1"                # imul  %r9, %rax
    "4889d1"                  # mov   %rdx, %rcx
    "48c1e903"                # shr   $3, %rcx
    "f348ab"                  # rep stosq
    "89d1"                    # mov   %edx, %ecx
    "83e107"                  # and   $7, %ecx
    "f3aa"                    # rep stosb
    "4c89c0"                  # mov   %r8, %rax
    "c3"                      # ret
)  # fmt: skip

_STRCPY = bytes.fromhex(
    "4889f8"  # mov   %rdi, %rax
    "8a0e"    # mov   (%rsi), %cl
    "880f"    # mov   %cl, (%rdi)
    "48ffc6"  # inc   %rsi
    "48ffc7"  # inc   %rdi
    "84c9"    # test  %cl, %cl
    "75f2"    # jne   the load
    "c3"      # ret
)  # fmt: skip

_STPCPY = bytes.fromhex(
    "8a0e"    # mov   (%rsi), %cl
    "880f"    # mov   %cl, (%rdi)
    "48ffc6"  # inc   %rsi
    "48ffc7"  # inc   %rdi
    "84c9"    # test  %cl, %cl
    "75f2"    # jne   the load
    "488d47ff"  # lea -1(%rdi), %rax
    "c3"      # ret
)  # fmt: skip

_STRNCPY = bytes.fromhex(
    "4989f8"  # mov   %rdi, %r8
    "4885d2"  # test  %rdx, %rdx
    "7418"    # je    end
    "8a06"    # mov   (%rsi), %al
    "8807"    # mov   %al, (%rdi)
    "48ffc7"  # inc   %rdi
    "48ffca"  # dec   %rdx
    "84c0"    # test  %al, %al
    "7405"    # je    the fill
    "48ffc6"  # inc   %rsi
    "ebe8"    # jmp   test
    "4889d1"  # mov   %rdx, %rcx             the fill
    "f3aa"    # rep stosb
    "4c89c0"  # mov   %r8, %rax              end
    "c3"      # ret
)  # fmt: skip

ROUTINES = {
    "memcpy": _MEMCPY,
    "memmove": _MEMMOVE,
    "memset": _MEMSET,
    "strcpy": _STRCPY,
    "stpcpy": _STPCPY,
    "strncpy": _STRNCPY,
    # The checked variants have one more argument, the size of the destination.
    "__memcpy_chk": _MEMCPY,
    "__memmove_chk": _MEMMOVE,
    "__memset_chk": _MEMSET,
    "__strcpy_chk": _STRCPY,
    "__strncpy_chk": _STRNCPY,
}
