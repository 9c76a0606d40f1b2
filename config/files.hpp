// The loader's only door to the file system, so that tests and fuzzers can keep it shut.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace hotlane::config {

class file_access {
  public:
    virtual ~file_access() = default;
    // The whole text; error: why not. Longer than file_bytes_max is an error.
    virtual tl::expected<std::string, std::string> read(const std::string& path) = 0;
    // Sorted. A pattern without * and ? is returned as it is.
    virtual std::vector<std::string> expand(const std::string& pattern) = 0;
    virtual bool readable(const std::string& path) = 0;
};

class real_files : public file_access {
  public:
    tl::expected<std::string, std::string> read(const std::string& path) override;
    std::vector<std::string> expand(const std::string& pattern) override;
    bool readable(const std::string& path) override;
};

// A whole file that is no configuration: a trace, a recording. error: why not.
tl::expected<std::string, std::string> read_whole(const std::string& path, std::size_t bytes_max);

}  // namespace hotlane::config
