// How commands print: tables for people, JSON for scripts; data on stdout, talk on stderr.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hotlane::app {

enum class format { table, json };

// Columns padded to their widest cell, two blanks between; the header in capitals.
std::string table(const std::vector<std::string>& header,
                  const std::vector<std::vector<std::string>>& rows);

// A JSON value as a cell: null and "" are "-", numbers with `digits` after the point.
std::string cell(const nlohmann::json& value, int digits = 2);
// The value at `key`, or null.
nlohmann::json at(const nlohmann::json& object, const char* key);
// Seconds since 1970 as "2026-07-03 14:05:09Z".
std::string moment(const nlohmann::json& seconds);
// Control characters of texts that came from elsewhere cannot steer a terminal.
std::string printable(const std::string& text);

void print(const std::string& text);  // stdout
void talk(const std::string& text);   // stderr, with a newline
bool is_terminal(int fd);

}  // namespace hotlane::app
