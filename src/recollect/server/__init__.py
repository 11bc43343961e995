"""The server: HTTP API, web pages and MCP. Each module imports its own heavy libraries: import only what is needed."""
