"""What stands in a browser tab for packages that Pyodide does not have. On a machine nothing imports this room."""
