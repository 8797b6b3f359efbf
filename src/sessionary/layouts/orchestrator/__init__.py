"""The orchestrator layout: features in `.ai-session/`, following the contract on session state."""
