//! Which module may import which, and what the pure layers may not name.

use super::source::Source;

/// The library's modules; each may import only those before it.
pub const LAYERS: [&str; 17] = [
    "time", "units", "rng", "wire", "config", "trace", "node", "nic", "switch", "scenario",
    "workload", "capture", "record", "sim", "io", "daemon", "lab",
];

/// Modules that never import each other, whatever their order.
const APART: [(&str, &str); 2] = [("nic", "switch"), ("sim", "io")];

/// The last layer that gets time, randomness and bytes only from its caller.
const LAST_PURE: &str = "workload";

/// What a pure layer may not name of the standard library.
const IMPURE_STD: [&str; 6] = ["net", "fs", "env", "thread", "time", "process"];
const IMPURE_NAMES: [&str; 2] = ["HashMap", "HashSet"];
const PRINT_MACROS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];

/// Where a source file belongs.
#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    /// `src/lib.rs`: names every module.
    Root,
    /// `src/main.rs` and `src/cli/`: may import everything.
    Binary,
    Layer(&'a str),
}

fn place(path: &str) -> Place<'_> {
    let below = path.strip_prefix("src/").unwrap_or(path);
    let first = below.split('/').next().unwrap_or(below);
    match first.strip_suffix(".rs").unwrap_or(first) {
        "lib" => Place::Root,
        "main" | "cli" => Place::Binary,
        layer => Place::Layer(layer),
    }
}

fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|known| *known == layer)
}

/// Imports that go up, across, or to a module that is in no layer.
pub fn import_problems(file: &Source) -> Vec<String> {
    let Place::Layer(layer) = place(&file.path) else { return Vec::new() };
    if rank(layer).is_none() {
        return vec![file.problem(1, &format!("module `{layer}` is not in the list of layers"))];
    }
    let found = file.paths("crate").into_iter();
    found
        .filter_map(|(line, path)| {
            import_fault(layer, &path[1]).map(|text| file.problem(line, &text))
        })
        .collect()
}

fn import_fault(from: &str, to: &str) -> Option<String> {
    if from == to {
        return None;
    }
    let Some(to_rank) = rank(to) else {
        return Some(format!("`crate::{to}` is not a module in the list of layers"));
    };
    if APART.contains(&(from, to)) || APART.contains(&(to, from)) {
        return Some(format!("`{from}` imports `{to}`: these two never import each other"));
    }
    (rank(from) < Some(to_rank))
        .then(|| format!("`{from}` imports `{to}`, which is above it: imports go down only"))
}

/// Clocks, files, sockets, hash order and prints in a pure layer, outside its tests.
pub fn purity_problems(file: &Source) -> Vec<String> {
    let pure = match place(&file.path) {
        Place::Layer(layer) => rank(layer) <= rank(LAST_PURE),
        Place::Root | Place::Binary => false,
    };
    if !pure {
        return Vec::new();
    }
    let mut found: Vec<(usize, String)> = Vec::new();
    for (line, path) in file.paths("std") {
        if IMPURE_STD.contains(&path[1].as_str()) || matches!(path[1].as_str(), "*" | "self") {
            found.push((line, format!("std::{}", path[1])));
        }
    }
    for name in IMPURE_NAMES {
        found.extend(file.find(&[name]).into_iter().map(|line| (line, name.to_owned())));
    }
    for name in PRINT_MACROS {
        found.extend(file.find(&[name, "!"]).into_iter().map(|line| (line, format!("{name}!"))));
    }
    found.retain(|(line, _)| !file.is_test(*line));
    found.sort();
    let text = |name: &str| format!("{name} in a pure layer: its caller gives it time and order");
    found.iter().map(|(line, name)| file.problem(*line, &text(name))).collect()
}

/// Modules that `src/lib.rs` declares and the list of layers lacks, or the other way round.
pub fn module_problems(lib: &Source) -> Vec<String> {
    let words = |at: usize| lib.code.get(at).map_or("", |token| token.text.as_str());
    let declared: Vec<_> = (0..lib.code.len())
        .filter(|at| words(*at) == "mod" && words(at + 2) == ";")
        .map(|at| (lib.code[at].line, words(at + 1)))
        .collect();
    let unknown = declared.iter().filter(|(_, name)| rank(name).is_none()).map(|(line, name)| {
        lib.problem(*line, &format!("module `{name}` is not in the list of layers"))
    });
    let missing = LAYERS.iter().filter(|layer| declared.iter().all(|(_, name)| name != *layer));
    let missing = missing.map(|name| lib.problem(1, &format!("layer `{name}` is not a module")));
    unknown.chain(missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(path: &str, text: &str) -> Vec<String> {
        import_problems(&Source::new(path, text))
    }

    #[test]
    fn imports_go_down_only() {
        assert_eq!(imports("src/nic/mod.rs", "use crate::{nic::a, wire::b, time};"), [""; 0]);
        assert_eq!(
            imports("src/wire/bth.rs", "use crate::time;\nfn f() { crate::nic::g() }"),
            ["src/wire/bth.rs:2: `wire` imports `nic`, which is above it: imports go down only"]
        );
        assert_eq!(imports("src/time.rs", "use crate::{units::A,\n lab::B};").len(), 2);
        assert_eq!(imports("src/cli/run.rs", "use crate::cli::a; use mrc_lab::lab;"), [""; 0]);
    }

    #[test]
    fn some_modules_stay_apart_in_both_directions() {
        for (from, to) in [("nic", "switch"), ("switch", "nic"), ("sim", "io"), ("io", "sim")] {
            let found = imports(&format!("src/{from}/a.rs"), &format!("use crate::{to}::X;"));
            assert!(found.len() == 1 && found[0].contains("never import"), "{found:?}");
        }
    }

    #[test]
    fn modules_outside_the_list_are_named() {
        assert_eq!(imports("src/misc.rs", "").len(), 1);
        assert_eq!(imports("src/nic/a.rs", "use crate::misc::B; use crate::*;").len(), 2);
        let lib = LAYERS.iter().skip(1).map(|name| format!("pub mod {name};\n"));
        let lib = lib.collect::<String>() + "mod misc;\n";
        let found = module_problems(&Source::new("src/lib.rs", &lib));
        assert_eq!(
            found,
            [
                "src/lib.rs:17: module `misc` is not in the list of layers",
                "src/lib.rs:1: layer `time` is not a module"
            ]
        );
    }

    #[test]
    fn pure_layers_name_no_clock_file_or_print() {
        let text = "use std::{fmt, fs::File};\nuse std::collections::HashMap;\n\
                    fn f() { println!(); std::thread::sleep(x) }\n\
                    // std::net\nconst A: &str = \"HashSet\";\nuse std::*;\n\
                    #[cfg(test)]\nmod tests { use std::env; fn g() { dbg!(1) } }\n";
        let lines = |path| {
            let found = purity_problems(&Source::new(path, text));
            found.iter().map(|p| p.split(':').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(lines("src/switch/mod.rs"), ["1", "2", "3", "3", "6"]);
        assert_eq!(lines("src/scenario/mod.rs").len(), 5);
        assert_eq!(lines("src/capture/mod.rs").len(), 0);
        assert_eq!(lines("src/nic/tests.rs").len(), 0);
    }
}
