"""The maestro layout: work sessions (session.json) and their breadcrumbs."""
