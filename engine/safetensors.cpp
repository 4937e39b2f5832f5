#include "engine/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>

#include "observability/check.hpp"

namespace stagger {

namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors are stored as they lie");

constexpr std::string_view metadata_key = "__metadata__";
constexpr std::size_t length_bytes = 8;
/// The format's own limit on the header.
constexpr std::uint64_t header_bytes_max = 100'000'000;

Error refuse(const std::string& source, const std::string& detail) {
  return {.code = Errc::storage, .detail = source + ": " + detail};
}

std::vector<std::byte> assemble(const std::string& header, const Arena& values) {
  std::size_t total = length_bytes + header.size();
  for (const ParameterInfo& parameter : values.layout().parameters()) {
    total += parameter.size() * sizeof(float);
  }
  std::vector<std::byte> bytes(total);
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, length_bytes);
  std::memcpy(bytes.data() + length_bytes, header.data(), header.size());
  std::size_t offset = length_bytes + header.size();
  for (std::size_t index = 0; index < values.layout().parameters().size(); ++index) {
    const std::span<const std::byte> tensor = std::as_bytes(values.parameter(index));
    std::copy(tensor.begin(), tensor.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    offset += tensor.size();
  }
  return bytes;
}

/// Parses the header. JSON lets a later key hide an earlier one; here that is refused, as is what
/// nests too deep.
class HeaderParser {
 public:
  Result<void> parse(std::string_view text, const std::string& source, json& header) {
    const json::parser_callback_t callback =
        [this](int depth, json::parse_event_t event, json& value) {
          return accept(depth, event, value);
        };
    header = json::parse(text.begin(), text.end(), callback, false);
    if (!complaint_.empty()) return refuse(source, complaint_);
    if (!header.is_object()) return refuse(source, "header is not a JSON object");
    return {};
  }

 private:
  bool accept(int depth, json::parse_event_t event, const json& value) {
    constexpr int depth_max = 3;  // header, tensor, shape
    if (depth > depth_max) {
      complaint_ = "header nests too deep";
      return false;
    }
    if (event == json::parse_event_t::object_start) {
      keys_.resize(static_cast<std::size_t>(depth) + 1);
      keys_.back().clear();
    }
    if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys_.at(static_cast<std::size_t>(depth) - 1).insert(key).second) {
        complaint_ = "name " + key + " occurs twice in the header";
      }
    }
    return true;
  }

  std::vector<std::set<std::string>> keys_;
  std::string complaint_;
};

/// A JSON array of non-negative integers, or nothing.
std::optional<std::vector<std::uint64_t>> unsigned_list(const json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) return std::nullopt;
  std::vector<std::uint64_t> list;
  for (const json& number : *found) {
    if (!number.is_number_unsigned()) return std::nullopt;
    list.push_back(number.get<std::uint64_t>());
  }
  return list;
}

/// Where a tensor lies in the data; checked against what the parameter must be.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t parameter = 0;
};

Result<Extent> check_entry(
    const json& entry, const ParameterInfo& expected, std::size_t data, const std::string& source) {
  const std::string what = source + ": tensor " + expected.name;
  if (!entry.is_object()) return refuse(what, "its entry is not an object");
  const auto type = entry.find("dtype");
  if (type == entry.end() || *type != "F32") {
    return refuse(
        what,
        fmt::format(
            "dtype {}, expected F32",
            type == entry.end() ? "missing"
                                : type->dump(-1, ' ', true, json::error_handler_t::replace)));
  }
  const auto shape = unsigned_list(entry, "shape");
  if (!shape ||
      !std::equal(shape->begin(), shape->end(), expected.shape.begin(), expected.shape.end())) {
    return refuse(
        what,
        fmt::format(
            "shape {}, expected [{}]",
            shape ? fmt::format("[{}]", fmt::join(*shape, ", ")) : "missing or malformed",
            fmt::join(expected.shape, ", ")));
  }
  const auto offsets = unsigned_list(entry, "data_offsets");
  if (!offsets || offsets->size() != 2) return refuse(what, "data_offsets missing or malformed");
  const Extent extent{.begin = (*offsets)[0], .end = (*offsets)[1]};
  const std::uint64_t bytes = expected.size() * sizeof(float);
  if (extent.end > data || extent.begin > extent.end || extent.end - extent.begin != bytes) {
    return refuse(
        what,
        fmt::format(
            "data_offsets [{}, {}], expected {} bytes within {}",
            extent.begin,
            extent.end,
            bytes,
            data));
  }
  return extent;
}

/// Every parameter's extent, in file order; together they are the whole data, each byte once.
Result<std::vector<Extent>> check_tensors(
    const json& header, const Arena& values, std::size_t data, const std::string& source) {
  const std::vector<ParameterInfo>& parameters = values.layout().parameters();
  std::vector<Extent> extents;
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const auto entry = header.find(parameters[index].name);
    if (entry == header.end()) {
      return refuse(source, "tensor " + parameters[index].name + " is missing");
    }
    Result<Extent> extent = check_entry(*entry, parameters[index], data, source);
    if (!extent) return extent.error();
    extent->parameter = index;
    extents.push_back(*extent);
  }
  const std::size_t known = parameters.size() + (header.contains(metadata_key) ? 1 : 0);
  if (header.size() != known) {
    for (const auto& [name, entry] : header.items()) {
      const bool expected =
          name == metadata_key ||
          std::any_of(
              parameters.begin(), parameters.end(), [&name](const ParameterInfo& parameter) {
                return parameter.name == name;
              });
      if (!expected) return refuse(source, "tensor " + name + " is none of this model's");
    }
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& left, const Extent& right) {
    return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
  });
  std::uint64_t covered = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != covered) {
      return refuse(
          source,
          fmt::format(
              "tensor {} begins at {}, expected {}: tensors overlap or leave a gap",
              parameters[extent.parameter].name,
              extent.begin,
              covered));
    }
    covered = extent.end;
  }
  if (covered != data) {
    return refuse(source, fmt::format("{} bytes of data, the tensors have {}", data, covered));
  }
  return extents;
}

Result<std::map<std::string, std::string>> read_metadata(
    const json& header, const std::string& source) {
  std::map<std::string, std::string> metadata;
  const auto found = header.find(metadata_key);
  if (found == header.end()) return metadata;
  if (!found->is_object()) return refuse(source, "__metadata__ is not an object");
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) return refuse(source, "__metadata__ " + key + " is not a string");
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

}  // namespace

std::vector<std::byte> encode_safetensors(
    const Arena& values, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(metadata_key)] = metadata;
  std::uint64_t offset = 0;
  for (const ParameterInfo& parameter : values.layout().parameters()) {
    CHECK(!header.contains(parameter.name), "two parameters of one name", parameter.name);
    const std::uint64_t end = offset + parameter.size() * sizeof(float);
    header[parameter.name] = {
        {"dtype", "F32"}, {"shape", parameter.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the format aligns the tensors with spaces
  return assemble(text, values);
}

Result<std::map<std::string, std::string>> decode_safetensors(
    std::span<const std::byte> bytes, const std::string& source, Arena& values) {
  if (bytes.size() < length_bytes) {
    return refuse(source, fmt::format("{} bytes, expected 8 of header length", bytes.size()));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), length_bytes);
  const std::uint64_t available = bytes.size() - length_bytes;
  if (length > std::min(available, header_bytes_max)) {
    return refuse(
        source,
        fmt::format(
            "header length {}, expected at most {}",
            length,
            std::min(available, header_bytes_max)));
  }
  std::string text(length, ' ');
  std::memcpy(text.data(), bytes.data() + length_bytes, text.size());
  json header;
  const Result<void> parsed = HeaderParser().parse(text, source, header);
  if (!parsed) return parsed.error();
  const auto data = bytes.subspan(length_bytes + text.size());
  const Result<std::vector<Extent>> extents = check_tensors(header, values, data.size(), source);
  if (!extents) return extents.error();
  Result<std::map<std::string, std::string>> metadata = read_metadata(header, source);
  if (!metadata) return metadata;

  for (const Extent& extent : *extents) {
    const std::span<float> target = values.parameter(extent.parameter);
    std::memcpy(target.data(), data.data() + extent.begin, target.size_bytes());
  }
  return metadata;
}

std::string parameters_sha256(const Arena& values) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
      EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  CHECK(context != nullptr);
  bool good = EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  for (std::size_t index = 0; index < values.layout().parameters().size(); ++index) {
    const std::span<const float> tensor = values.parameter(index);
    good = good && EVP_DigestUpdate(context.get(), tensor.data(), tensor.size_bytes()) == 1;
  }
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  good = good && EVP_DigestFinal_ex(context.get(), digest.data(), &size) == 1;
  CHECK(good && size == 32, "SHA-256 failed", size);
  return fmt::format("{:02x}", fmt::join(std::span(digest).first(size), ""));
}

}  // namespace stagger
