"""The checks must be able to fail: each gets a small tree with one fault in it."""

import importlib.util
import pathlib

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent


def load(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


LAYER_FAULTS = {
    "src/http/a.cpp": ('#include "api/json.h"\n', "'http' may not use 'api'"),
    "src/base/a.h": ("#pragma once\n#include <mlx/mlx.h>\n", "mlx/mlx.h belongs behind"),
    "src/server/a.cpp": ("#include <boost/asio.hpp>\n", "boost/asio.hpp belongs behind http"),
    "src/base/bytes.cpp": ("#include <spdlog/spdlog.h>\n", "belongs behind base/log.cpp"),
    "src/model/a.cpp": ('#include "textkit.h"\n', "textkit.h belongs behind text"),
    "src/core/a.cpp": ('#include "../base/bytes.h"\n', "not by a relative path"),
    "src/stray/a.cpp": ("", "is not in the table"),
    "src/cache/CMakeLists.txt": (
        "bodega_stage(cache\n  SOURCES a.cpp STAGES base engine)\n",
        "may not link 'engine'",
    ),
}


@pytest.mark.parametrize("name", LAYER_FAULTS)
def test_a_wrong_arrow_is_found(tmp_path, name):
    text, expected = LAYER_FAULTS[name]
    write(tmp_path, name, text)
    layers = load("check_layers")
    problems = [*layers.include_problems(tmp_path), *layers.stage_problems(tmp_path)]
    assert any(expected in problem for problem in problems), problems


def test_allowed_arrows_pass(tmp_path):
    write(tmp_path, "src/engine/a.cpp", '#include "cache/block_pool.h"\n#include <mlx/mlx.h>\n')
    write(tmp_path, "src/base/log.cpp", "#include <spdlog/spdlog.h>\n")
    write(tmp_path, "src/engine/CMakeLists.txt", "bodega_stage(engine STAGES base ops LIBS x::y)\n")
    layers = load("check_layers")
    assert [*layers.include_problems(tmp_path), *layers.stage_problems(tmp_path)] == []


def test_long_files_functions_and_deep_nesting_are_found(tmp_path):
    body = "".join(f"  x += {i};\n" for i in range(90))
    write(tmp_path, "src/base/long.cpp", f"int f(int x) {{\n{body}  return x;\n}}\n" + "//\n" * 600)
    deep = "if(x){for(;;){while(x){if(x){do{x--;}while(x);}}}}"
    write(tmp_path, "src/base/deep.cpp", f"int g(int x) {{ {deep} return x; }}\n")
    failed = [text for problem, text in load("check_sizes").measure(tmp_path) if problem]
    assert len(failed) == 3, failed
    assert "long.cpp: 693 lines" in failed[1] and "nesting 5" in failed[0] and "lines (limit 80)" in failed[2]


def test_banned_names_are_found_outside_comments(tmp_path):
    write(tmp_path, "src/a.cpp", '// std::format is absent\nauto s = std::format("x");\nco_await x;\n')
    write(tmp_path, "src/b.cpp", 'auto s = std::format("x");  // banned-ok: a test\n')
    found = list(load("check_banned").problems(tmp_path))
    assert [problem.split(": ")[0] for problem in found] == ["src/a.cpp:2", "src/a.cpp:3"]


def test_dependency_names_are_read_from_every_list(tmp_path):
    write(tmp_path, "deps/apt.txt", "# c\ng++\nliba1.81-dev | liba-dev\n")
    write(tmp_path, "deps/Brewfile", 'brew "boost"\n')
    write(tmp_path, "deps/requirements.txt", 'mlx[cpu]==0.32.4 ; sys_platform == "linux"\n')
    write(
        tmp_path,
        "rust/x/Cargo.toml",
        '[package]\nname = "x"\n[dependencies]\na-b = "1"\n[dev-dependencies.c]\nversion = "1"\n',
    )
    expected = {"apt:g++", "apt:liba1.81-dev", "brew:boost", "pypi:mlx", "crate:a-b", "crate:c"}
    assert set(load("check_dependencies").taken(tmp_path)) == expected
