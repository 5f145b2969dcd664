"""Deque's axe-core in a page: rules of accessibility by script. Its JavaScript comes in a package of PyPI."""

import functools
import importlib.util
import json
import pathlib

#: What the rules are for: WCAG 2.2 A and AA, and what axe calls best practices.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@functools.cache
def _script() -> str:
    package = importlib.util.find_spec("selenium_axe_python")
    return (pathlib.Path(package.origin).parent / "axe-core" / "axe.min.js").read_text()


def findings(browser) -> list[str]:
    """Each violation of a rule, with the first elements that it is about."""
    if not browser.evaluate("typeof window.axe === 'object'"):
        browser.evaluate(f"(() => {{ {_script()}; return true; }})()")
    run = "axe.run(document, %s).then((found) => found.violations.map((v) => ({ id: v.id, nodes: v.nodes.map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')) })))"
    options = json.dumps({"runOnly": {"type": "tag", "values": TAGS}, "resultTypes": ["violations"]})
    return [f"{v['id']}: {len(v['nodes'])}, {'; '.join(v['nodes'][:3])}" for v in browser.evaluate(run % options)]
