// Any script read as DDL: no crash, no table without a name.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "router/sql/facts.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto schema = hotlane::sql::read_ddl({"CREATE TABLE t (a int, b text)", text});
    for (const auto& table : schema.tables)
        if (table.name.empty()) std::abort();
    return 0;
}
