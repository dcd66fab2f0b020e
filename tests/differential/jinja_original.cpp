// llama.cpp's own Jinja engine as a server: one JSON line with a template in, one JSON line with what it renders out.
//
//   in   {"template": str, "values": {...}, "mark_input": true, "now": 1709251199, "trace": false}
//   out  {"text": str, "parts": [[str, is_input], ...]}    what it rendered
//        {"b64": str, "parts": [[str, is_input], ...]}     the same, every string in base64, if a part is not UTF-8
//        {"error": str, "stage": "request" | "lexer" | "parser" | "values" | "runtime"}
//        {"crash": "signal 8" | "timeout" | "memory"}      what the engine does not survive
//
// With "trace", "nodes" counts the syntax tree's nodes and "calls" the built-in functions that were reached.
//
// 1. The lines that one read returns are a batch, and a forked child answers them in order.
// 2. If the child dies, the first case without an answer is asked again in a child that has answered nothing else.
// 3. If that dies too, the case is a crash. The rest of the batch goes on in another child.

#include "base64.hpp"
#include "jinja/lexer.h"
#include "jinja/parser.h"
#include "jinja/runtime.h"
#include "json.h"

#include <cstdlib>
#include <map>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using std::string;
using counts = std::map<string, int>;

static const int SECONDS = 2;                 // of processor time for one case
static const rlim_t MEMORY = rlim_t(1) << 30; // bytes of address space
static const rlim_t STACK = rlim_t(8) << 20;  // bytes, as a thread has in llama-server
static const int64_t NOW = 1709251199;        // 2024-02-29 23:59:59 UTC

extern "C" void ggml_abort(const char *, int, const char *, ...) { abort(); }

static string quoted(const string & s) { return common_json::make(s).dump_safe(); }

static bool is_utf8(const string & s) {
    try { return !common_json::make(s).dump().empty(); } catch (const common_json_error &) { return false; }
}

// Renders again with the engine's debug output, which names each function that it reaches and the receiver's type.
static string traced(jinja::context & ctx, const jinja::program & program) {
    counts nodes, calls;
    ctx.visitor = [&](bool, const jinja::statement * node, std::vector<jinja::visitor_pair> children) {
        nodes[node->type()]++;
        for (const auto & [_, list] : children) for (const auto * child : list) if (child) child->visit(ctx);
    };
    for (const auto & statement : program.body) statement->visit(ctx);

    char * log = nullptr;
    size_t size = 0;
    stdout = open_memstream(&log, &size);
    jinja::enable_debug(true);
    try { jinja::runtime(ctx).execute(program); } catch (const std::exception &) {}
    jinja::enable_debug(false);
    fflush(stdout);
    std::istringstream lines(string(log, size));
    for (string line, tried; std::getline(lines, line);) {
        // What stands between the text and the mark, or nothing.
        const auto after = [&](const string & text, char mark) {
            const size_t found = line.find(text), start = found + text.size();
            return found == string::npos ? "" : line.substr(start, line.find(mark, start) - start);
        };
        const string name = after("Trying built-in function '", '\''), test = after("(using function '", '\'');
        if (!name.empty()) tried = name + " " + after("' for type ", ' ');
        if (!test.empty()) calls[test]++;
        if (line.find("Binding built-in '") != string::npos) calls[tried]++;
        if (line.find("found in builtins") != string::npos) calls[after("Identifier '", '\'')]++;
    }

    const auto written = [](const counts & numbers) {
        string out = "{", comma;
        for (const auto & [name, n] : numbers) out += comma + quoted(name) + ": " + std::to_string(n), comma = ", ";
        return out + "}";
    };
    return ", \"nodes\": " + written(nodes) + ", \"calls\": " + written(calls);
}

static string answer(const string & line) {
    const char * stage = "request";
    try {
        const auto request = common_json::parse(line);
        const auto source = request.at("template").get<string>();
        stage = "lexer";
        const auto tokens = jinja::lexer().tokenize(source);
        stage = "parser";
        const auto program = jinja::parse_from_tokens(tokens);
        stage = "values";
        const bool mark_input = request.value("mark_input", true);
        const auto start = [&](jinja::context & ctx) -> jinja::context & {
            ctx.current_time = request.value("now", NOW);
            jinja::global_from_json(ctx, request.value("values", common_json::object()), mark_input);
            return ctx;
        };
        jinja::context ctx(source), again(source);
        start(ctx);
        stage = "runtime";
        const auto rendered = jinja::runtime::gather_string_parts(jinja::runtime(ctx).execute(program))->val_str;
        bool utf8 = true;
        for (const auto & part : rendered.parts) utf8 = utf8 && is_utf8(part.val);
        const auto written = [&](const string & s) { return quoted(utf8 ? s : base64::encode(s.data(), s.size())); };
        string out = string(utf8 ? "{\"text\": " : "{\"b64\": ") + written(rendered.str()) + ", \"parts\": [", comma;
        for (const auto & part : rendered.parts) {
            out += comma + "[" + written(part.val) + (part.is_input ? ", true]" : ", false]"), comma = ", ";
        }
        return out + "]" + (request.value("trace", false) ? traced(start(again), program) : "") + "}";
    } catch (const std::exception & error) {
        const string message = error.what();
        if (message.find("std::bad_alloc") != string::npos) return "{\"crash\": \"memory\"}";
        return "{\"error\": " + quoted(message) + ", \"stage\": \"" + stage + "\"}";
    }
}

[[noreturn]] static void child(const std::vector<string> & lines, size_t first, int out) {
    const rlimit memory{MEMORY, MEMORY};
    setrlimit(RLIMIT_AS, &memory);
    for (size_t i = first; i < lines.size(); i++) {
        const itimerval limit{{0, 0}, {SECONDS, 0}};
        setitimer(ITIMER_PROF, &limit, nullptr);
        const string reply = answer(lines[i]) + "\n";
        for (size_t sent = 0; sent < reply.size(); sent += write(out, reply.data() + sent, reply.size() - sent)) {}
    }
    _exit(0);
}

static void serve(const std::vector<string> & lines) {
    for (size_t first = 0; first < lines.size();) {
        int ends[2], status = 0;
        if (pipe(ends) != 0) exit(1);
        const pid_t pid = fork();
        if (pid < 0) exit(1);
        if (pid == 0) child(lines, first, ends[1]);
        close(ends[1]);
        string replies;
        char buffer[1 << 16];
        for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) replies.append(buffer, n);
        close(ends[0]);
        waitpid(pid, &status, 0);
        replies.resize(replies.rfind('\n') + 1); // npos + 1 is 0
        if (replies.empty()) {
            const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
            replies = "{\"crash\": \"" + (number == SIGPROF ? "timeout" : "signal " + std::to_string(number)) + "\"}\n";
        }
        first += std::count(replies.begin(), replies.end(), '\n');
        fwrite(replies.data(), 1, replies.size(), stdout);
        fflush(stdout);
    }
}

int main() {
    setenv("TZ", "UTC", 1);
    const rlimit none{0, 0}, stack{STACK, STACK};
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_STACK, &stack);
    string pending;
    std::vector<char> buffer(1 << 20);
    for (ssize_t n; (n = read(0, buffer.data(), buffer.size())) > 0;) {
        pending.append(buffer.data(), n);
        std::vector<string> lines;
        for (size_t end; (end = pending.find('\n')) != string::npos; pending.erase(0, end + 1)) {
            if (end > 0) lines.push_back(pending.substr(0, end));
        }
        serve(lines);
    }
}
