#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>

#include "base/errors.h"
#include "cli/chat_input.h"
#include "cli/chat_session.h"
#include "cli/connection_flags.h"
#include "cli/local_server.h"
#include "cli/option_flags.h"
#include "cli/verb.h"

namespace bodega::cli {
namespace {

constexpr std::size_t kHistoryShown = 20;

constexpr const char* kHelp =
    "  \"\"\"       begins and ends a message of several lines; a \\ at the end of a line goes on "
    "too\n"
    "  /reset    forget the conversation\n"
    "  /stats    tokens and times of the last answer\n"
    "  /history  the last inputs\n"
    "  /help     this text\n"
    "  /exit     leave (or Ctrl-D); Ctrl-C stops an answer";

std::atomic<bool> g_interrupted{false};

void on_interrupt(int /*signal*/) { g_interrupted = true; }

// No SA_RESTART: a read of the terminal has to return.
void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
}

struct RunFlags {
  std::string model;
  std::string prompt;
  std::string history;
  ChatOptions chat;
  ConnectionFlags connection;
  OptionFlags<server::ModelOptions> model_options;
};

std::string default_history() {
  if (const char* state = std::getenv("XDG_STATE_HOME"))
    return std::string(state) + "/bodega/history";
  if (const char* home = std::getenv("HOME"))
    return std::string(home) + "/.local/state/bodega/history";
  return {};
}

// What was typed, one entry a line (line breaks as \n), in a plain file that only its owner reads.
class History {
 public:
  explicit History(std::string path) : path_(std::move(path)) {
    if (path_.empty()) return;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) keep(line);
  }

  void add(std::string text) {
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
      text.replace(at, 1, "\\n");
    }
    keep(text);
    if (path_.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    const bool is_new = !std::filesystem::exists(path_, ignored);
    std::ofstream(path_, std::ios::app) << text << '\n';
    if (is_new) {
      std::filesystem::permissions(
          path_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, ignored);
    }
  }

  const std::deque<std::string>& last() const { return last_; }

 private:
  void keep(const std::string& text) {
    last_.push_back(text);
    if (last_.size() > kHistoryShown) last_.pop_front();
  }

  const std::string path_;
  std::deque<std::string> last_;
};

struct Chat {
  ChatSession& session;
  History& history;
  bool leave = false;
};

void show_history(Chat& chat) {
  for (const std::string& line : chat.history.last()) std::cout << "  " << line << '\n';
}

void reset(Chat& chat) {
  chat.session.reset();
  std::cout << "The conversation is forgotten.\n";
}

using Command = void (*)(Chat&);

const std::map<std::string, Command>& commands() {
  static const std::map<std::string, Command> kCommands = {
      {"/reset", reset},
      {"/stats", [](Chat& chat) { std::cout << chat.session.stats() << '\n'; }},
      {"/history", show_history},
      {"/help", [](Chat&) { std::cout << kHelp << '\n'; }},
      {"/exit", [](Chat& chat) { chat.leave = true; }},
      {"/quit", [](Chat& chat) { chat.leave = true; }},
  };
  return kCommands;
}

// True when the input was a command.
bool obey(const std::string& input, Chat& chat) {
  if (!input.starts_with('/')) return false;
  const auto command = commands().find(input);
  if (command == commands().end()) {
    std::cout << "There is no command " << input << ". /help lists them.\n";
  } else {
    command->second(chat);
  }
  return true;
}

void answer(ChatSession& session, const std::string& text) {
  g_interrupted = false;
  session.ask(text, std::cout, [] { return g_interrupted.load(); });
}

// The next input; nothing at the end. Ctrl-C at the prompt gives a fresh one.
std::optional<std::string> next_input(ChatInput& input) {
  while (true) {
    g_interrupted = false;
    std::optional<std::string> text = input.next();
    if (text || !g_interrupted) return text;
    std::cin.clear();
    ::clearerr(stdin);
    std::cout << '\n';
  }
}

int chat(ChatSession& session, const std::string& history_path) {
  catch_interrupts();
  History history(history_path);
  Chat chat{session, history};
  ChatInput input(std::cin, &std::cout);
  std::cout << "/help lists the commands, Ctrl-D ends the chat.\n";
  while (!chat.leave) {
    const std::optional<std::string> text = next_input(input);
    if (!text) break;
    if (text->empty()) continue;
    history.add(*text);
    if (obey(*text, chat)) continue;
    try {
      answer(session, *text);
    } catch (const Error& error) {
      std::cout << "\nbodega: " << error.what() << '\n';
    }
  }
  return 0;
}

// One question, from the command line or a pipe, then the end.
int ask_once(ChatSession& session, std::string prompt) {
  if (prompt.empty()) prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  if (trim(prompt).empty()) throw Error(ErrorKind::kConfig, "There is nothing to ask.");
  catch_interrupts();
  answer(session, trim(prompt));
  return g_interrupted ? 130 : 0;
}

// True when a server runs at the address and has the model.
bool serves(Client& client, const std::string& model) {
  if (!client.is_up()) return false;
  if (model.empty()) return true;
  const boost::json::object models = client.get("/v1/models");
  for (const auto& entry : models.at("data").as_array()) {
    if (std::string_view(entry.at("id").as_string()) == model) return true;
  }
  return false;
}

int run(const RunFlags& flags) {
  auto client = std::make_unique<Client>(flags.connection.address());
  std::unique_ptr<LocalServer> own;
  ChatOptions options = flags.chat;
  if (serves(*client, flags.model)) {
    options.model = flags.model;
  } else {
    server::ModelOptions model;
    flags.model_options.apply(model);
    model.model_path = flags.model;
    own = std::make_unique<LocalServer>(local_options(model));
    client = std::make_unique<Client>(own->address());
  }
  ChatSession session(*client, options);
  const bool interactive = flags.prompt.empty() && ::isatty(STDIN_FILENO) != 0;
  return interactive ? chat(session, flags.history) : ask_once(session, flags.prompt);
}

}  // namespace

Run add_run(CLI::App& verb) {
  const auto flags = std::make_shared<RunFlags>();
  flags->history = default_history();
  verb.add_option("MODEL", flags->model, "A running server's model, or a path; none: the default");
  verb.add_option("PROMPT", flags->prompt, "Ask this and end; none: chat, or read a pipe");
  verb.add_option("--system", flags->chat.system, "System text")->envname("BODEGA_SYSTEM");
  verb.add_option("--temperature", flags->chat.temperature, "0 = always the likeliest token")
      ->envname("BODEGA_TEMPERATURE");
  verb.add_option("--max-tokens", flags->chat.max_tokens, "Longest answer")
      ->envname("BODEGA_MAX_TOKENS");
  verb.add_option("--seed", flags->chat.seed, "Makes answers repeat")->envname("BODEGA_SEED");
  verb.add_option("--history", flags->history, "File of what was typed, \"\" = none")
      ->envname("BODEGA_HISTORY")
      ->capture_default_str();
  flags->connection.declare(verb);
  flags->model_options.declare(verb, {"model_path", "model_id"});
  return [flags] { return run(*flags); };
}

}  // namespace bodega::cli
