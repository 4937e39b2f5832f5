#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "net/error.hpp"
#include "tensor/arena.hpp"

/// The safetensors format: u64 header length, JSON header, raw little-endian tensors.
namespace stagger {

/// All parameters of the arena as F32 under their names, plus string metadata.
std::vector<std::byte> encode_safetensors(
    const Arena& values, const std::map<std::string, std::string>& metadata);

/// Fills `values`; every parameter must be there with its shape and F32. Errors name `source`, the
/// tensor, and both sides. Hostile files (lengths, offsets, overlaps, types, duplicate or missing
/// names) are refused before anything is allocated from their numbers.
Result<std::map<std::string, std::string>> decode_safetensors(
    std::span<const std::byte> bytes, const std::string& source, Arena& values);

/// SHA-256 over the parameters in layout-independent order (parameter order), lower-case hex:
/// `parameters_sha256`.
std::string parameters_sha256(const Arena& values);

}  // namespace stagger
