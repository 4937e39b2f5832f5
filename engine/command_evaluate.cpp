#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/commands.hpp"
#include "engine/evaluation.hpp"
#include "engine/job.hpp"
#include "engine/role.hpp"
#include "engine/safetensors.hpp"

namespace stagger {

ExitCode evaluate_model(const EvaluateCommand& command) {
  constexpr std::size_t batch_max = 250;
  const Config config = load_config(command.common.config_path, command.common.overrides);
  if (config.backend.kind == BackendKind::replay) {
    throw ConfigError(
        command.common.config_path +
        ": backend.name is \"replay\": a replayed run computes no model, so there is nothing to "
        "evaluate");
  }
  Role role("evaluate", config.job.seed);
  const Dataset test = load_test_data(role.host().storage, config);
  auto model = build_model(config, test, batch_max);
  Arena values = initial_center(*model, config.job.seed);
  const std::string path =
      command.model_path.value_or(run_directory(config) + "/model.safetensors");
  const auto bytes = role.host().storage.read(path);
  if (!bytes) throw DataError(describe(bytes.error()));
  const auto metadata = decode_safetensors(*bytes, path, values);
  if (!metadata) throw DataError(describe(metadata.error()));

  const Evaluation result = evaluate(*model, batch_max, values, test);
  const std::string hash = parameters_sha256(values);
  if (command.common.json) {
    const nlohmann::ordered_json report{
        {"model", path},
        {"test_accuracy", result.accuracy},
        {"test_loss", result.loss},
        {"test_samples", result.samples},
        {"parameters_sha256", hash}};
    fmt::print("{}\n", report.dump(2));
  } else {
    fmt::print(
        "{}: {:.2f} % of {} test samples, loss {:.4f}, sha256 {}\n",
        path,
        100.0 * result.accuracy,
        result.samples,
        result.loss,
        hash);
  }
  return ExitCode::success;
}

}  // namespace stagger
