// All headers of the C++ library, and templates that they instantiate.
#include <bits/stdc++.h>

int main()
{
    std::map<std::string, std::vector<std::regex>> rules;
    rules["words"].emplace_back("([a-z]+) ([0-9]+)");
    std::unordered_map<std::string, std::deque<std::string>> lines;
    for (std::string line; std::getline(std::cin, line);) {
        std::smatch found;
        if (std::regex_match(line, found, rules["words"][0]))
            lines[found[1]].push_back(found[2]);
    }
    std::vector<std::pair<std::string, std::size_t>> counts;
    for (const auto &[word, numbers] : lines)
        counts.emplace_back(word, numbers.size());
    std::sort(counts.begin(), counts.end());
    for (const auto &[word, count] : counts)
        std::cout << std::setw(20) << word << ' ' << count << '\n';
}
