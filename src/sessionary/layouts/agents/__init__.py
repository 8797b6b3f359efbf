"""Read-only layouts of other agents, one module each; `layouts.registry` lists them."""
