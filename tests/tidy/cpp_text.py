"""C++ as text: finds words outside comments and strings, and where lambdas begin and end."""

import re

_TOKEN = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",
    re.DOTALL)
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
_LAMBDA = re.compile(r'(?<![\w\])\[])\[(?P<capture>[^\[\]\n]*[^\[\]\s][^\[\]\n]*)\](?!\])')


def code_of(text):
    """The text with comments and literals blanked out; positions and lines stay the same."""

    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group())

    # The names in #include lines are literals only by their looks.
    kept = {match.start(): match for match in _INCLUDE.finditer(text)}
    blanked = _TOKEN.sub(blank, text)
    for start, match in kept.items():
        blanked = blanked[:start] + match.group() + blanked[match.end():]
    return blanked


def includes(text):
    """Pairs of line number and included name."""
    return [(line_of(text, match.start(2)), match.group(2)) for match in _INCLUDE.finditer(text)]


def line_of(text, position):
    return text.count('\n', 0, position) + 1


def _matching(code, start, opening, closing):
    depth = 0
    for position in range(start, len(code)):
        if code[position] == opening:
            depth += 1
        elif code[position] == closing:
            depth -= 1
            if depth == 0:
                return position
    return len(code)


def capturing_lambdas(code):
    """Pairs of position and body of each lambda that captures."""
    found = []
    for match in _LAMBDA.finditer(code):
        position = match.end()
        rest = re.match(r'\s*', code[position:]).end() + position
        if code[rest:rest + 1] == '(':
            rest = _matching(code, rest, '(', ')') + 1
        elif code[rest:rest + 1] != '{':
            continue
        tail = re.compile(r'[\w\s:<>,&*\->]*\{').match(code, rest)
        if tail:
            end = _matching(code, tail.end() - 1, '{', '}')
            found.append((match.start(), code[tail.end():end]))
    return found


def awaited_expressions(code):
    """Pairs of position and text of each co_await, up to the end of its statement."""
    found = []
    for match in re.finditer(r'\bco_await\b', code):
        end, depth = match.end(), 0
        while end < len(code) and not (code[end] == ';' and depth == 0):
            depth += {'(': 1, '{': 1, ')': -1, '}': -1}.get(code[end], 0)
            if depth < 0:
                break
            end += 1
        found.append((match.start(), code[match.start():end]))
    return found
