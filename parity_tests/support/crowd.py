"""A class of pupils before `parity read --serve`, and connections that hang.

    python -m parity_tests.support.crowd 8750 [HOW_MANY]

asks the server on that port for so many pages at the same moment, every other
one for a text of its own, and again until each text is read; then holds as many
connections as there is room for, silent or slow, and asks behind them. It
prints what the page docs/robustness.md says of the server.
"""

import asyncio
import collections
import re
import sys
import time

from parity.reading import serving
from parity_tests.support.serving import hanging, request, status


async def answer(port, target):
    """(bytes of an answer, the seconds that it took)."""
    start = time.monotonic()
    reader, writer = await asyncio.open_connection(serving.ADDRESS, port)
    writer.write(request(target))
    content = await reader.read()
    writer.close()
    return content, time.monotonic() - start


async def crowd(port, count):
    """Everybody at once, then those whose text waits until it is read."""
    targets = ["/" if i % 2 else f"{serving.READ}?text=3+May+{1900 + i}"
               for i in range(count)]
    start = time.monotonic()
    answers = await asyncio.gather(*(answer(port, each) for each in targets))
    kinds = collections.Counter(status(content) for content, _ in answers)
    slowest = max(seconds for _, seconds in answers)
    print(f"{count} requests at once: answered in {slowest:.1f} s at most; "
          + ", ".join(f"{many} of status {each}"
                      for each, many in sorted(kinds.items())))

    async def read(target):
        while status(content := (await answer(port, target))[0]) != 200:
            await asyncio.sleep(int(re.search(
                rb"Retry-After: (\d+)", content)[1]))
    await asyncio.gather(*map(read, targets[::2]))
    print(f"every text read after {time.monotonic() - start:.0f} s")


async def behind(port):
    """One who asks while every connection is held."""
    held = [asyncio.create_task(hanging((serving.ADDRESS, port), i % 2))
            for i in range(serving.CONNECTIONS)]
    await asyncio.sleep(1)
    content, seconds = await answer(port, "/")
    lasted = await asyncio.gather(*held)
    print(f"{len(held)} connections held, half of them silent: ended after "
          f"{min(lasted):.1f} to {max(lasted):.1f} s; who asked behind them "
          f"had status {status(content)} after {seconds:.1f} s")


async def main(port, count=300):
    """Both, one after the other."""
    await crowd(int(port), int(count))
    await behind(int(port))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
