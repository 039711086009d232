"""Runs as a child behind walls, and tries what a broken decoder would be made to try."""

import ctypes
import mmap
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from fragdex import ByteRange


def tried(do):
    """ "" where it went well, else the name of what was raised."""
    try:
        do()
    except BaseException as error:  # noqa: BLE001
        return type(error).__name__
    return ""


def reach(kind, address):
    with socket.socket(kind, socket.SOCK_STREAM) as one:
        one.settimeout(5)
        one.connect(address)


def datagrams(places):
    """Sends to sockets that have names in every way there is; those that were not refused."""
    families = [getattr(socket, name) for name in dir(socket) if name.startswith("AF_")]
    kinds = [getattr(socket, name) for name in dir(socket) if name.startswith("SOCK_")]
    went = []
    for family in sorted({int(one) for one in families}):
        for kind in sorted({int(one) for one in kinds}):
            for make in (socket.socket, lambda *how: socket.socketpair(*how)[0]):
                with suppress(OSError, ValueError), make(family, kind) as one:
                    one.settimeout(1)
                    for place in places:
                        with suppress(OSError, TypeError):
                            one.sendto(b"out", place)
                            went.append([family, kind, place])
                        with suppress(OSError, TypeError):
                            one.sendmsg([b"out"], [], 0, place)
                            went.append([family, kind, place])
    return {"went": went}


def ways_out(port, unix, database, other, outside, parent):
    """What each attempt came to."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number, *arguments):
        if libc.syscall(number, *arguments) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def start():
        subprocess.run(["/bin/sh", "-c", "exit 0"], check=True)

    def write(path):
        with open(path, "a") as file:
            file.write("x")

    return {
        "loopback": tried(lambda: reach(socket.AF_INET, ("127.0.0.1", port))),
        "loopback 6": tried(lambda: reach(socket.AF_INET6, ("::1", port))),
        "metadata": tried(lambda: reach(socket.AF_INET, ("169.254.169.254", 80))),
        "datagram": tried(
            lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))
        ),
        "unix socket": tried(lambda: reach(socket.AF_UNIX, unix)),
        "abstract socket": tried(lambda: reach(socket.AF_UNIX, "\0" + Path(unix).name)),
        "read database": tried(lambda: Path(database).read_bytes()),
        "list data": tried(lambda: os.listdir(Path(database).parent)),
        "read other": tried(lambda: Path(other, "secret").read_bytes()),
        "write other": tried(lambda: write(Path(other, "mine"))),
        "read passwords": tried(lambda: Path("/etc/shadow").read_bytes()),
        "read environment": tried(lambda: Path(f"/proc/{parent}/environ").read_bytes()),
        "read memory": tried(lambda: Path(f"/proc/{parent}/mem").open("rb").read(1)),
        "write outside": tried(lambda: write(outside)),
        "write interpreter": tried(lambda: write(os.__file__)),
        "be root": tried(lambda: os.setresuid(0, 0, 0)),
        "mount": tried(lambda: call(165, b"none", b"/mnt", b"tmpfs", 0, 0)),
        "signal parent": tried(lambda: os.kill(parent, 0)),
        "debug parent": tried(lambda: call(101, 16, parent, 0, 0)),
        "io_uring": tried(lambda: call(425, 1, 0)),
        "start": tried(start),
        "fork": tried(lambda: os._exit(0) if os.fork() == 0 else os.wait()),
    }


def rights():
    status = dict(
        line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines()
    )
    return {
        "user": os.getresuid(),
        "capabilities": [int(status[f"Cap{n}"], 16) for n in ("Inh", "Prm", "Eff", "Bnd", "Amb")],
        "no_new_privileges": status["NoNewPrivs"] == "1",
        "seccomp": int(status["Seccomp"]),
        "groups": os.getgroups(),
    }


def work():
    """What it has to be able to do: threads, files of its own."""
    seen = []
    thread = threading.Thread(target=seen.append, args=(1,))
    thread.start()
    thread.join()
    Path("own").mkdir()
    Path("own", "file").write_text("x")
    Path("own", "file").rename("moved")
    return {"own": Path("moved").read_text(), "threads": len(seen), "stands": os.getcwd()}


def take(megabytes):
    held = [bytes(1 << 20) for _ in range(megabytes)]  # of zeros that nobody wrote
    return {"held": len(held)}


def leave():
    """A program that would outlive this process, in a session of its own."""
    left = subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
    return {"pid": left.pid}


def fill(megabytes):
    with open("large", "wb") as file:
        file.writelines(b"x" * (1 << 20) for _ in range(megabytes))
    return {}


def burn():
    while True:
        pass


def fill_memory():
    """Take what may be taken, to the last page."""
    held = []
    for size in (1 << 20, mmap.PAGESIZE):
        with suppress(OSError):
            while True:
                held.append(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    return held


def go_on_without_memory():
    held = fill_memory()
    while held:
        pass


def lose_the_error(memory):
    held = fill_memory() if memory else []
    raise SystemError("error return without exception set", len(held))


def clear_up_without_memory():
    """An error passes a `with` far inside a function, where its place is a number to be made."""
    inside, numbers = {"suppress": suppress}, [0] * (1 << 20)
    exec("def pass_on(do):\n" + " a = 1\n" * 2000 + " with suppress(OSError):\n  do()", inside)

    def take_all():
        numbers[0] = fill_memory()
        for place in range(1, len(numbers)):  # what Python has put by for numbers, too
            numbers[place] = place + (1 << 20)

    inside["pass_on"](take_all)


def die(how):
    print("last words", flush=True)
    if isinstance(how, str):
        import signal

        if how in ("SIGKILL", "SIGTERM"):
            signal.pthread_kill(threading.main_thread().ident, getattr(signal, how))
        os.kill(os.getpid(), getattr(signal, how))
    os._exit(how)


def read(files):
    with open(files[0]) as file:
        return {"text": file.read()}


def files_elsewhere(source):
    """A file that is called as if it lay elsewhere."""
    Path("made").write_bytes(source.read_up_to(ByteRange(0, 4)))
    return {"files": ["../../made"]}


def main(channel):
    def ask(number):
        answer, files = channel.ask(number=number)
        with open(files[0]) as file:
            return {"answer": answer, "text": file.read()}

    def ask_without_memory():
        """No memory for the next message."""

        def receive(*_):
            raise MemoryError

        socket.recv_fds = receive
        channel.ask(number=1)
        channel.ask(number=2)

    jobs = (
        ways_out, datagrams, rights, work, take, leave, fill, burn, die, ask, read,
        go_on_without_memory, lose_the_error, clear_up_without_memory, ask_without_memory,
    )  # fmt: skip
    channel.serve({job.__name__: job for job in jobs} | {"path": lambda: {"path": sys.path}})
