"""The page in the browser: `sessionary serve`. Calls `workspace`; the page itself is in `static`.

app         the routes
session_routes  the routes of one session
requests    bodies of requests, and answers
guard       who may ask: host, origin, token; the headers of every answer
library     the sessions of all homes, under keys for addresses
details     what the drawer of a session shows; `branches` has the tree of what was left
images      the images of messages
transcript  the stream of a conversation, and of what is added to it
parts       messages as JSON, cut to what a page shows at first
rendering   Markdown and code as HTML that cannot act
actions     changes of sessions, with preview and undo; `exports` streams an export
overview    tokens and cost of all sessions, and what projects have; `plots` draws them as SVG
charts      the plots of one session, and the board of a feature; `timelines` makes the plots
diffing     two sessions beside each other
streams     answers that arrive while they are made
finding     the stream of a search
serving     the socket, the link, and the server on it
"""
