"""A Card as HTML that holds all it needs, for a notebook and for a page.

It takes over the colours around it, so that it is legible on a dark page too.
A page may set --bad, --good, --quiet and --rule.
"""

import html as escaping

from parity.comparison.card_path import pieces
from parity.comparison.card_text import STYLES, marked, proof_of, took
from parity.numerics.words import number

#: The dark colours are those of a page, of Jupyter, VS Code and Colab.
LIGHT = ("--card-bad:var(--bad,#a03000);--card-good:var(--good,#00694e);"
         "--card-quiet:var(--quiet,#55595e);--card-rule:var(--rule,#dcdcd4);"
         "--card-tint:var(--tint,#fbf0d9)")
DARK = ("--card-bad:var(--bad,#ff9d70);--card-good:var(--good,#3ecaa0);"
        "--card-quiet:var(--quiet,#a6abb0);--card-rule:var(--rule,#363a3f);"
        "--card-tint:var(--tint,#352a14)")
STYLE = f"""<style>
.parity-card{{{LIGHT};
 font:15px/1.5 system-ui,"Segoe UI",Arial,sans-serif;
 max-width:60rem;margin:.4rem 0 1.2rem}}
@media (prefers-color-scheme:dark){{.parity-card{{{DARK}}}}}
[data-jp-theme-light="true"] .parity-card{{{LIGHT}}}
[data-jp-theme-light="false"] .parity-card,.vscode-dark .parity-card,
html[theme=dark] .parity-card{{{DARK}}}
""" + """
.parity-card code,.parity-card pre{font:13.5px/1.55 ui-monospace,
 "SF Mono","Cascadia Mono","DejaVu Sans Mono",Menlo,Consolas,monospace;
 background:none;color:inherit;padding:0;margin:0;overflow-wrap:anywhere}
.parity-card p{margin:.5rem 0;max-width:none;font:inherit}
.parity-card header{display:flex;flex-wrap:wrap;gap:.1rem 1rem;
 align-items:baseline;border-bottom:2px solid currentColor;
 padding-bottom:.4rem}
.parity-card .word{font-size:1.25rem;font-weight:700;
 text-transform:uppercase;letter-spacing:.01em}
.parity-card .strong{font-weight:600}
.parity-card .took{margin-left:auto}
.parity-card .good{color:var(--card-good)}
.parity-card .bad{color:var(--card-bad)}
.parity-card .dim,.parity-card dt{color:var(--card-quiet)}
.parity-card section{border-bottom:1px solid var(--card-rule);
 padding:.7rem 0 .6rem 2.1rem}
.parity-card h2{font:inherit;margin:0 0 .3rem;position:relative}
.parity-card h2 b{margin-right:.6rem}
.parity-card .count{position:absolute;left:-2.1rem;width:1.5rem;
 text-align:center;border:1px solid currentColor;border-radius:1rem;
 font-weight:700;line-height:1.4rem;font-size:.85rem}
.parity-card dl{display:grid;margin:0;gap:.1rem .9rem;
 grid-template-columns:max-content minmax(0,1fr) max-content}
.parity-card dt{grid-column:1;margin:0;font-weight:400}
.parity-card dd{grid-column:2;margin:0;min-width:0}
.parity-card dd.wide{grid-column:2/4}
.parity-card dd.place{grid-column:3;color:var(--card-quiet);
 text-align:right}
.parity-card pre{overflow-x:auto;white-space:pre}
.parity-card mark{background:var(--card-tint);color:inherit;
 font-weight:700;border-bottom:2px solid var(--card-bad)}
.parity-card ul{margin:.2rem 0;padding-left:1.1rem}
.parity-card .path{padding-top:.7rem;line-height:1.75}
@media (max-width:34rem){.parity-card section{padding-left:0}
 .parity-card .count{position:static;display:inline-block;
  margin-right:.5rem}
 .parity-card dl{grid-template-columns:max-content minmax(0,1fr)}
 .parity-card dd.wide{grid-column:2}
 .parity-card dd.place{grid-column:2;text-align:left}
 .parity-card pre{white-space:pre-wrap}}
</style>"""

#: How many columns of steps are shown: on a page they wrap.
PATH = 400


def html(card):
    """A Card as HTML, with its style."""
    return f"{STYLE}\n{body(card)}"


def body(card):
    """A Card as HTML, for a page that has STYLE."""
    style = STYLES.get(card.verdict, "warn")
    made = [f'<div class="parity-card"><header><span class="word {style}">'
            f"{_of(card.verdict)}</span> <span>{_of(card.summary)}</span>",
            f'<span class="dim took">{took(card)}</span>' if took(card) else "",
            "</header>"]
    if card.sentence:
        made.append(f"<p>{_of(card.sentence)}</p>")
    made += [_cause(cause, card) for cause in card.causes]
    made.append(_roundings(card))
    if card.path:
        steps = "".join(
            f'<span class="{kind}">{_of(words)}</span>' if kind
            else _of(words) for words, kind in pieces(card.path, PATH))
        made.append(f'<p class="path">{steps}</p>')
    made += [f"<p>{_of(words)}</p>" for words in (
        card.first, card.ending) if words]
    made += [f'<p class="dim">{_of(words)}</p>' for words in card.notes]
    return "".join([*made, "</div>"])


def _of(words):
    """Words that mark nothing."""
    return escaping.escape(str(words))


def _cause(cause, card):
    """One cause as a section."""
    style = "bad" if cause.what else "warn"
    one, two = card.frameworks
    more = (f" {one}", f" {two}") if one != two else ("", "")
    expressions = cause.expression_a, cause.expression_b
    shown = _marked(cause) if all(expressions) else [
        f"<code>{_of(each)}</code>" * bool(each) for each in expressions]
    told = all(expressions) and cause.in_a in expressions[0] and (
        cause.in_b in expressions[1])
    rows = []
    for side, name, value, expression, place in zip(
            "AB", more, (cause.in_a, cause.in_b), shown,
            (cause.place_a, cause.place_b)):
        words = expression if told or not value else f"<b>{_of(value)}</b>"
        if words or place:
            rows.append(f"<dt>{side}{_of(name)}</dt><dd>{words}</dd>"
                        f'<dd class="place"><code>{_of(place)}</code></dd>')
    if all(expressions) and not told:
        rows.append(f'<dd class="wide">{"".join(shown)}</dd>')
    if proof := proof_of(cause, card):
        rows.append(f'<dt>proof</dt><dd class="wide">{_of(proof)}</dd>')
    if cause.write:
        rows.append('<dt>write</dt><dd class="wide good"><code>'
                    f"{_of(cause.write)}</code></dd>")
    facts = "".join(f"<li>{_of(each)}</li>" for each in cause.evidence)
    return (f'<section><h2><span class="count {style}">{cause.number}</span>'
            f" <b>{_of(cause.what or 'not identified')}</b>"
            f"<code>{_of(cause.where)}</code></h2>"
            + (f"<dl>{''.join(rows)}</dl>" if rows else "")
            + (f"<ul>{facts}</ul>" if facts else "") + "</section>")


def _marked(cause):
    """Both expressions, what differs marked."""
    one, two, marks = marked(cause)
    made = []
    for words in (one, two):
        text, at = "", 0
        for start, end in marks:
            text += _of(words[at:start])
            at = start + len(words[start:end].rstrip())
            if at > start:
                text += f"<mark>{_of(words[start:at])}</mark>"
        text += _of(words[at:].rstrip())
        made.append(f'<pre tabindex="0">{text}</pre>')
    return made


def _roundings(card):
    """Where each side rounds, as a table."""
    rows = "".join(
        f"<dt>{side.upper()} rounds at</dt><dd><code>{_of(place)}</code> "
        f"{_of(dtype)}</dd>" + (
            "" if cost is None else
            f'<dd class="place">{number(cost)} off by it</dd>')
        for side, found in card.roundings.items()
        for place, dtype, cost in found)
    return f"<section><dl>{rows}</dl></section>" if rows else ""
