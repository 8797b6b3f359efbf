"""The maestro layout: work sessions (session.json) and the breadcrumbs that are left in them."""
