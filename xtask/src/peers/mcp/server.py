# Serves the scenarios of `cargo xtask peers` with the PyPI package `mcp`, which is written by others: over standard input
# and output, or over HTTP on the port that is its argument. PEER_LOG is a file for what it notices.
import asyncio, os, sys
from mcp.server.mcpserver import MCPServer, Context
mcp = MCPServer("peer")
def note(word):
    with open(os.environ["PEER_LOG"], "a") as log:
        log.write(word + "\n")

@mcp.tool()
def add(a: int, b: int) -> str:
    return str(a + b)

@mcp.tool()
async def steps(ctx: Context) -> str:
    for step in range(1, 4):
        await ctx.report_progress(step, 3, f"step {step}")
    return "done"

@mcp.tool()
async def slow(ctx: Context) -> str:
    note("began")
    try:
        await asyncio.sleep(1000)
    except BaseException:
        note("cancelled")
        raise
    return "done"

def grown() -> str:
    note("grown")
    return "I am new"

@mcp.tool()
async def grow(ctx: Context) -> str:
    mcp.add_tool(grown)
    await ctx.notify_tools_changed()
    return "one more"

if len(sys.argv) > 1:
    mcp.run(transport="streamable-http", port=int(sys.argv[1]))
else:
    mcp.run(transport="stdio")
