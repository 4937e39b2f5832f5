"""The rules of the house that a compiler does not know.

A rule looks at one file and names its faults. It brings examples that it must catch and examples
that it must let pass; tidy.py holds every rule to them, and every file to every rule.
"""

import re
from dataclasses import dataclass, field
from typing import Callable

import cpp_text

FOLDERS = ("observability", "kernels", "net", "tensor", "ps", "engine", "tests")

# A folder may include these folders. net and tensor are strangers.
LAYERS = {
    "observability": {"observability"},
    "kernels": {"kernels", "observability"},
    "tensor": {"tensor", "kernels", "observability"},
    "net": {"net", "kernels", "observability"},
    "ps": {"ps", "net", "tensor", "kernels", "observability"},
    "engine": {"engine", "ps", "net", "tensor", "kernels", "observability"},
    "tests": set(FOLDERS),
}

# Headers that only some files may include; tests may include any. (header, files, why)
CONFINED = [
    (r"boost/(asio/ip|beast)/.*", r"net/real/.*", "sockets and HTTP belong to the real world"),
    (r"boost/asio/co_spawn\.hpp|boost/asio/detached\.hpp", r"net/scope\.cpp",
     "only TaskScope starts tasks"),
    (r"boost/asio/.*", r"net/.*|.*\.cpp", "headers get Asio through net/task.hpp"),
    (r"capnp/.*|kj/.*|.*\.capnp\.h", r"net/frame\.cpp|ps/protocol\w*\.cpp",
     "the wire is known to the protocol alone"),
    (r"xtensor.*", r"tensor/xt\.hpp|.*\.cpp", "tensors come through tensor/xt.hpp"),
    (r"prometheus/.*", r"observability/metrics\.cpp", "metrics hide their library"),
    (r"toml\+\+/.*", r"engine/config\w*\.cpp", "only the config reader reads TOML"),
    (r"dnnl.*|cblas.*|omp\.h", r"engine/layers/.*|engine/\w*backend\w*\.cpp",
     "only layers and backends compute with libraries"),
    (r"nlohmann/json\.hpp", r".*\.cpp", "slow to compile, so never in a header"),
    (r"CLI/.*", r"engine/(main|commands\w*)\.cpp", "the command line ends in the commands"),
    (r"openssl/.*", r"engine/safetensors\.cpp", "checksums belong to checkpoints"),
    (r"zlib\.h", r"engine/\w+\.cpp", "compressed data sets"),
    (r"cuda.*", r"kernels/cuda/.*|tensor/device_cuda\.cpp", "the GPU has one door"),
    (r"thread|mutex|shared_mutex|condition_variable|future|stop_token",
     r"net/real/thread_compute\.[hc]pp|observability/.*", "one thread runs the loop"),
    (r"fstream|filesystem", r"net/real/.*", "files are reached through Storage"),
    (r"sys/.*|unistd\.h|fcntl\.h|netinet/.*|arpa/.*|linux/.*|poll\.h|signal\.h",
     r"net/real/.*", "the operating system has one door"),
    (r"csignal", r"net/real/.*|engine/(launcher|measured_runs|role|main)\.cpp",
     "signals are for who runs processes"),
    (r"iostream", r"engine/main\.cpp", "output goes through Log or the command"),
]

# Words that only some files may use; tests may use any unless said otherwise. (words, files, why)
BANNED = [
    (r"::now\s*\(\s*\)", r"net/real/.*", "time comes from Clock"),
    (r"\bsleep_for\b|\bthis_thread\b|\busleep\b|\bnanosleep\b", r"net/real/.*",
     "waiting is done on Clock"),
    (r"\brandom_device\b|\bsrand\b|\bstd::rand\b|\bstd::time\b", r"(?!)",
     "chance comes from the seed"),
    (r"\bfopen\b|\b[io]?fstream\b|\bfreopen\b", r"net/real/.*",
     "files are reached through Storage"),
    (r"\bstd::j?thread\b|\bstd::async\b|\bpthread_(?!sigmask)\w+", r"net/real/thread_compute\.[hc]pp",
     "one thread runs the loop"),
    (r"\b\w*_mutex\b|\bstd::mutex\b|\bcondition_variable\b|\b(scoped|unique)_lock\b",
     r"net/real/thread_compute\.[hc]pp|observability/.*", "the loop needs no locks"),
    (r"\bco_spawn\b", r"net/scope\.cpp", "only TaskScope starts tasks"),
    (r"\bgetenv\b", r"net/real/.*|engine/(main|commands\w*)\.cpp",
     "the environment is read where the program begins"),
    (r"\bstd::(exit|_Exit|quick_exit|abort|terminate)\b",
     r"observability/check\.cpp|engine/(main|role)\.cpp|net/real/.*",
     "a component never ends the process"),
    (r"\bassert\s*\(", r"(?!)", "CHECK stays on in every build"),
]
# As above, for tests too.
BANNED_EVERYWHERE = [
    (r"\bdetached\b", r"(?!)", "nothing is detached: every task is in a TaskScope"),
    (r"\bco_await\s+(?:\w+::)*async_initiate\b", r"(?!)",
     "g++ 12 destroys captures twice: initiate in a function that returns the awaitable"),
]

LINES_MAX = 400
COLUMNS_MAX = 100
COLUMNS_MAX_PYTHON = 120  # no formatter wraps it


@dataclass
class Rule:
    """`check(path, text)` gives pairs of line and fault; `files` is a pattern of paths."""

    name: str
    files: str
    check: Callable
    caught: list  # pairs of path and text, each with a fault
    allowed: list = field(default_factory=list)


RULES = []


def rule(files, caught, allowed=()):
    """Enters a check into RULES, under the name of its function."""

    def enter(check):
        RULES.append(Rule(check.__name__, files, check, list(caught), list(allowed)))
        return check

    return enter


CPP = r".*\.(hpp|cpp|cu|cuh)"
CODE = CPP + r"|.*\.(py|capnp)|tools/(setup|build)|quickstart|run-tests|\.ci/run"
TEXT = CODE + r"|.*\.(md|txt|build|toml|yml|yaml)|meson_options\.txt|LICENSE|\.clang-(format|tidy)"


def is_test(path):
    return path.startswith("tests/")


@rule(CPP,
      caught=[("net/scope.hpp", '#include "ps/ids.hpp"\n'),
              ("net/scope.hpp", '#include "tensor/xt.hpp"\n'),
              ("tensor/arena.hpp", '#include "net/task.hpp"\n'),
              ("observability/log.cpp", '#include "net/time.hpp"\n'),
              ("engine/worker.cpp", '#include "tests/support/world.hpp"\n')],
      allowed=[("engine/worker.cpp", '#include "ps/ids.hpp"\n'),
               ("net/scope.cpp", '// #include "ps/ids.hpp"\n')])
def layers_point_down(path, text):
    for line, name in cpp_text.includes(cpp_text.code_of(text)):
        own, other = path.split("/")[0], name.split("/")[0]
        if other in LAYERS and own in LAYERS and other not in LAYERS[own]:
            yield line, f"{own} may not include {name}"


@rule(CPP,
      caught=[("ps/round.cpp", '#include "../net/task.hpp"\n'),
              ("ps/round.cpp", '#include "round.hpp"\n')],
      allowed=[("ps/round.cpp", '#include "ps/round.hpp"\n#include <vector>\n'),
               ("ps/protocol.cpp", '#include "net/protocol.capnp.h"\n')])
def includes_start_at_the_root(path, text):
    for match in re.finditer(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE):
        if match.group(1).split("/")[0] not in FOLDERS:
            yield cpp_text.line_of(text, match.start()), f"not from the root: {match[1]}"


@rule(CPP,
      caught=[("ps/server.cpp", "#include <boost/asio/ip/tcp.hpp>\n"),
              ("net/frame.hpp", "#include <capnp/message.h>\n"),
              ("ps/server.hpp", "#include <boost/asio/post.hpp>\n"),
              ("engine/model.cpp", "#include <dnnl.hpp>\n"),
              ("engine/report.hpp", "#include <nlohmann/json.hpp>\n"),
              ("engine/worker.cpp", "#include <boost/asio/co_spawn.hpp>\n"),
              ("engine/dataset.cpp", "#include <fstream>\n"),
              ("ps/server.cpp", "#include <unistd.h>\n"),
              ("ps/center.cpp", "#include <mutex>\n"),
              ("ps/server.cpp", '#include "net/protocol.capnp.h"\n'),
              ("engine/job.cpp", "#include <prometheus/counter.h>\n")],
      allowed=[("net/real/tcp_network.cpp", "#include <boost/asio/ip/tcp.hpp>\n"),
               ("ps/protocol.cpp", '#include "net/protocol.capnp.h"\n'),
               ("engine/worker.cpp", "#include <boost/asio/post.hpp>\n"),
               ("tests/unit/net/http_server_test.cpp", "#include <boost/asio/ip/tcp.hpp>\n")])
def headers_stay_confined(path, text):
    if is_test(path):
        return
    for line, name in cpp_text.includes(cpp_text.code_of(text)):
        for header, files, why in CONFINED:
            if re.fullmatch(header, name) and not re.fullmatch(files, path):
                yield line, f"{name} is for {files}: {why}"


@rule(CPP,
      caught=[("ps/server.cpp", "auto t = std::chrono::steady_clock::now();\n"),
              ("ps/server.cpp", "std::this_thread::sleep_for(1s);\n"),
              ("ps/plan.cpp", "std::random_device d;\n"),
              ("engine/report.cpp", 'std::ofstream file("x");\n'),
              ("engine/report.cpp", 'fopen("x", "r");\n'),
              ("ps/server.cpp", "std::thread t(run);\n"), ("ps/server.hpp", "std::mutex mutex_;\n"),
              ("engine/worker.cpp", "co_spawn(executor, run(), handler);\n"),
              ("engine/worker.cpp", "spawn(run(), asio::detached);\n"),
              ("tests/unit/x_test.cpp", "spawn(run(), asio::detached);\n"),
              ("net/channel.hpp", "co_await asio::async_initiate<T, void()>(f, t);\n"),
              ("ps/round.cpp", "assert(x);\n"), ("ps/round.cpp", "std::exit(1);\n"),
              ("ps/round.cpp", 'std::getenv("X");\n')],
      allowed=[("net/real/steady_clock.cpp", "std::chrono::steady_clock::now();\n"),
               ("ps/server.cpp", "const TimePoint begin = host_.clock.now();\n"),
               ("ps/server.cpp", "// nothing is detached, no std::thread\n"),
               ("ps/server.cpp", 'log.info("std::thread");\n'),
               ("ps/round.cpp", "static_assert(x);\n"),
               ("tests/unit/x_test.cpp", "std::thread t(run);\n")])
def banned_calls_stay_outside(path, text):
    code = cpp_text.code_of(text)
    for words, files, why in BANNED_EVERYWHERE + ([] if is_test(path) else BANNED):
        for match in re.finditer(words, code):
            if not re.fullmatch(files, path):
                yield cpp_text.line_of(code, match.start()), f"{match.group()}: {why}"


@rule(CPP,
      caught=[("ps/a.cpp", "int f() {\n  static int calls = 0;\n}\n"),
              ("ps/a.cpp", "static std::string last;\n"),
              ("ps/a.cpp", "thread_local std::vector<int> cache{};\n")],
      allowed=[("ps/a.cpp", "  static const std::vector<double> bounds{1.0};\n"),
               ("ps/a.hpp", "  static constexpr int x = 1;\n  static Result<int> open(int x);\n"),
               ("ps/a.hpp", "  static bool is(int x) { return x == 1; }\n")])
def nothing_static_changes(path, text):
    code = cpp_text.code_of(text)
    pattern = (r"^\s*(?:static|thread_local)\s+(?!const\b|constexpr\b|consteval\b)"
               r"[\w:<>,&* ]+?\s+\w+\s*[=;{]")
    for match in re.finditer(pattern, code, re.MULTILINE):
        yield cpp_text.line_of(code, match.end()), "static state that changes; give it an owner"


@rule(CPP,
      caught=[("ps/a.cpp", "auto t = [this]() -> Task<void> { co_return; };\n"),
              ("ps/a.cpp", "f([&x](int y) -> Task<int> {\n  co_return co_await g(y);\n});\n"),
              ("ps/a.cpp", "f([=] { co_await g(); });\n")],
      allowed=[("ps/a.cpp", "auto t = []() -> Task<void> { co_return; };\n"),
               ("ps/a.cpp", "sort(a, b, [&x](int l, int r) { return x[l] < r; });\nco_return;\n"),
               ("ps/a.cpp", "[[nodiscard]] int f() { co_return x[1]; }\n")])
def no_lambda_with_captures_is_a_coroutine(path, text):
    code = cpp_text.code_of(text)
    for position, body in cpp_text.capturing_lambdas(code):
        if re.search(r"\bco_(await|return|yield)\b", body):
            line = cpp_text.line_of(code, position)
            yield line, "name the coroutine, and give it its data by value"


@rule(CPP,
      caught=[("ps/a.cpp", "co_await run([this]() { work(); });\n"),
              ("ps/a.cpp", "x = co_await compute.run(\n    [&x, y]() mutable { x = y; }, 1s);\n")],
      allowed=[("ps/a.cpp", "auto work = [this]() { work(); };\nco_await run(work);\n"),
               ("ps/a.cpp", "co_await run([]() { work(); }, table[3]);\n")])
def no_captures_inside_an_awaited_expression(path, text):
    code = cpp_text.code_of(text)
    for position, expression in cpp_text.awaited_expressions(code):
        if cpp_text.capturing_lambdas(expression):
            line = cpp_text.line_of(code, position)
            yield line, "g++ 12 destroys captures twice; build the lambda before"


@rule(r".*\.hpp", caught=[("ps/a.hpp", "struct A {};\n")], allowed=[("ps/a.hpp", "#pragma once\n")])
def headers_begin_with_pragma_once(path, text):
    if not re.match(r"(\s*//[^\n]*\n)*#pragma once\n", text):
        yield 1, "begin with #pragma once"


@rule(CODE,
      caught=[("ps/a.cpp", "int x;\n" * (LINES_MAX + 1))],
      allowed=[("ps/a.cpp", "int x;\n" * LINES_MAX)])
def files_are_short(path, text):
    lines = text.count("\n")
    if lines > LINES_MAX:
        yield lines, f"{lines} lines; {LINES_MAX} is the most"


@rule(CODE,
      caught=[("ps/a.cpp", "x" * (COLUMNS_MAX + 1) + "\n"),
              ("tests/a.py", "x" * (COLUMNS_MAX_PYTHON + 1) + "\n")],
      allowed=[("ps/a.cpp", "é" * COLUMNS_MAX + "\n"),
               ("tests/a.py", "x" * COLUMNS_MAX_PYTHON + "\n"),
               ("ps/a.cpp", "// https://example.org/" + "x" * 200 + "\n")])
def lines_fit_the_page(path, text):
    columns_max = COLUMNS_MAX_PYTHON if path.endswith(".py") else COLUMNS_MAX
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > columns_max and "https://" not in line:
            yield number, f"{len(line)} columns; {columns_max} is the most"


@rule(TEXT,
      caught=[("ps/a.cpp", "\tint x;\n"), ("ps/a.cpp", "int x; \n"), ("ps/a.cpp", "int x;\r\n"),
              ("ps/a.cpp", "int x;")],
      allowed=[("ps/a.cpp", "int x;\n"), ("ps/a.cpp", "")])
def whitespace_is_clean(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line or line != line.rstrip():
            yield number, "a tab, a carriage return, or blanks at the end"
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "the last line does not end"


# Split, so that this file passes its own rule.
_LATER = r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b"


@rule(TEXT,
      caught=[("ps/a.cpp", "// TO" + "DO later\n")],
      allowed=[("ps/a.cpp", "// to do it later\n")])
def nothing_is_left_for_later(path, text):
    for match in re.finditer(_LATER, text):
        yield cpp_text.line_of(text, match.start()), f"{match.group()}: do it, or file it"


@rule(r"tests/.*\.cpp",
      caught=[("tests/a_test.cpp", "TEST(Round, Closes) {}\n"),
              ("tests/a_test.cpp", "TEST_F(Round, works) {}\n")],
      allowed=[("tests/a_test.cpp", "TEST(Round, closes_when_full) {}\n"),
               ("tests/a_test.cpp", "TEST_P(Round,\n       closes_when_full) {}\n")])
def tests_are_named_by_sentences(path, text):
    for match in re.finditer(r"\bTEST(?:_F|_P)?\(\s*\w+\s*,\s*(\w+)\s*\)", cpp_text.code_of(text)):
        name = match.group(1).removeprefix("DISABLED_")
        if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", name):
            yield cpp_text.line_of(text, match.start()), f"{match.group(1)} is no sentence"
