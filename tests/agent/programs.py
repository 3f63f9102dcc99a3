"""Programs that stand where a kernel would: each does what its name says. Real processes, real sockets."""

SLEEP = "import time; print('up'); time.sleep(600)"

# Knows the agent as a kernel with the extension does; `serve(notice)` says what to do about a notice.
_LINKED = """
import json, os, signal, socket, sys, time
link = socket.socket(socket.AF_UNIX)
link.connect(os.environ["PADDLE_GPU_AGENT"])
lines = link.makefile("rb")
def send(kind, **fields):
    link.sendall(json.dumps({"kind": kind, **fields}).encode() + b"\\n")
def served(**fields):
    send("Served", **{"outcome": "saved", "snapshot": "/snapshots/7", "step": 7, "seconds": 0.1, **fields})
send("Hello", role="kernel", pid=os.getpid())
"""
_SERVE = """
send("Ready")
print("up")
for line in lines:
    message = json.loads(line)
    print(message["kind"], message)
    if message["kind"] == "Notice":
        serve(message["notice"])
"""


def linked(serve: str, before: str = "") -> str:
    """A kernel with the extension; ``serve`` is the body of ``serve(notice)``, ``before`` runs before Ready."""
    body = "".join(f"    {line}\n" for line in serve.strip().splitlines())
    return f"{_LINKED}\ndef serve(notice):\n{body}\n{before}\n{_SERVE}"


SAVES = linked("served()")
SAVES_WHEN_TOLD_TWICE = linked("if notice['remaining_s'] < 10: served()")
IGNORES_EVERYTHING = linked("pass", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
CRASHES_WHILE_SAVING = linked("os.kill(os.getpid(), signal.SIGSEGV)")
EXITS_RIGHT_AFTER_ITS_ANSWER = linked("served(); os._exit(143)")
# Its last message is still on its way when the process is gone.
IS_HEARD_AFTER_ITS_END = linked("""
if os.fork():
    os._exit(143)
time.sleep(0.15)
served()
""")
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); time.sleep(600)"
SAVES_ON_SIGTERM = """
import os, signal, time
def save(*_):
    time.sleep(1)  # longer than a kernel has that nothing is expected of
    print("saved")
    os._exit(0)
signal.signal(signal.SIGTERM, save)
print("up")
time.sleep(600)
"""

# Parts of a linked kernel.
FORKS_A_WORKER = """
if os.fork() == 0:
    signal.signal(signal.SIGTERM, lambda *_: print("worker heard"))
    while True:
        time.sleep(0.05)
"""
DEAF_UNTIL_A_FILE_GO = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf")
while not os.path.exists("go"):
    time.sleep(0.01)
"""

LEAVES_ORPHANS = """
import os, subprocess, sys, time
sleeper = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"]
for session in (False, True):
    print(subprocess.Popen(sleeper, start_new_session=session).pid)
os.system("(setsid sleep 600 & echo $!)")
time.sleep(600)
"""
SAYS_INTERRUPTED = """
import time
print("up")
try:
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted")
    time.sleep(600)
"""
PRINTS_ENVIRONMENT = "import os, time; [print(f'{k}={v}') for k, v in sorted(os.environ.items())]; time.sleep(600)"
PRINTS_ITS_PID = "import os, time; print(os.getpid()); time.sleep(600)"
