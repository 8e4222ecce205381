"""Asks numa mcp questions whose answers are known: mcp_client.py NUMA DIRECTORY.

Prints one line for each answer that is right; the first wrong one ends the program."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def ask(session, tool, **arguments):
    """The answer of a tool, as a value, and whether it is an error."""
    result = await session.call_tool(tool, arguments)
    text = result.content[0].text
    is_error = getattr(result, "is_error", None)
    if is_error is None:
        is_error = result.isError
    return text if is_error else json.loads(text), bool(is_error)


async def questions(session):
    asked = 0

    def right(what, is_right, answer):
        nonlocal asked
        assert is_right, f"{what}: {answer}"
        asked += 1
        print(f"right: {what}")

    tools = (await session.list_tools()).tools
    names = [tool.name for tool in tools]
    right("tools", "findings" in names and "plan" in names and len(names) == 7, names)

    found, _ = await ask(session, "list_recordings")
    listed = [one["recording"] for one in found["recordings"]]
    right("recordings", listed == ["deep/good.json", "spread.json"], listed)

    found, _ = await ask(session, "list_series", recording="spread.json")
    listed = [one["series"] for one in found["series"]]
    right("series", listed == ["vmstat.numa_local", "vmstat.numa_other"], found)

    found, _ = await ask(session, "findings", recording="spread.json")
    right("findings", found["problems"][0]["rule"] == "remote-allocation" and found["locality"]["word"] == "mixed", found)

    found, _ = await ask(session, "findings", recording="deep/good.json", from_seconds=1, to_seconds=3)
    right("findings of a range", found["problems"] == [] and found["recording"]["samples"] == 21, found)

    found, _ = await ask(session, "statistics", recording="spread.json", series=["vmstat.*", "locality"])
    rates = {one["series"]: one for one in found["series"]}
    value = found["formulas"][0]["value"]
    is_right = abs(value - 75.05) < 1e-6 and rates["vmstat.numa_local"]["most"] == 15010.0
    right("statistics", is_right, found)

    found, _ = await ask(session, "compare", before="spread.json", after="deep/good.json")
    gone = [finding["rule"] for finding in found["gone"]]
    right("comparison", found["outcome"] == "better" and gone == ["remote-allocation"], found)

    machine = "package:2 node:2(mem=32G) core:4 pu:2"
    found, _ = await ask(session, "topology", synthetic=machine)
    right("topology", (found["nodes"], found["cores"], found["cpus"]) == (4, 16, 32), found)

    found, _ = await ask(session, "plan", synthetic=machine, cores="4", launcher="openmp", command=["./solver"])
    steps = found["plan"]["steps"]
    is_right = len(steps) == 4 and len({step["node"] for step in steps}) == 1
    right("plan", is_right and "OMP_PLACES" in found["launcher"]["lines"], found)

    error, is_error = await ask(session, "findings", recording="../secret.json")
    right("nothing outside", is_error and "outside of" in error, error)

    error, is_error = await ask(session, "findings", recording="linked.json")
    right("nothing behind a link", is_error and "outside of" in error, error)

    error, is_error = await ask(session, "statistics", recording="spread.json", series=["numa_locl"])
    right("an error that helps", is_error and "did you mean" in error, error)

    error, is_error = await ask(session, "findings", recording="spread.json", from_seconds=60)
    right("an empty range", is_error and "ends after 4.9 s" in error, error)
    print(f"{asked} answers are right")


async def main():
    numa, directory = sys.argv[1:]
    server = StdioServerParameters(command=numa, args=["mcp", directory])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await questions(session)


asyncio.run(main())
