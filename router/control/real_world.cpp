#include "router/control/parts.hpp"

namespace hotlane::control {

// In a file of its own, so that tests of the control plane link without the code that moves.
world real_world() {
    return {move::run,
            move::recover,
            move::clean,
            move::see,
            {},
            {},
            move::verify,
            move::eject,
            move::adopt};
}

}  // namespace hotlane::control
