"""A TCP connection to a distant server: each byte takes half the round trip, and connecting takes one more round trip."""

import asyncio
import contextlib
import threading
import time


class Distance:
    """Forwards to a local port. `asked`: when each request left the client, by `time.monotonic`, and its first line. Only
    requests at the beginning of a received chunk are recorded."""

    def __init__(self, port, round_trip):
        self.asked = []
        self._target = port
        self._round_trip = round_trip
        self._writers = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _accept(self, reader, writer):
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, server_writer}
        # A distant client waits for the response to its SYN before it sends.
        connected = self._loop.time() + self._round_trip
        try:
            await asyncio.gather(
                self._carry(reader, server_writer, connected), self._carry(server_reader, writer, 0), return_exceptions=True)
        finally:
            self._writers -= {writer, server_writer}

    async def _carry(self, reader, writer, connected):
        # Bytes never overtake each other. Each waits only for its own delay.
        queue = asyncio.Queue()

        async def deliver():
            while (piece := await queue.get()) is not None:
                due, data = piece
                await asyncio.sleep(max(0, due - self._loop.time()))
                writer.write(data)
            writer.close()

        delivering = asyncio.ensure_future(deliver())
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                sent = max(self._loop.time(), connected)
                if connected and data[:4] in (b"GET ", b"POST"):
                    line = data.split(b"\r\n", 1)[0].decode(errors="replace")
                    self.asked.append((time.monotonic() + sent - self._loop.time(), line))
                queue.put_nowait((sent + self._round_trip / 2, data))
        queue.put_nowait(None)
        await delivering

    def hang_up(self):
        """Ends all connections and clears the recorded requests."""
        async def end():
            for writer in self._writers:
                writer.close()
            self.asked.clear()
        self._call(end())

    def close(self):
        async def end():
            self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        self._call(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
