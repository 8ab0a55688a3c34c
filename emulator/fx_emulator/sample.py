"""A scenario with every device and step of the emulator, which `fxf plugins --check` runs."""

from __future__ import annotations

SCENARIO = """
[scenario]
name = "emulator"
seed = 5

[target]
cpus = 2

[device.ring]
kind = "trace_provider"
size = 4096

[device.stream]
kind = "trace_provider"
size = 4096
mode = "streaming"

[device.tree]
kind = "vmo"
size = 4096

[device.syslog]
kind = "log_socket"
capacity = 4096

[[step]]
do = "inspect.create"
device = "tree"
path = "state"
value = "starting"

[[step]]
do = "trace.thread"
provider = "ring"
process = "app"
thread = "main"
script = [{ loop = 8, body = [{ slice = "work", body = [{ run = "5us", jitter = "2us" }] }] }]

[[step]]
do = "trace.thread"
provider = "stream"
process = "app"
thread = "streaming"
script = [{ loop = 8, body = [{ instant = "tick" }, { sleep = "1ms" }] }]

[[step]]
do = "log.thread"
socket = "syslog"
process = "app"
thread = "logging"
script = [{ loop = 4, body = [{ log = "alive" }, { sleep = "1ms" }] }]

[[step]]
do = "target.run"
for = "1ms"

[[step]]
do = "clock.jump"
by = "1ms"

[[step]]
do = "cpu.pstate"
cpu = 0
ratio = 0.5

[[step]]
do = "fault.bit_flip"
device = "ring"
bit = 3
store = 1000

[[step]]
do = "fault.torn_write"
device = "tree"
store = 1000

[[step]]
do = "fault.crash"
device = "tree"
stores = 1000

[[step]]
do = "fault.full"
device = "ring"
record = 1000

[[step]]
do = "fault.drop"
device = "syslog"
datagram = 1000

[[step]]
do = "target.suspend"
for = "1ms"

[[step]]
do = "target.run"

[[step]]
do = "target.save"

[[step]]
do = "target.stop"

[[step]]
do = "target.snapshot"
device = "ring"
as = "ring.tbuf"

[[step]]
do = "target.snapshot"
device = "syslog"
as = "syslog.fxlog"

[[step]]
do = "target.archive"
as = "all.fxt"

[[step]]
do = "target.crash"
"""
