"""A process that reads the GPUs once for each line it gets, a time in seconds, and prints what it has read."""

from __future__ import annotations

import json
import sys

from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.telemetry.gpus import GpuReader

if __name__ == "__main__":
    with GpuReader(sys.argv[1:] or None) as reader:
        for line in sys.stdin:
            print(json.dumps(to_plain(reader.read(float(line), float(line)))), flush=True)
