// Enough templates to keep a compiler busy for seconds.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

template <int N> struct Work {
    std::map<std::string, std::vector<int>> map;
    std::unordered_map<int, std::function<int(int)>> functions;
    int run(const std::string &text) {
        std::regex pattern(text);
        map[text].push_back(N);
        functions[N] = [this](int x) { return x + N + int(map.size()); };
        std::sort(map[text].begin(), map[text].end(), [](int a, int b) { return a % (N + 2) < b % (N + 2); });
        std::ostringstream out;
        out << functions[N](N) << std::regex_match(text, pattern);
        return int(out.str().size()) + Work<N - 1>().run(text);
    }
};
template <> struct Work<0> {
    int run(const std::string &) { return 0; }
};

int main() { std::cout << Work<40>().run("a*b"); }
