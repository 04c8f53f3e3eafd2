"""Runs a command under a filter that lets landlock_create_ruleset fail with ENOSYS: a kernel without Landlock."""
import ctypes
import os
import struct
import sys

LD_W_ABS, JEQ, RET = 0x20, 0x15, 0x06
ENOSYS, ALLOW, CREATE_RULESET = 0x00050000 | 38, 0x7FFF0000, 444
program = b"".join(struct.pack("HBBI", *i) for i in ((LD_W_ABS, 0, 0, 0), (JEQ, 0, 1, CREATE_RULESET), (RET, 0, 0, ENOSYS), (RET, 0, 0, ALLOW)))
code = ctypes.create_string_buffer(program)


class Fprog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
if libc.prctl(38, 1, None, 0, 0) != 0 or libc.prctl(22, 2, ctypes.addressof(Fprog(4, ctypes.addressof(code))), 0, 0) != 0:
    sys.exit("prctl: %s" % os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
