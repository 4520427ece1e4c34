// Between core's tensors (what files hold) and the client library's (what is sent). Both number their types differently
// and borrow alike.
#pragma once

#include "core/tensor/tensor.h"
#include "triad/tensor.h"

namespace triad::tools {

client::DataType ToClient(DType dtype);
DType FromClient(client::DataType dtype);

// Borrow what their argument borrows. ToClient needs a shape that has a size, as every tensor that was read has.
client::TensorView ToClient(const TensorView& view);
TensorView FromClient(const client::TensorView& view);

}  // namespace triad::tools
