"""What drives the guest's devices: V4L2's controls, cameras of v4l2loopback that are fed, and ALSA's loopback."""

import ctypes
import fcntl
import json
import os
import struct
import threading
import time


def identifiers(descriptor: int) -> dict[str, int]:
    """Every control of a camera, buttons included, by its name."""
    found, identifier = {}, 0
    while True:
        query = bytearray(struct.pack("II32siiiiI2I", identifier | 0x80000000, 0, b"", 0, 0, 0, 0, 0, 0, 0))
        try:
            fcntl.ioctl(descriptor, 0xC0445624, query)
        except OSError:
            return found
        identifier, _, name = struct.unpack_from("II32s", query)
        found[name.split(b"\0")[0].decode()] = identifier


def controller(descriptor: int, name: str):
    """A function that sets a control; what takes time is done before."""
    identifier = identifiers(descriptor)[name]
    return lambda value: fcntl.ioctl(descriptor, 0xC008561C, bytearray(struct.pack("Ii", identifier, value)))


def set_control(descriptor: int, name: str, value: int) -> None:
    controller(descriptor, name)(value)


def get_control(path: str, name: str) -> int:
    descriptor = os.open(path, os.O_RDWR)
    try:
        answer = bytearray(struct.pack("Ii", identifiers(descriptor)[name], 0))
        fcntl.ioctl(descriptor, 0xC008561B, answer)
        return struct.unpack("Ii", answer)[1]
    finally:
        os.close(descriptor)


def occupy(path: str) -> int:
    """Takes a camera as another program would; it is free again when the descriptor is closed."""
    descriptor = os.open(path, os.O_RDWR)
    fcntl.ioctl(descriptor, 0xC0145608, bytearray(struct.pack("5I", 2, 1, 1, 0, 0)))
    return descriptor


class FedCamera(threading.Thread):
    """A camera of v4l2loopback: coded frames, written one after the other, round and round, each at its time."""

    def __init__(self, path: str, code: bytes, folder: str, size: tuple[int, int], rate: int):
        super().__init__(daemon=True)
        sizes = json.load(open(f"{folder}/sizes.json"))
        self.frames = open(f"{folder}/frames", "rb").read()
        self.places = [(sum(sizes[:n]), length) for n, length in enumerate(sizes)]
        self.rate, self.path = rate, path
        self.isFed, self.fallsSilent = True, 1 << 30
        #: Number of each frame, and when it was begun and done with, on the monotonic clock.
        self.written: list[tuple[int, float, float]] = []
        self.began = time.monotonic() + 1
        self.descriptor = os.open(path, os.O_RDWR)
        given = struct.pack("II2I4s5I", 2, 0, *size, code, 1, 0, size[0] * size[1] * 4, 1, 0)
        fcntl.ioctl(self.descriptor, 0xC0D05605, bytearray(given.ljust(208, b"\0")))
        fcntl.ioctl(self.descriptor, 0xC0CC5616, bytearray(struct.pack("5I", 2, 0, 0, 1, rate).ljust(204, b"\0")))

    def due(self, number: int) -> float:
        return self.began + number / self.rate

    def run(self) -> None:
        number = 0
        while True:
            time.sleep(max(0, self.due(number) - time.monotonic()))
            # A device that was starved leaves frames out, as a camera's clock does not wait.
            number = max(number, int((time.monotonic() - self.began) * self.rate))
            if self.isFed:
                place, length = self.places[number % len(self.places)]
                began = time.monotonic()
                os.write(self.descriptor, self.frames[place:place + length])
                self.written.append((number, began, time.monotonic()))
            number += 1


class Loudspeaker(threading.Thread):
    """Plays into ALSA's loopback, where a microphone hears it: a beep at each time of a list."""

    alsa = ctypes.CDLL("libasound.so.2")
    RATE, AHEAD = 48000, 0.4

    def __init__(self, device: str, beeps: list[float]):
        super().__init__(daemon=True)
        self.pcm = ctypes.c_void_p()
        self.check(self.alsa.snd_pcm_open(ctypes.byref(self.pcm), device.encode(), 0, 0))
        self.check(self.alsa.snd_pcm_set_params(self.pcm, 2, 3, 2, self.RATE, 0, 1_000_000))
        self.beeps = iter(beeps)
        self.written = self.base = 0
        #: When, on the monotonic clock, how many samples had been heard; and the first samples of beeps.
        self.heard: list[tuple[float, int]] = []
        self.beeped: list[int] = []
        wave = [8000 if n // 24 % 2 else -8000 for n in range(self.RATE // 20)]
        self.beep = struct.pack(f"<{2 * len(wave)}h", *[value for value in wave for _ in (0, 1)])

    @staticmethod
    def check(code: int) -> int:
        if code < 0:
            raise OSError(-code, os.strerror(-code))
        return code

    def play(self, samples: bytes) -> None:
        count = len(samples) // 4
        if self.alsa.snd_pcm_writei(self.pcm, samples, ctypes.c_ulong(count)) < 0:
            self.begin()
        else:
            self.written += count

    def begin(self) -> None:
        """At first, and after an underrun: some silence in advance, and off it goes."""
        self.check(self.alsa.snd_pcm_prepare(self.pcm))
        self.base, self.written = self.base + self.written, int(self.AHEAD * self.RATE)
        self.alsa.snd_pcm_writei(self.pcm, bytes(4 * self.written), ctypes.c_ulong(self.written))
        self.check(self.alsa.snd_pcm_start(self.pcm))

    def look(self) -> tuple[float, int]:
        delay, began = ctypes.c_long(), time.monotonic()
        if self.alsa.snd_pcm_delay(self.pcm, ctypes.byref(delay)) < 0:
            delay.value = 0
        now, played = time.monotonic(), self.base + self.written - delay.value
        # Where the two are apart, the sample was heard somewhen between.
        if now - began < 0.005:
            self.heard.append(((began + now) / 2, played))
        return now, played

    def run(self) -> None:
        silence = bytes(4 * self.RATE // 50)
        self.begin()
        due = next(self.beeps, None)
        while True:
            now, played = self.look()
            total = self.base + self.written
            if total - played > self.AHEAD * self.RATE:
                time.sleep(0.02)
                continue
            ends = now + (total - played) / self.RATE
            while due is not None and due < ends:
                due = next(self.beeps, None)
            if due is not None and due - ends < 0.02:
                self.play(silence[:4 * int((due - ends) * self.RATE)])
                self.beeped.append(self.base + self.written)
                self.play(self.beep)
            else:
                self.play(silence)

    @classmethod
    def shift_rate(cls, card: str, subdevice: int, value: int) -> None:
        """Makes the clock of a loopback slower, by parts of a hundred thousand above 100000."""
        control, name, setting = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        cls.check(cls.alsa.snd_ctl_open(ctypes.byref(control), card.encode(), 0))
        cls.alsa.snd_ctl_elem_id_malloc(ctypes.byref(name))
        cls.alsa.snd_ctl_elem_value_malloc(ctypes.byref(setting))
        for device in (0, 1):
            cls.alsa.snd_ctl_elem_id_clear(name)
            cls.alsa.snd_ctl_elem_id_set_interface(name, 3)
            cls.alsa.snd_ctl_elem_id_set_name(name, b"PCM Rate Shift 100000")
            cls.alsa.snd_ctl_elem_id_set_device(name, device)
            cls.alsa.snd_ctl_elem_id_set_subdevice(name, subdevice)
            cls.alsa.snd_ctl_elem_value_set_id(setting, name)
            cls.alsa.snd_ctl_elem_value_set_integer(setting, 0, ctypes.c_long(value))
            cls.check(cls.alsa.snd_ctl_elem_write(control, setting))
        cls.alsa.snd_ctl_close(control)
