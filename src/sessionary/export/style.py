"""The style of the HTML page. Colours are variables, so that light and dark differ in one place."""

STYLE = """
:root { color-scheme: light dark; --page: #fff; --text: #1d2430; --dim: #5c6675; --line: #d9dee6;
  --user: #e9f1fd; --user-line: #2f6fd0; --agent-line: #3a8a55; --code: #f4f6f9; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --text: #dfe4ec; --dim: #98a2b3; --line: #323945;
  --user: #1b2739; --user-line: #6aa3f5; --agent-line: #6fc38c; --code: #1c2129; --bad: #ff8a80; } }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { font-size: .95rem; margin: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .85rem; color: var(--dim); }
dd { margin: 0; }
section { margin: 1rem 0; padding: .6rem .9rem; border-left: 3px solid var(--line); }
section.user { background: var(--user); border-color: var(--user-line); border-radius: 0 6px 6px 0; }
section.agent { border-color: var(--agent-line); }
section.outside { border-left-style: dashed; opacity: .75; }
header { display: flex; gap: 1rem; justify-content: space-between; align-items: baseline; }
time { color: var(--dim); font-size: .8rem; white-space: nowrap; }
details { margin: .4rem 0; }
details.sub { border: 1px solid var(--line); border-radius: 6px; padding: .4rem .8rem; margin: 1rem 0; }
summary { cursor: pointer; color: var(--dim); font-size: .88rem; }
summary b { color: var(--text); }
pre, code { font: .84rem/1.45 ui-monospace, monospace; background: var(--code); border-radius: 4px; }
code { padding: .1em .3em; }
pre { padding: .6rem .8rem; overflow-x: auto; white-space: pre-wrap; border: 1px solid var(--line); }
pre code { padding: 0; background: none; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; }
blockquote { margin: .5rem 0; padding-left: .9rem; border-left: 3px solid var(--line); color: var(--dim); }
.failed, .problem { color: var(--bad); }
footer { border-top: 1px solid var(--line); margin-top: 2rem; font-size: .85rem; color: var(--dim); }
a { color: var(--user-line); }
""".strip()
