// Runs a fuzz target without libFuzzer: over the files of a corpus folder, if there is one, and
// over inputs made by a fixed generator.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::filesystem::is_directory(argv[1]))
        for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
            std::ifstream file(entry.path(), std::ios::binary);
            run({std::istreambuf_iterator<char>(file), {}});
        }
    std::mt19937_64 random(1);
    for (int round = 0; round < 20'000; ++round) {
        std::string input(random() % 64, '\0');
        // Small numbers and zeros reach deeper than even bytes do.
        for (auto& byte : input)
            byte = static_cast<char>(random() % 3 == 0 ? random() % 256 : random() % 4);
        run(input);
    }
    return 0;
}
